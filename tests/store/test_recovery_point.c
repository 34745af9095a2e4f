/* Shows what an application leaves with its operation, on every driver: a
 * recovery point with its data, and jobs; in every state, by its own token and
 * by an old one, and what becomes of them over attempts. */
#include "fixture.h"

enum { OWN = 7,
       OLD = 8,
       NEXT = 9,
       BODY = 1 };

static const struct hpx_job job = {
	.name = HPX_SPAN("receipt"),
	.target = HPX_SPAN("mailer"),
	.method = HPX_SPAN("POST"),
	.path = HPX_SPAN("/send?x=1"),
	.headers = HPX_SPAN("Content-Type: application/json\r\n"),
	.body = HPX_SPAN("{\"to\":\"a\"}"),
};

/* An attempt that may be resumed. */
static const char *begin(struct fixture *f, unsigned key, unsigned token)
{
	struct hpx_ask ask = ask_of(f->store, key, BODY, token);
	struct hpx_store_op op = op_of(HPX_VERB_RESERVE, key, token);
	struct hpx_policy p = *policy();

	p.on_lost = HPX_ON_LOST_RESUME;
	p.fenced = true;
	op.reserve.ask = &ask;
	op.reserve.policy = &p;
	assert_status(run_op(f, &op), HPX_OK);
	return hpx_decision_name(op.decision.kind);
}

static enum hpx_status reach(struct fixture *f, unsigned key, unsigned token, const char *point,
			     const char *data)
{
	struct hpx_store_op op = op_of(HPX_VERB_ADVANCE, key, token);

	op.advance.point = hpx_span_of(point);
	op.advance.data = hpx_span_of(data);
	return run_op(f, &op);
}

static enum hpx_status enqueue(struct fixture *f, unsigned key, unsigned token,
			       const struct hpx_job *what)
{
	struct hpx_store_op op = op_of(HPX_VERB_ENQUEUE, key, token);

	op.enqueue.job = what;
	return run_op(f, &op);
}

/* "point:data", or the status. */
static const char *read_point(struct fixture *f, unsigned key, unsigned token)
{
	static char text[256];
	struct hpx_store_op op = op_of(HPX_VERB_READ_POINT, key, token);
	enum hpx_status status = run_op(f, &op);

	snprintf(text, sizeof(text), "%s:%.*s", op.decision.record.point,
		 HPX_SPAN_ARG(hpx_buffer_span(&op.read_point.data)));
	hpx_buffer_done(&op.read_point.data);
	return status == HPX_OK ? text : hpx_status_name(status);
}

static void every_state_by_its_own_token_and_by_an_old_one(void **state)
{
	static const struct {
		enum hpx_state before;
		enum hpx_status write;
		const char *recall;
	} rows[] = {
		{ HPX_STATE_NONE, HPX_STALE, "STALE" },
		{ HPX_STATE_IN_PROGRESS, HPX_OK, ":" },
		{ HPX_STATE_FAILED_RETRYABLE, HPX_STALE, "STALE" },
		{ HPX_STATE_COMPLETED, HPX_REFUSED, ":" },
		{ HPX_STATE_UNKNOWN, HPX_OK, ":" },
	};
	struct fixture *f = *state;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *before = hpx_state_name(rows[i].before);
		bring_to(f, i, rows[i].before, OWN);
		assert_string_equal(read_point(f, i, OLD), "STALE");
		assert_status(reach(f, i, OLD, "charged", ""), HPX_STALE);
		assert_status(enqueue(f, i, OLD, &job), HPX_STALE);
		assert_string_equal(read_point(f, i, OWN), rows[i].recall);
		assert_status(reach(f, i, OWN, "charged", ""), rows[i].write);
		assert_status(enqueue(f, i, OWN, &job), rows[i].write);
		assert_string_equal(state_of(f, i), before);
	}
}

static void a_point_and_its_data_reach_the_next_attempt(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(begin(f, 1, OWN), "created");
	assert_string_equal(read_point(f, 1, OWN), ":");
	assert_status(reach(f, 1, OWN, "charged", "id=1"), HPX_OK);
	assert_status(reach(f, 1, OWN, "booked", "id=1;row=2"), HPX_OK);
	assert_string_equal(read_point(f, 1, OWN), "booked:id=1;row=2");
	assert_status(act(f, HPX_VERB_MARK_UNKNOWN, 1, OWN), HPX_OK);
	assert_status(reach(f, 1, OWN, "late", ""), HPX_STALE);
	assert_string_equal(begin(f, 1, NEXT), "retried");
	assert_string_equal(record_of(f, 1).point, "booked");
	assert_string_equal(read_point(f, 1, NEXT), "booked:id=1;row=2");
	assert_string_equal(read_point(f, 1, OWN), "STALE");
	assert_status(reach(f, 1, NEXT, "sent", ""), HPX_OK);
	assert_string_equal(read_point(f, 1, NEXT), "sent:");
	assert_non_null(strstr(events_of(f, 1), "advanced"));
}

static void an_expired_key_begins_without_them(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(begin(f, 1, OWN), "created");
	assert_status(reach(f, 1, OWN, "charged", "id=1"), HPX_OK);
	assert_status(complete(f, 1, OWN, "done"), HPX_OK);
	advance(f, RETENTION_MS + 1);
	assert_string_equal(begin(f, 1, NEXT), "created");
	assert_string_equal(read_point(f, 1, NEXT), ":");
	/* The job of that name belonged to the operation before. */
	assert_status(enqueue(f, 1, NEXT, &job), HPX_OK);
}

static void what_committed_a_part_is_not_unexecuted(void **state)
{
	struct fixture *f = *state;

	for (unsigned way = 0; way < 2; way++) {
		assert_string_equal(reserve(f, way, BODY, OWN), "created");
		if (way == 0)
			assert_status(reach(f, way, OWN, "charged", ""), HPX_OK);
		else
			assert_status(enqueue(f, way, OWN, &job), HPX_OK);
		assert_status(act(f, HPX_VERB_FAIL, way, OWN), HPX_OK);
		assert_string_equal(state_of(f, way), "unknown");
	}
}

static void a_job_is_named_once_over_all_attempts(void **state)
{
	struct fixture *f = *state;
	struct hpx_job other = job;

	assert_string_equal(begin(f, 1, OWN), "created");
	assert_status(enqueue(f, 1, OWN, &job), HPX_OK);
	assert_status(enqueue(f, 1, OWN, &job), HPX_OK);
	assert_status(act(f, HPX_VERB_MARK_UNKNOWN, 1, OWN), HPX_OK);
	assert_string_equal(begin(f, 1, NEXT), "retried");
	assert_status(enqueue(f, 1, NEXT, &job), HPX_OK);
	other.body = HPX_SPAN("{\"to\":\"b\"}");
	assert_status(enqueue(f, 1, NEXT, &other), HPX_CONFLICT);
	other.name = HPX_SPAN("receipt-2");
	assert_status(enqueue(f, 1, NEXT, &other), HPX_OK);
	/* Another operation's jobs are its own. */
	assert_string_equal(begin(f, 2, OWN), "created");
	other.name = job.name;
	assert_status(enqueue(f, 2, OWN, &other), HPX_OK);
}

static void what_cannot_be_kept_is_refused(void **state)
{
	static const char long_text[256] = { [0 ... 254] = 'x' };
	static const struct {
		const char *name, *target, *method, *path;
	} rows[] = {
		{ "", "mailer", "POST", "/" },
		{ long_text, "mailer", "POST", "/" },
		{ "receipt", "", "POST", "/" },
		{ "receipt", "mailer", "", "/" },
		{ "receipt", "mailer", "post", "/" },
		{ "receipt", "mailer", "PO ST", "/" },
		{ "receipt", "mailer", "POST", "" },
		{ "receipt", "mailer", "POST", "send" },
		{ "receipt", "mailer", "POST", "/a b" },
		{ "receipt", "mailer", "POST", "//h\r\nx" },
		{ "receipt", "mailer", "POST", "https://elsewhere.example/" },
	};
	struct fixture *f = *state;
	/* 255 bytes are allowed, 256 are not. */
	char name[257];
	struct hpx_job edge = job;

	memset(name, 'n', sizeof(name));
	begin(f, 1, OWN);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_job wrong = job;
		wrong.name = rows[i].name == long_text ? hpx_span(name, 256) :
							 hpx_span_of(rows[i].name);
		wrong.target = hpx_span_of(rows[i].target);
		wrong.method = hpx_span_of(rows[i].method);
		wrong.path = hpx_span_of(rows[i].path);
		assert_status(enqueue(f, 1, OWN, &wrong), HPX_INVALID);
	}
	edge.name = hpx_span(name, 255);
	assert_status(enqueue(f, 1, OWN, &edge), HPX_OK);
	assert_status(reach(f, 1, OWN, "", ""), HPX_INVALID);
	assert_status(reach(f, 1, OWN, "two words", ""), HPX_INVALID);
}

static void data_has_its_bound(void **state)
{
	struct fixture *f = *state;
	struct hpx_store_op op = op_of(HPX_VERB_ADVANCE, 1, OWN);
	char *data = calloc(1, HPX_POINT_DATA_MAX + 1);

	assert_non_null(data);
	begin(f, 1, OWN);
	op.advance.point = HPX_SPAN("big");
	op.advance.data = hpx_span(data, HPX_POINT_DATA_MAX + 1);
	assert_status(run_op(f, &op), HPX_TOO_LARGE);
	op.advance.data.len = HPX_POINT_DATA_MAX;
	assert_status(run_op(f, &op), HPX_OK);
	op = op_of(HPX_VERB_READ_POINT, 1, OWN);
	assert_status(run_op(f, &op), HPX_OK);
	assert_int_equal(op.read_point.data.len, HPX_POINT_DATA_MAX);
	hpx_buffer_done(&op.read_point.data);
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_EVERY_DRIVER(every_state_by_its_own_token_and_by_an_old_one),
		ON_EVERY_DRIVER(a_point_and_its_data_reach_the_next_attempt),
		ON_EVERY_DRIVER(an_expired_key_begins_without_them),
		ON_EVERY_DRIVER(what_committed_a_part_is_not_unexecuted),
		ON_EVERY_DRIVER(a_job_is_named_once_over_all_attempts),
		ON_EVERY_DRIVER(what_cannot_be_kept_is_refused),
		ON_EVERY_DRIVER(data_has_its_bound),
	};
	return run_on_drivers("recovery_point", tests);
}
