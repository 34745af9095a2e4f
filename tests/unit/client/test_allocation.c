/* Shows that whichever allocation fails, a call says so or goes on without it,
 * nothing is sent that was not written down, and the journal can be used. */
#include "../core/failing_memory.h"

#include "folder.h"
#include "hapax/client.h"

static char path[128];
static unsigned attempts;

static void count(void *user, const struct hapax_attempt *attempt)
{
	(void)user;
	attempts += attempt->event == HAPAX_ATTEMPT_BEGINS;
}

static enum hapax_result send_one(struct hapax_client *client, char *problem)
{
	struct hapax_call *call = NULL;
	/* Nobody is there: what counts here comes before and behind it. */
	enum hapax_result result =
		hapax_call_new(client, "POST", "http://127.0.0.1:9/", &call, problem);

	if (result == HAPAX_OK)
		result = hapax_call_header(call, "Authorization", "Bearer s3cr3t", problem);
	if (result == HAPAX_OK)
		result = hapax_call_body(call, "{}", 2, problem);
	if (result == HAPAX_OK)
		result = hapax_call_send(call, problem);
	hapax_call_free(call);
	return result;
}

static enum hapax_result resume_all(struct hapax_client *client, char *problem)
{
	struct hapax_entry *entries;
	size_t entry_count;
	enum hapax_result result = hapax_client_entries(client, 0, &entries, &entry_count, problem);

	if (result != HAPAX_OK)
		return result;
	for (struct hapax_entry *entry = entries; entry != NULL && result == HAPAX_OK;
	     entry = entry->next) {
		struct hapax_call *call = NULL;

		result = hapax_call_resume(client, entry->id, &call, problem);
		if (result == HAPAX_OK)
			result = hapax_call_header(call, "authorization", "Bearer s3cr3t", problem);
		if (result == HAPAX_OK)
			result = hapax_call_send(call, problem);
		hapax_call_free(call);
	}
	hapax_entries_free(entries);
	return result;
}

static enum hapax_result story(char *problem)
{
	struct hapax_client_options options = {
		.size = sizeof(options),
		.journal = path,
		.attempts_max = 1,
		.observe = count,
	};
	struct hapax_client *client = NULL;
	enum hapax_result result = hapax_client_open(&options, &client, problem);

	if (result == HAPAX_OK)
		result = send_one(client, problem);
	if (result == HAPAX_OK)
		result = resume_all(client, problem);
	hapax_client_close(client);
	return result;
}

/* What was sent was written down: there are no more attempts than the journal has. */
static void check_journal(void)
{
	struct hapax_client_options options = { .size = sizeof(options), .journal = path };
	struct hapax_client *client = NULL;
	struct hapax_entry *entries = NULL;
	char problem[HAPAX_PROBLEM_SIZE];
	unsigned written = 0;
	size_t entry_count = 0;

	if (hapax_client_open(&options, &client, problem) != HAPAX_OK ||
	    hapax_client_entries(client, 1, &entries, &entry_count, problem) != HAPAX_OK)
		fail_msg("the journal is of no use: %s", problem);
	for (struct hapax_entry *entry = entries; entry != NULL; entry = entry->next)
		written += entry->attempts;
	hapax_entries_free(entries);
	hapax_client_close(client);
	if (attempts > written)
		fail_msg("%u attempts were begun, and %u are written down", attempts, written);
}

static void the_nth_allocation_fails(void **state)
{
	enum hapax_result result = HAPAX_NOMEM;
	char folder[64], problem[HAPAX_PROBLEM_SIZE];
	bool all = false;
	size_t n;

	(void)state;
	folder_make(folder, sizeof(folder));
	snprintf(path, sizeof(path), "%s/calls.db", folder);
	for (n = 0; !all; n++) {
		attempts = 0;
		memset(problem, 0, sizeof(problem));
		allocations_left = n;
		result = story(problem);
		all = allocations_left != SIZE_MAX;
		allocations_left = SIZE_MAX;
		if (result != HAPAX_OK && problem[0] == '\0')
			fail_msg("allocation %zu: got %d without a word", n, result);
		check_journal();
		folder_empty(folder);
	}
	folder_remove(folder);
	assert_int_equal(result, HAPAX_OK);
	print_message("%zu allocations\n", n - 1);
	assert_true(n > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_nth_allocation_fails),
	};

	return cmocka_run_group_tests_name("client allocation", tests, NULL, NULL);
}
