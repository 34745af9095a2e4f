/* Shows what an operation's caller is told of it, and what a webhook's sender is
 * told of its message. */
#include "../test.h"

#include "gateway/steps.h"
#include "gateway/webhook.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct hpx_record record_of(enum hpx_state state)
{
	struct hpx_record record = { .state = state, .attempt = 1, .created_ms = 1000, .changed_ms = 2000, .expires_ms = 3000 };

	memset(record.mark.bytes, 0x11, sizeof(record.mark.bytes));
	return record;
}

static struct hpx_job_entry *job_of(const struct hpx_record *record, const char *name,
				    enum hpx_job_state state, struct hpx_job_entry *next)
{
	struct hpx_delivery delivery = { .state = state, .attempt = 2, .status = 503, .due_ms = 4000, .mark = record->mark };
	struct hpx_job job = { .name = hpx_span_of(name), .target = HPX_SPAN("secret-target") };
	struct hpx_job_entry *entry = hpx_job_entry_new(&delivery, &job);

	assert_non_null(entry);
	entry->next = next;
	return entry;
}

static void print(const struct hpx_record *record, const struct hpx_job_entry *jobs,
		  const struct hpx_next_question *question, struct hpx_buffer *out)
{
	hpx_buffer_init(out, 4096);
	assert_status(hpx_operation_print(record, jobs, question, out), HPX_OK);
	assert_status(hpx_buffer_byte(out, '\0'), HPX_OK);
}

static void has(const struct hpx_buffer *out, const char *text, bool wanted)
{
	if ((strstr(out->ptr, text) != NULL) != wanted)
		fail_msg("%s has %s%s", out->ptr, wanted ? "no " : "", text);
}

static void a_pending_one_shows_its_job(void **state)
{
	struct hpx_record record = record_of(HPX_STATE_PENDING);
	struct hpx_job_entry *jobs = job_of(&record, "re\"quest", HPX_JOB_QUEUED, NULL);
	struct hpx_job_entry *other = job_of(&record, "earlier", HPX_JOB_DEAD, jobs);
	struct hpx_buffer out;

	(void)state;
	other->delivery.mark.bytes[0] = 0x22; /* of another use of the key */
	print(&record, other, NULL, &out);
	has(&out, "\"state\":\"pending\"", true);
	has(&out, "\"deliver_until\":\"1970-01-01T00:00:03Z\"", true);
	has(&out, "expires", false);
	has(&out, "\"jobs\":[{\"name\":\"re\\\"quest\",\"state\":\"queued\",\"attempt\":2,"
		  "\"status\":503,\"next_try\":\"1970-01-01T00:00:04Z\"}]",
	    true);
	has(&out, "earlier", false);
	has(&out, "secret-target", false);
	has(&out, "next_question", false);
	hpx_buffer_done(&out);
	hpx_job_entry_free(other);
}

static void an_unknown_one_says_who_is_asked(void **state)
{
	struct hpx_record record = record_of(HPX_STATE_UNKNOWN);
	struct hpx_next_question asked = { .at_ms = 5000 }, person = { .person = true };
	struct hpx_next_question nobody = { .at_ms = 0 };
	struct hpx_buffer out;

	(void)state;
	print(&record, NULL, &asked, &out);
	has(&out, "\"next_question\":\"1970-01-01T00:00:05Z\"", true);
	has(&out, "last_error", false);
	hpx_buffer_done(&out);
	record.last_error = HPX_LAST_ERROR_UPSTREAM_RESET;
	print(&record, NULL, &person, &out);
	has(&out, "\"last_error\":\"upstream_reset\"", true);
	has(&out, "\"needs_person\":true", true);
	has(&out, "next_question", false);
	hpx_buffer_done(&out);
	print(&record, NULL, &nobody, &out);
	has(&out, "next_question", false);
	has(&out, "needs_person", false);
	has(&out, "jobs", false);
	hpx_buffer_done(&out);
}

static void retry_after_is_the_next_question(void **state)
{
	static const struct {
		int64_t at_ms, now_ms;
		unsigned seconds;
	} rows[] = {
		{ 0, 1000, 60 },
		{ 1000, 1000, 1 },
		{ 500, 1000, 1 },
		{ 1001, 1000, 1 },
		{ 2000, 1000, 1 },
		{ 2001, 1000, 2 },
		{ 91000, 1000, 90 },
		{ INT64_MAX / 2, 1000, 31536000 },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		unsigned got = hpx_guard_until_s(rows[i].at_ms, rows[i].now_ms);
		if (got != rows[i].seconds)
			fail_msg("row %zu: got %u s, want %u", i, got, rows[i].seconds);
	}
}

static void a_sender_is_told_what_it_came_to(void **state)
{
	static const struct {
		enum hpx_reconcile_move move;
		enum hpx_ruling ruling;
		bool unknown, under_way;
		enum hpx_webhook_result want;
	} rows[] = {
		{ HPX_RECONCILE_SETTLE_APPLIED, HPX_RULING_APPLIED, false, false, HPX_WEBHOOK_settled },
		{ HPX_RECONCILE_SETTLE_DECLINED, HPX_RULING_DECLINED, false, false, HPX_WEBHOOK_settled },
		{ HPX_RECONCILE_SETTLE_NOT_APPLIED, HPX_RULING_NOT_APPLIED, false, false,
		  HPX_WEBHOOK_settled },
		{ HPX_RECONCILE_STAY, HPX_RULING_NOT_APPLIED, true, false, HPX_WEBHOOK_kept },
		{ HPX_RECONCILE_STAY, HPX_RULING_NOT_YET, true, false, HPX_WEBHOOK_kept },
		{ HPX_RECONCILE_STAY, HPX_RULING_APPLIED, false, true, HPX_WEBHOOK_kept },
		{ HPX_RECONCILE_STAY, HPX_RULING_DECLINED, false, true, HPX_WEBHOOK_kept },
		{ HPX_RECONCILE_STAY, HPX_RULING_NOT_APPLIED, false, true, HPX_WEBHOOK_ignored },
		{ HPX_RECONCILE_STAY, HPX_RULING_NOT_YET, false, true, HPX_WEBHOOK_ignored },
		{ HPX_RECONCILE_STAY, HPX_RULING_APPLIED, false, false, HPX_WEBHOOK_ignored },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		enum hpx_webhook_result got = hpx_webhook_result_of(rows[i].move, rows[i].ruling,
								    rows[i].unknown, rows[i].under_way);
		if (got != rows[i].want)
			fail_msg("row %zu: got %s, want %s", i, hpx_webhook_result_name(got),
				 hpx_webhook_result_name(rows[i].want));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pending_one_shows_its_job),
		cmocka_unit_test(an_unknown_one_says_who_is_asked),
		cmocka_unit_test(retry_after_is_the_next_question),
		cmocka_unit_test(a_sender_is_told_what_it_came_to),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
