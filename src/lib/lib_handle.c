/* Opening and closing handles, and the results of the API: every status of the store
 * has a result and a sentence that says what to do. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/sized.h"
#include "base/status.h"
#include "lib/lib.h"

#define TIMEOUT_DEFAULT_MS 10000
#define TIMEOUT_MAX_MS 86400000
/* The default of the option events.retention. */
#define EVENT_RETENTION_MS (30 * (int64_t)86400000)

/* ---- results ---- */

const char *hapax_version(void)
{
	return HPX_VERSION;
}

const char *hapax_result_name(enum hapax_result result)
{
	static const char *const names[] = {
		[HAPAX_OK] = "ok",
		[HAPAX_NOMEM] = "nomem",
		[HAPAX_INVALID] = "invalid",
		[HAPAX_MISUSE] = "misuse",
		[HAPAX_STALE] = "stale",
		[HAPAX_REFUSED] = "refused",
		[HAPAX_CONFLICT] = "conflict",
		[HAPAX_BUSY] = "busy",
		[HAPAX_UNAVAILABLE] = "unavailable",
		[HAPAX_UNCERTAIN] = "uncertain",
	};

	if ((unsigned)result >= sizeof(names) / sizeof(names[0]))
		return "?";
	return names[result];
}

enum hapax_result hpx_result_of(enum hpx_status status)
{
	switch (status) {
	case HPX_OK:
		return HAPAX_OK;
	case HPX_NOMEM:
		return HAPAX_NOMEM;
	case HPX_MISUSE:
		return HAPAX_MISUSE;
	case HPX_INVALID:
	case HPX_TOO_LARGE:
	case HPX_UNSUPPORTED:
		return HAPAX_INVALID;
	case HPX_STALE:
	case HPX_NOT_FOUND:
		return HAPAX_STALE;
	case HPX_REFUSED:
		return HAPAX_REFUSED;
	case HPX_CONFLICT:
		return HAPAX_CONFLICT;
	case HPX_BUSY:
		return HAPAX_BUSY;
	default:
		return HAPAX_UNAVAILABLE;
	}
}

/* What the caller can do, where the store's own words do not say it. */
static const char *advice(enum hapax_result result)
{
	switch (result) {
	case HAPAX_OK:
		return "";
	case HAPAX_NOMEM:
		return "there is no memory left";
	case HAPAX_INVALID:
		return "the store cannot take this input";
	case HAPAX_MISUSE:
		return "the call breaks the contract in hapax.h";
	case HAPAX_STALE:
		return "the lease is lost: this attempt may write nothing any more, so roll back; a "
		       "retry has, or gets, a lease of its own";
	case HAPAX_REFUSED:
		return "the operation is not in a state that allows this: it has ended already";
	case HAPAX_CONFLICT:
		return "a job of this name was enqueued with other content: another job needs "
		       "another name";
	case HAPAX_BUSY:
		return "somebody else holds the operation or the file: try again";
	case HAPAX_UNAVAILABLE:
		return "the store cannot be used";
	case HAPAX_UNCERTAIN:
		return "the store did not confirm it in time, and goes on trying";
	}
	return "";
}

enum hapax_result hpx_lib_error(enum hapax_result result, char *problem, const char *format, ...)
{
	va_list args;

	if (problem == NULL)
		return result;
	va_start(args, format);
	vsnprintf(problem, HAPAX_PROBLEM_SIZE, format, args);
	va_end(args);
	return result;
}

enum hapax_result hpx_lib_bad_struct(const char *name, char *problem)
{
	return hpx_lib_error(HAPAX_MISUSE, problem,
			     "struct %s has no size that this library knows, or members that it "
			     "does not know: set it with .size = sizeof(struct %s)",
			     name, name);
}

/* The store's words come last and are cut to the space that is left. They are left out
 * where they would only repeat the advice. */
enum hapax_result hpx_lib_result(enum hpx_status status, const char *detail, char *problem)
{
	enum hapax_result result = hpx_result_of(status);

	if (detail == NULL || result == HAPAX_STALE || result == HAPAX_CONFLICT)
		detail = "";
	if (detail[0] == '\0' && result == HAPAX_UNAVAILABLE)
		detail = hpx_status_text(status);
	if (detail[0] == '\0')
		return hpx_lib_error(result, problem, "%s", advice(result));
	if (result == HAPAX_INVALID || result == HAPAX_MISUSE)
		return hpx_lib_error(result, problem, "%s", detail);
	return hpx_lib_error(result, problem, "%s: %.400s", advice(result), detail);
}

/* ---- handles ---- */

static struct hapax *handle_new(void)
{
	struct hapax *hapax = calloc(1, sizeof(*hapax));

	if (hapax == NULL)
		return NULL;
	if (pthread_mutex_init(&hapax->mutex, NULL) != 0) {
		free(hapax);
		return NULL;
	}
	hapax->timeout_ms = TIMEOUT_DEFAULT_MS;
	return hapax;
}

static void handle_free(struct hapax *hapax)
{
	hpx_store_close(hapax->store);
	pthread_mutex_destroy(&hapax->mutex);
	free(hapax);
}

/* On the committer's thread. */
static void store_changed(void *user, enum hpx_status status, const char *problem)
{
	struct hapax *hapax = user;

	pthread_mutex_lock(&hapax->mutex);
	hapax->trouble[0] = '\0';
	if (status != HPX_OK)
		hpx_store_problem(hapax->trouble, "%s", problem);
	pthread_mutex_unlock(&hapax->mutex);
}

void hpx_handle_trouble(struct hapax *hapax, char ret_trouble[HPX_STORE_PROBLEM_SIZE])
{
	pthread_mutex_lock(&hapax->mutex);
	memcpy(ret_trouble, hapax->trouble, HPX_STORE_PROBLEM_SIZE);
	pthread_mutex_unlock(&hapax->mutex);
}

/* Every token and mark is made of random bytes. */
static enum hpx_status check_random(char *detail)
{
	enum hpx_status status = hpx_random_ready();

	if (status != HPX_OK)
		hpx_store_problem(detail, "the system gives no random bytes");
	return status;
}

static enum hpx_status open_store(struct hapax *hapax, const char *url,
				  const struct hapax_options *options, char *detail)
{
	struct hpx_store_options wanted = {
		.url = hpx_span_of(url),
		.create = options->install != 0,
		.install = options->install != 0,
		.event_retention_ms = EVENT_RETENTION_MS,
	};
	enum hpx_status status = check_random(detail);
	struct hpx_committer_options with = { .changed = store_changed, .user = hapax };

	if (status == HPX_OK)
		status = hpx_store_open(&wanted, &hapax->store, detail);
	if (status != HPX_OK)
		return status;
	with.store = hapax->store;
	return hpx_committer_start(&with, &hapax->committer);
}

/* An opening has no lease that could be stale and no input but the address. So "not
 * found" and "unsupported" are about the store. */
static enum hapax_result tell_opening(enum hpx_status status, const char *detail, char *problem)
{
	if (status == HPX_NOT_FOUND || status == HPX_UNSUPPORTED)
		status = HPX_UNAVAILABLE;
	return hpx_lib_result(status, detail, problem);
}

enum hapax_result hapax_open(const char *url, const struct hapax_options *given,
			     struct hapax **ret_hapax, char *problem)
{
	struct hapax_options options = { .timeout_ms = 0 };
	char detail[HPX_STORE_PROBLEM_SIZE] = "";

	if (given != NULL && !hpx_sized_read(given, &options, sizeof(options)))
		return hpx_lib_bad_struct("hapax_options", problem);
	if (url == NULL || ret_hapax == NULL || options.timeout_ms < 0 ||
	    options.timeout_ms > TIMEOUT_MAX_MS)
		return hpx_lib_error(HAPAX_MISUSE, problem,
				     "hapax_open needs an address, a place for the handle, and a "
				     "timeout between 0 and a day");
	struct hapax *hapax = handle_new();
	if (hapax == NULL)
		return hpx_lib_result(HPX_NOMEM, NULL, problem);
	if (options.timeout_ms > 0)
		hapax->timeout_ms = options.timeout_ms;
	enum hpx_status status = open_store(hapax, url, &options, detail);
	if (status != HPX_OK) {
		handle_free(hapax);
		return tell_opening(status, detail, problem);
	}
	*ret_hapax = hapax;
	return hpx_lib_result(HPX_OK, NULL, problem);
}

void hapax_close(struct hapax *hapax)
{
	if (hapax == NULL)
		return;
	if (hapax->committer != NULL) {
		hpx_committer_stop(hapax->committer, hapax->timeout_ms);
		hpx_committer_free(hapax->committer);
	}
	handle_free(hapax);
}

/* ---- on the caller's connection ---- */

static enum hapax_result misuse_of_connection(const char *function, char *problem)
{
	return hpx_lib_error(HAPAX_MISUSE, problem,
			     "%s needs an open connection and a place for the handle", function);
}

/* A handle for a store that is on the connection already. */
static enum hapax_result borrowed(enum hpx_status status, struct hpx_store *store,
				  const char *detail, struct hapax **ret_hapax, char *problem)
{
	if (status != HPX_OK)
		return tell_opening(status, detail, problem);
	struct hapax *hapax = handle_new();
	if (hapax == NULL) {
		hpx_store_close(store);
		return hpx_lib_result(HPX_NOMEM, NULL, problem);
	}
	hapax->store = store;
	*ret_hapax = hapax;
	return hpx_lib_result(HPX_OK, NULL, problem);
}

enum hapax_result hapax_on_sqlite(sqlite3 *db, struct hapax **ret_hapax, char *problem)
{
	char detail[HPX_STORE_PROBLEM_SIZE] = "";
	struct hpx_store *store = NULL;

	if (db == NULL || ret_hapax == NULL)
		return misuse_of_connection("hapax_on_sqlite", problem);
	enum hpx_status status = check_random(detail);
	if (status == HPX_OK)
		status = hpx_store_borrow(HPX_LENT_SQLITE3, db, &store, detail);
	return borrowed(status, store, detail, ret_hapax, problem);
}

enum hapax_result hapax_on_postgres(PGconn *conn, struct hapax **ret_hapax, char *problem)
{
	char detail[HPX_STORE_PROBLEM_SIZE] = "";
	struct hpx_store *store = NULL;

	if (conn == NULL || ret_hapax == NULL)
		return misuse_of_connection("hapax_on_postgres", problem);
	enum hpx_status status = check_random(detail);
	if (status == HPX_OK)
		status = hpx_store_borrow(HPX_LENT_PGCONN, conn, &store, detail);
	return borrowed(status, store, detail, ret_hapax, problem);
}

enum hapax_result hapax_install_sqlite(sqlite3 *db, char *problem)
{
	char detail[HPX_STORE_PROBLEM_SIZE] = "";

	if (db == NULL)
		return hpx_lib_error(HAPAX_MISUSE, problem,
				     "hapax_install_sqlite needs an open connection");
	return tell_opening(hpx_store_install(HPX_LENT_SQLITE3, db, detail), detail, problem);
}

enum hapax_result hapax_install_postgres(PGconn *conn, char *problem)
{
	char detail[HPX_STORE_PROBLEM_SIZE] = "";

	if (conn == NULL)
		return hpx_lib_error(HAPAX_MISUSE, problem,
				     "hapax_install_postgres needs an open connection");
	return tell_opening(hpx_store_install(HPX_LENT_PGCONN, conn, detail), detail, problem);
}
