/* Opening, interrupting and closing a client; listing and removing the entries of
 * its journal; and the results of the API with their sentences. */
#include <curl/curl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/sized.h"
#include "base/status.h"
#include "client/client.h"
#include "client/journal.h"
#include "http/field.h"

#define MINUTE_MS 60000
#define DAY_MS ((int64_t)86400000)
/* The largest value of every time option. */
#define TIME_MAX_MS (365 * DAY_MS)

/* ---- results ---- */

enum hapax_result hpx_client_error(enum hapax_result result, char *problem, const char *format, ...)
{
	va_list args;

	if (problem == NULL)
		return result;
	va_start(args, format);
	vsnprintf(problem, HAPAX_PROBLEM_SIZE, format, args);
	va_end(args);
	return result;
}

enum hapax_result hpx_client_ok(char *problem)
{
	if (problem != NULL)
		problem[0] = '\0';
	return HAPAX_OK;
}

enum hapax_result hpx_client_no_memory(char *problem)
{
	return hpx_client_error(HAPAX_NOMEM, problem, "there is no memory left");
}

/* ---- options ---- */

/* libcurl counts its users: init and cleanup come in pairs, from any thread. */
static enum hapax_result begin_libcurl(char *problem)
{
	const curl_version_info_data *libcurl = curl_version_info(CURLVERSION_NOW);
	const int needed = CURL_VERSION_THREADSAFE | CURL_VERSION_SSL | CURL_VERSION_ASYNCHDNS;

	if ((libcurl->features & needed) != needed)
		return hpx_client_error(HAPAX_UNAVAILABLE, problem,
					"this libcurl lacks TLS, look-ups that end in time, or safety "
					"among threads");
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return hpx_client_no_memory(problem);
	return HAPAX_OK;
}

static bool is_time(int64_t ms)
{
	return ms >= 0 && ms <= TIME_MAX_MS;
}

static enum hapax_result check_options(const struct hapax_client_options *options, char *problem)
{
	if (!is_time(options->budget_ms) || !is_time(options->backoff_ms) ||
	    !is_time(options->backoff_max_ms) || !is_time(options->remembered_ms) ||
	    options->timeout_ms < 0 || options->timeout_ms > DAY_MS ||
	    options->connect_timeout_ms < 0 || options->connect_timeout_ms > DAY_MS)
		return hpx_client_error(HAPAX_INVALID, problem, "a time is below zero or too long (a "
								"year; a day for one attempt)");
	if (options->key_header != NULL && !hpx_is_token(hpx_span_of(options->key_header)))
		return hpx_client_error(HAPAX_INVALID, problem,
					"the key's header is not the name of a header field");
	return HAPAX_OK;
}

static void set_default(int64_t *option, int64_t value)
{
	if (*option == 0)
		*option = value;
}

/* Copies the options with their texts. A text that could not be copied is NULL. */
static bool take_options(struct hapax_client *client, const struct hapax_client_options *given)
{
	struct hapax_client_options *options = &client->options;

	*options = *given;
	options->journal = NULL;
	options->key_header = strdup(given->key_header != NULL ? given->key_header :
								 "Idempotency-Key");
	options->ca_file = given->ca_file != NULL ? strdup(given->ca_file) : NULL;
	set_default(&options->budget_ms, 5 * MINUTE_MS);
	set_default(&options->backoff_ms, 200);
	set_default(&options->backoff_max_ms, 30000);
	set_default(&options->connect_timeout_ms, 10000);
	set_default(&options->timeout_ms, 30000);
	if (options->answer_bytes_max == 0)
		options->answer_bytes_max = (size_t)16 << 20;
	return options->key_header != NULL && (given->ca_file == NULL || options->ca_file != NULL);
}

static void client_free(struct hapax_client *client)
{
	hpx_journal_close(client->journal);
	if (client->wake_fd >= 0)
		close(client->wake_fd);
	free((char *)(uintptr_t)client->options.key_header);
	free((char *)(uintptr_t)client->options.ca_file);
	free(client);
}

static enum hapax_result make_client(const struct hapax_client_options *options,
				     struct hapax_client **ret_client, char *problem)
{
	struct hapax_client *client = calloc(1, sizeof(*client));
	enum hapax_result result = HAPAX_OK;

	if (client == NULL)
		return hpx_client_no_memory(problem);
	client->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (!take_options(client, options) || client->wake_fd < 0)
		result = hpx_client_no_memory(problem);
	if (result == HAPAX_OK && options->journal != NULL)
		result = hpx_journal_open(options->journal, &client->journal, problem);
	if (result != HAPAX_OK) {
		client_free(client);
		return result;
	}
	*ret_client = client;
	return hpx_client_ok(problem);
}

const char *hapax_client_version(void)
{
	return HPX_VERSION;
}

enum hapax_result hapax_client_open(const struct hapax_client_options *given,
				    struct hapax_client **ret_client, char *problem)
{
	struct hapax_client_options options = { .journal = NULL };

	if (ret_client == NULL)
		return hpx_client_error(HAPAX_MISUSE, problem, "there is no place for the client");
	if (given != NULL && !hpx_sized_read(given, &options, sizeof(options)))
		return hpx_client_error(HAPAX_MISUSE, problem,
					"struct hapax_client_options has no size that this library "
					"knows, or members that it does not know: set it with .size = "
					"sizeof(struct hapax_client_options)");
	enum hapax_result result = check_options(&options, problem);
	if (result == HAPAX_OK && hpx_random_ready() != HPX_OK)
		return hpx_client_error(HAPAX_UNAVAILABLE, problem, "the system gives no random bytes");
	if (result == HAPAX_OK)
		result = begin_libcurl(problem);
	if (result != HAPAX_OK)
		return result;
	result = make_client(&options, ret_client, problem);
	if (result != HAPAX_OK)
		curl_global_cleanup();
	return result;
}

void hapax_client_close(struct hapax_client *client)
{
	if (client == NULL)
		return;
	client_free(client);
	curl_global_cleanup();
}

/* write() and a lock-free atomic: what a signal handler may do. */
void hapax_client_interrupt(struct hapax_client *client)
{
	const uint64_t one = 1;

	if (client == NULL)
		return;
	atomic_store(&client->interrupted, true);
	/* The write fails only where the counter is full, and then the eventfd is
	 * readable already. */
	if (write(client->wake_fd, &one, sizeof(one)) < 0)
		return;
}

static enum hapax_result need_journal(const struct hapax_client *client, char *problem)
{
	if (client == NULL)
		return hpx_client_error(HAPAX_MISUSE, problem, "there is no client");
	if (client->journal == NULL)
		return hpx_client_error(HAPAX_MISUSE, problem, "this client has no journal");
	return HAPAX_OK;
}

enum hapax_result hapax_client_entries(struct hapax_client *client, int all,
				       struct hapax_entry **ret_entries, size_t *ret_count,
				       char *problem)
{
	enum hapax_result result = need_journal(client, problem);

	if (result == HAPAX_OK && (ret_entries == NULL || ret_count == NULL))
		result = hpx_client_error(HAPAX_MISUSE, problem, "there is no place for the entries");
	if (result == HAPAX_OK)
		result = hpx_journal_list(client->journal, all != 0, ret_entries, ret_count, problem);
	return result == HAPAX_OK ? hpx_client_ok(problem) : result;
}

/* All entries are one block of memory, which the first begins. */
void hapax_entries_free(struct hapax_entry *entries)
{
	free(entries);
}

enum hapax_result hapax_client_forget(struct hapax_client *client, int64_t id, char *problem)
{
	enum hapax_result result = need_journal(client, problem);

	if (result == HAPAX_OK && id <= 0)
		result = hpx_client_error(HAPAX_INVALID, problem, "there is no such call");
	if (result == HAPAX_OK)
		result = hpx_journal_forget(client->journal, id, problem);
	return result == HAPAX_OK ? hpx_client_ok(problem) : result;
}

static enum hapax_result load(struct hapax_client *client, int64_t id, struct hapax_call *call,
			      char *problem)
{
	HPX_ASSERT(client->journal != NULL && id > 0);
	enum hapax_result result = hpx_journal_load(client->journal, id, call, problem);
	if (result != HAPAX_OK)
		return result;
	if (call->state == HAPAX_ENTRY_DONE)
		return hpx_client_error(HAPAX_REFUSED, problem,
					"call %lld is done: it was answered with %u", (long long)id,
					call->status);
	call->resumed = true;
	if (client->options.remembered_ms > 0)
		call->remembered_ms = client->options.remembered_ms;
	/* Fields that were read from a file are not given by the caller. */
	return hpx_call_reread(call, problem);
}

enum hapax_result hapax_call_resume(struct hapax_client *client, int64_t id,
				    struct hapax_call **ret_call, char *problem)
{
	enum hapax_result result = need_journal(client, problem);

	if (result == HAPAX_OK && ret_call == NULL)
		result = hpx_client_error(HAPAX_MISUSE, problem, "there is no place for the call");
	if (result == HAPAX_OK && id <= 0)
		result = hpx_client_error(HAPAX_INVALID, problem, "there is no such call");
	if (result != HAPAX_OK)
		return result;
	struct hapax_call *call = hpx_call_empty(client);
	if (call == NULL)
		return hpx_client_no_memory(problem);
	result = load(client, id, call, problem);
	if (result != HAPAX_OK) {
		hapax_call_free(call);
		return result;
	}
	*ret_call = call;
	return hpx_client_ok(problem);
}
