/* Readers, and what they answer: one operation, lists and counts for people, waiting
 * requests, what people removed. Each has its own connection, opened when it is first needed, and again
 * after it was lost; a database that is away is asked once a second. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/span.h"
#include "store/postgres/outbox.h"

#define RETRY_MS 1000

enum hpx_status hpx_pg_reader_open(struct hpx_store *store, struct hpx_store_reader **ret_reader)
{
	struct hpx_pg_reader *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return HPX_NOMEM;
	r->base.store = store;
	*ret_reader = &r->base;
	return HPX_OK;
}

void hpx_pg_reader_close(struct hpx_store_reader *reader)
{
	struct hpx_pg_reader *r = (struct hpx_pg_reader *)reader;

	hpx_pg_close(&r->db);
	free(r->last);
	free(r);
}

static enum hpx_status connect_reader(struct hpx_pg_reader *r, char *problem)
{
	struct hpx_pg_store *s = hpx_pg_of(r->base.store);
	enum hpx_status status;

	if (r->db.conn != NULL && PQstatus(r->db.conn) == CONNECTION_OK)
		return HPX_OK;
	hpx_pg_close(&r->db);
	if (r->failed_ms != 0 && hpx_clock_boot_ms() - r->failed_ms < RETRY_MS)
		return HPX_UNAVAILABLE;
	r->connections++;
	status = hpx_pg_connect(s->url, HPX_PG_READER, &r->db, problem);
	if (status == HPX_OK)
		status = hpx_pg_prepare(&r->db, HPX_PG_READER, problem);
	if (status != HPX_OK)
		hpx_pg_close(&r->db);
	r->failed_ms = status == HPX_OK ? 0 : hpx_clock_boot_ms();
	return status;
}

static enum hpx_status ask_once(struct hpx_pg_reader *r, enum hpx_pg_statement statement,
				const struct hpx_pg_params *params, PGresult **ret_result)
{
	char problem[HPX_STORE_PROBLEM_SIZE];
	enum hpx_status status = connect_reader(r, problem);

	if (status != HPX_OK)
		return status;
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&r->db, problem);
	hpx_pg_send(&pipe, statement, params);
	PGresult *result = hpx_pg_take(&pipe);
	status = hpx_pg_end(&pipe);
	if (status != HPX_OK || result == NULL) {
		PQclear(result);
		return status != HPX_OK ? status : HPX_IO;
	}
	*ret_result = result;
	return HPX_OK;
}

/* A connection that was lost while it was idle shows only when it is used. */
enum hpx_status hpx_pg_ask(struct hpx_store_reader *reader, enum hpx_pg_statement statement,
			   const struct hpx_pg_params *params, PGresult **ret_result)
{
	struct hpx_pg_reader *r = (struct hpx_pg_reader *)reader;
	bool was_open = r->db.conn != NULL;
	enum hpx_status status = ask_once(r, statement, params, ret_result);

	if (status == HPX_UNAVAILABLE && was_open)
		status = ask_once(r, statement, params, ret_result);
	return status;
}

static enum hpx_status read_entry(const PGresult *result, struct hpx_arena *arena,
				  struct hpx_entry *entry, struct hpx_answer **answer)
{
	struct hpx_pg_row row;
	enum hpx_status status;

	*answer = NULL;
	hpx_pg_row_read(result, 0, &row);
	entry->record = row.found.record;
	entry->readable = row.found.readable;
	status = hpx_pg_description_read(result, 0, arena, &entry->description);
	if (status != HPX_OK || !entry->readable)
		return status;
	/* An attempt after the first may still have the answer of one before it. */
	if (entry->record.state == HPX_STATE_COMPLETED || entry->record.kept)
		status = hpx_pg_answer_read(result, 0, HPX_PG_ANSWER_COLUMN, &entry->record, answer);
	if (status != HPX_CORRUPT)
		return status;
	entry->readable = false;
	return HPX_OK;
}

enum hpx_status hpx_pg_find(struct hpx_store_reader *reader, const struct hpx_operation_id *id,
			    struct hpx_arena *arena, struct hpx_entry *ret_entry,
			    struct hpx_answer **ret_answer)
{
	struct hpx_pg_params params = { .count = 0 };
	struct hpx_answer *answer = NULL;
	struct hpx_entry entry;
	PGresult *result = NULL;
	enum hpx_status status;

	hpx_pg_add_id(&params, id);
	hpx_pg_add_rest(&params, id);
	status = hpx_pg_ask(reader, HPX_PG_FIND, &params, &result);
	if (status != HPX_OK)
		return status;
	status = PQntuples(result) == 1 ? read_entry(result, arena, &entry, &answer) :
					  HPX_NOT_FOUND;
	PQclear(result);
	if (status == HPX_OK)
		*ret_entry = entry;
	if (status == HPX_OK && ret_answer != NULL)
		*ret_answer = answer;
	else
		hpx_answer_free(answer);
	return status;
}

enum hpx_status hpx_pg_recipe(struct hpx_store_reader *reader, const struct hpx_recipe_id *id,
			      struct hpx_arena *arena, struct hpx_span *ret_text)
{
	struct hpx_pg_params params = { .count = 0 };
	struct hpx_span text = { NULL, 0 };
	PGresult *result = NULL;
	enum hpx_status status;

	hpx_pg_add_bytes(&params, hpx_span(id->bytes, sizeof(id->bytes)));
	status = hpx_pg_ask(reader, HPX_PG_RECIPE, &params, &result);
	if (status != HPX_OK)
		return status;
	status = PQntuples(result) == 1 ? HPX_OK : HPX_NOT_FOUND;
	if (status == HPX_OK) {
		text = hpx_arena_dup(arena, hpx_pg_bytes(result, 0, 0));
		status = text.ptr != NULL ? HPX_OK : HPX_NOMEM;
	}
	PQclear(result);
	if (status == HPX_OK)
		*ret_text = text;
	return status;
}

/* Those that the answer does not name are not in progress any more. */
static void mark_ended(const PGresult *result, const struct hpx_operation_id *ids, size_t count,
		       bool *ended)
{
	struct hpx_operation_id id;

	for (size_t i = 0; i < count; i++)
		ended[i] = true;
	for (int row = 0; row < PQntuples(result); row++) {
		if (!hpx_pg_id_read(result, row, &id))
			continue;
		for (size_t i = 0; i < count; i++)
			ended[i] &= !hpx_operation_id_eq(&ids[i], &id);
	}
}

enum hpx_status hpx_pg_watch(struct hpx_store_reader *reader, const struct hpx_operation_id *ids,
			     size_t count, bool *ret_ended)
{
	static const enum hpx_pg_type types[] = { HPX_PG_UUID };
	struct hpx_pg_params params = { .count = 0 };
	struct hpx_pg_columns columns;
	PGresult *result = NULL;
	enum hpx_status status;

	hpx_pg_columns_init(&columns, types, 1);
	for (size_t i = 0; i < count; i++)
		hpx_pg_put_id(&columns, &ids[i]);
	status = hpx_pg_columns_param(&columns, &params);
	if (status == HPX_OK)
		status = hpx_pg_ask(reader, HPX_PG_WATCH, &params, &result);
	if (status == HPX_OK)
		mark_ended(result, ids, count, ret_ended);
	PQclear(result);
	hpx_pg_columns_done(&columns);
	return status;
}

/* ---- lists and counts for people ---- */

static enum hpx_status read_entries(const PGresult *result, struct hpx_arena *arena,
				    struct hpx_entry *entries)
{
	enum hpx_status status = HPX_OK;
	struct hpx_pg_row row;

	for (int i = 0; i < PQntuples(result) && status == HPX_OK; i++) {
		hpx_pg_row_read(result, i, &row);
		entries[i].record = row.found.record;
		entries[i].readable = row.found.readable;
		status = hpx_pg_description_read(result, i, arena, &entries[i].description);
	}
	return status;
}

/* What hapax.aside lists. */
static bool is_aside(enum hpx_state state)
{
	return state == HPX_STATE_FAILED_RETRYABLE || state == HPX_STATE_UNKNOWN ||
	       state == HPX_STATE_PENDING;
}

enum hpx_status hpx_pg_list(struct hpx_store_reader *reader, const struct hpx_query *query,
			    struct hpx_arena *arena, struct hpx_entry **ret_entries,
			    size_t *ret_count)
{
	struct hpx_pg_params params = { .count = 0 };
	struct hpx_entry *entries;
	PGresult *result = NULL;
	enum hpx_status status;

	hpx_pg_add_int8(&params, query->state == HPX_STATE_COUNT ? -1 : (int)query->state);
	hpx_pg_add_bytes(&params, query->key);
	hpx_pg_add_int8(&params, query->before_ms);
	hpx_pg_add_int8(&params, query->limit);
	status = hpx_pg_ask(reader, is_aside(query->state) ? HPX_PG_LIST_ASIDE : HPX_PG_LIST,
			    &params, &result);
	if (status != HPX_OK)
		return status;
	entries = hpx_arena_zalloc(arena, (size_t)PQntuples(result), sizeof(*entries));
	status = entries != NULL ? read_entries(result, arena, entries) : HPX_NOMEM;
	if (status == HPX_OK) {
		*ret_entries = entries;
		*ret_count = (size_t)PQntuples(result);
	}
	PQclear(result);
	return status;
}

static enum hpx_status read_event(const PGresult *result, int row, struct hpx_arena *arena,
				  struct hpx_event *event)
{
	int64_t value = 0;

	hpx_pg_int(result, row, 0, 0, INT64_MAX, &event->at_ms);
	if (hpx_pg_int(result, row, 1, 0, UINT32_MAX, &value))
		event->attempt = (uint32_t)value;
	event->what = hpx_arena_dup(arena, hpx_pg_bytes(result, row, 2));
	event->actor = hpx_arena_dup(arena, hpx_pg_bytes(result, row, 3));
	event->reason = hpx_arena_dup(arena, hpx_pg_bytes(result, row, 4));
	value = 0;
	if (hpx_pg_int(result, row, 5, 0, 999, &value))
		event->status = (uint32_t)value;
	return event->what.ptr && event->actor.ptr && event->reason.ptr ? HPX_OK : HPX_NOMEM;
}

enum hpx_status hpx_pg_events(struct hpx_store_reader *reader, const struct hpx_operation_id *id,
			      struct hpx_arena *arena, struct hpx_event **ret_events,
			      size_t *ret_count)
{
	struct hpx_pg_params params = { .count = 0 };
	struct hpx_event *events;
	PGresult *result = NULL;
	enum hpx_status status;

	hpx_pg_add_id(&params, id);
	hpx_pg_add_rest(&params, id);
	status = hpx_pg_ask(reader, HPX_PG_EVENTS, &params, &result);
	if (status != HPX_OK)
		return status;
	events = hpx_arena_zalloc(arena, (size_t)PQntuples(result), sizeof(*events));
	if (events == NULL)
		status = HPX_NOMEM;
	for (int row = 0; row < PQntuples(result) && status == HPX_OK; row++)
		status = read_event(result, row, arena, &events[row]);
	if (status == HPX_OK) {
		*ret_events = events;
		*ret_count = (size_t)PQntuples(result);
	}
	PQclear(result);
	return status;
}

static uint64_t count_at(const PGresult *result, int column)
{
	int64_t value = 0;

	hpx_pg_int(result, 0, column, 0, INT64_MAX, &value);
	return (uint64_t)value;
}

/* What is neither aside nor under way is completed. */
static void read_counts(const PGresult *result, struct hpx_store_stats *stats)
{
	uint64_t elsewhere = 0, rows = count_at(result, 5);

	stats->operations[HPX_STATE_FAILED_RETRYABLE] = count_at(result, 0);
	stats->operations[HPX_STATE_UNKNOWN] = count_at(result, 1);
	stats->operations[HPX_STATE_PENDING] = count_at(result, 2);
	stats->oldest_unknown_ms = (int64_t)count_at(result, 3);
	stats->operations[HPX_STATE_IN_PROGRESS] = count_at(result, 4);
	for (int i = 0; i < HPX_STATE_COUNT; i++)
		elsewhere += stats->operations[i];
	stats->operations[HPX_STATE_COMPLETED] = rows > elsewhere ? rows - elsewhere : 0;
	stats->updates_hot = count_at(result, 7);
	stats->updates_moved = count_at(result, 6) - stats->updates_hot;
}

/* The narrowest index. */
static enum hpx_pg_statement statement_of(const struct hpx_job_query *query)
{
	if (query->number != 0)
		return HPX_PG_LIST_JOBS_BY_NUMBER;
	if (query->operation != NULL)
		return HPX_PG_LIST_JOBS_BY_OPERATION;
	if (query->provider_id.ptr != NULL)
		return HPX_PG_LIST_JOBS_BY_PROVIDER;
	return HPX_PG_LIST_JOBS;
}

/* Whatever is not text is nobody's name. */
static bool is_text(struct hpx_span name)
{
	return name.len == 0 ||
	       (hpx_utf8_valid(name) && memchr(name.ptr, '\0', name.len) == NULL);
}

static void add_query(struct hpx_pg_params *params, const struct hpx_job_query *query)
{
	static const struct hpx_span any = { NULL, 0 };

	hpx_pg_add_int8(params, query->state == HPX_JOB_STATE_COUNT ? -1 : (int)query->state);
	hpx_pg_add_bytes(params, query->target);
	hpx_pg_add_bytes(params, query->operation == NULL ? any :
							    hpx_span(query->operation->bytes, HPX_PG_HALF));
	hpx_pg_add_bytes(params, query->provider_id);
	hpx_pg_add_int8(params, query->number);
	hpx_pg_add_int8(params, query->before);
	hpx_pg_add_int8(params, query->limit);
}

enum hpx_status hpx_pg_provided(struct hpx_store_reader *reader, struct hpx_span provider_id,
				struct hpx_reference *references, size_t max, size_t *ret_count)
{
	struct hpx_pg_params params = { .count = 0 };
	PGresult *result = NULL;
	size_t count = 0;
	enum hpx_status status;

	hpx_pg_add_bytes(&params, provider_id);
	hpx_pg_add_int8(&params, (int64_t)max);
	status = hpx_pg_ask(reader, HPX_PG_PROVIDED, &params, &result);
	if (status != HPX_OK)
		return status;
	for (int row = 0; row < PQntuples(result) && count < max; row++) {
		struct hpx_reference *r = &references[count];
		if (hpx_pg_id_read(result, row, &r->id) &&
		    hpx_pg_fixed(result, row, 2, r->mark.bytes, sizeof(r->mark.bytes)))
			count++;
	}
	PQclear(result);
	*ret_count = count;
	return HPX_OK;
}

enum hpx_status hpx_pg_jobs(struct hpx_store_reader *reader, const struct hpx_job_query *query,
			    struct hpx_job_entry **ret_jobs)
{
	struct hpx_pg_params params = { .count = 0 };
	struct hpx_job_entry *jobs = NULL, **tail = &jobs;
	PGresult *result = NULL;
	enum hpx_status status;

	if (!is_text(query->target) || !is_text(query->provider_id)) {
		*ret_jobs = NULL;
		return HPX_OK;
	}
	add_query(&params, query);
	status = hpx_pg_ask(reader, statement_of(query), &params, &result);
	if (status != HPX_OK)
		return status;
	for (int row = 0; row < PQntuples(result) && status == HPX_OK; row++) {
		*tail = hpx_pg_job_read(result, row);
		if (*tail == NULL)
			status = HPX_NOMEM;
		else
			tail = &(*tail)->next;
	}
	PQclear(result);
	if (status == HPX_OK)
		*ret_jobs = jobs;
	else
		hpx_job_entry_free(jobs);
	return status;
}

enum hpx_status hpx_pg_question(struct hpx_store_reader *reader, const struct hpx_operation_id *id,
				struct hpx_next_question *ret_question)
{
	struct hpx_next_question question = { .at_ms = 0 };
	struct hpx_pg_params params = { .count = 0 };
	PGresult *result = NULL;
	int64_t person = 0;
	enum hpx_status status;

	hpx_pg_add_id(&params, id);
	status = hpx_pg_ask(reader, HPX_PG_NEXT_QUESTION, &params, &result);
	if (status != HPX_OK)
		return status;
	/* No row, or NULLs: nothing is scheduled. */
	if (PQntuples(result) == 1 && hpx_pg_int(result, 0, 1, 0, 1, &person))
		hpx_pg_int(result, 0, 0, 0, INT64_MAX / 4, &question.at_ms);
	PQclear(result);
	question.person = person == 1;
	*ret_question = question;
	return HPX_OK;
}

static enum hpx_status count_jobs(struct hpx_store_reader *reader, struct hpx_store_stats *stats)
{
	PGresult *result = NULL;
	enum hpx_status status = hpx_pg_ask(reader, HPX_PG_COUNT_JOBS, NULL, &result);
	int column = 0;

	if (status != HPX_OK)
		return status;
	if (PQntuples(result) == 1) {
		for (int state = HPX_JOB_QUEUED; state < HPX_JOB_STATE_COUNT; state++)
			stats->jobs[state] = count_at(result, column++);
		stats->oldest_queued_ms = (int64_t)count_at(result, column++);
		int64_t lost_ms = (int64_t)count_at(result, column++);
		if (lost_ms != 0 &&
		    (stats->oldest_unknown_ms == 0 || lost_ms < stats->oldest_unknown_ms))
			stats->oldest_unknown_ms = lost_ms;
		stats->dead_operations = count_at(result, column++);
		stats->dead_jobs = count_at(result, column) + stats->jobs[HPX_JOB_DEAD];
	}
	PQclear(result);
	return HPX_OK;
}

enum hpx_status hpx_pg_stats(struct hpx_store_reader *reader, struct hpx_store_stats *ret_stats)
{
	struct hpx_store_stats stats = { .free_bytes = UINT64_MAX };
	PGresult *result = NULL;
	enum hpx_status status = hpx_pg_ask(reader, HPX_PG_COUNTS, NULL, &result);

	if (status != HPX_OK)
		return status;
	if (PQntuples(result) == 1)
		read_counts(result, &stats);
	PQclear(result);
	status = count_jobs(reader, &stats);
	if (status == HPX_OK)
		*ret_stats = stats;
	return status;
}

/* ---- what people removed, from the history ----
 *
 * An event carries the time at which its
 * row was judged, and is seen when its transaction has committed, later and in
 * any order. So each query looks back over more time than such a
 * transaction can last, and what the one before it did not see is new.
 *
 * How long one can last: behind its look at the clock, a FORGET or RESOLVE runs
 * at most eight statements (the answer or its job, four removals or a row and its
 * answer, the event, the mark, the commit), each of at most ten seconds
 * (statement_timeout, which the wait for a standby is part of), with two pauses of
 * at most five (idle_in_transaction_session_timeout): 90 seconds. A clock that is
 * set ahead between two queries moves the second one's view no further than the
 * first one's. What somebody deletes by SQL of their own leaves no event, and no
 * node hears of it before the answer expires or the gateway is started again.
 *
 * A new connection may be to another server, which may never have had what this
 * one told: it begins anew. */
#define LOOK_BACK_MS 120000

/* What the last answer held, in order. */
struct hpx_pg_last_removals {
	unsigned connection; /* the one it came by; 0: none */
	int64_t now_ms;      /* the database's clock then */
	size_t count;
	int64_t seq[HPX_REMOVALS_MAX];
};

static bool was_reported(const struct hpx_pg_last_removals *last, int64_t seq, size_t *from)
{
	while (*from < last->count && last->seq[*from] < seq)
		(*from)++;
	return *from < last->count && last->seq[*from] == seq;
}

static bool read_row(const PGresult *result, int row, int64_t *ret_seq,
		     struct hpx_operation_id *ret_id)
{
	return hpx_pg_int(result, row, 1, INT64_MIN, INT64_MAX, ret_seq) &&
	       hpx_pg_fixed(result, row, 2, ret_id->bytes, HPX_PG_HALF) &&
	       hpx_pg_fixed(result, row, 3, ret_id->bytes + HPX_PG_HALF, HPX_PG_HALF);
}

/* Both lists are in order: what is only in the new one. */
static void compare(const PGresult *result, const struct hpx_pg_last_removals *before,
		    struct hpx_pg_last_removals *after, struct hpx_removals *removals)
{
	size_t from = 0;

	for (int row = 0; row < PQntuples(result); row++) {
		struct hpx_operation_id id;
		int64_t seq;
		if (PQgetisnull(result, row, 1))
			return; /* no event at all */
		if (after->count == HPX_REMOVALS_MAX || !read_row(result, row, &seq, &id)) {
			removals->all = true;
			return;
		}
		after->seq[after->count++] = seq;
		if (!was_reported(before, seq, &from))
			removals->ids[removals->count++] = id;
	}
}

static enum hpx_status take(struct hpx_pg_reader *r, const PGresult *result,
			    struct hpx_removals *removals)
{
	struct hpx_pg_last_removals *after = calloc(1, sizeof(*after));

	if (after == NULL)
		return HPX_NOMEM;
	if (PQntuples(result) < 1 ||
	    !hpx_pg_int(result, 0, 0, 0, INT64_MAX / 4, &after->now_ms)) {
		free(after);
		return HPX_CORRUPT;
	}
	after->connection = r->connections;
	removals->all = r->last->connection != after->connection;
	removals->count = 0;
	compare(result, r->last, after, removals);
	free(r->last);
	r->last = after;
	return HPX_OK;
}

enum hpx_status hpx_pg_removals(struct hpx_store_reader *reader,
				struct hpx_removals *ret_removals)
{
	struct hpx_pg_reader *r = (struct hpx_pg_reader *)reader;
	struct hpx_pg_params params = { .count = 0 };
	PGresult *result = NULL;
	enum hpx_status status;

	if (r->last == NULL)
		r->last = calloc(1, sizeof(*r->last));
	if (r->last == NULL)
		return HPX_NOMEM;
	hpx_pg_add_int8(&params, r->last->connection != 0 ? r->last->now_ms : INT64_MAX);
	hpx_pg_add_int8(&params, LOOK_BACK_MS);
	hpx_pg_add_int8(&params, HPX_REMOVALS_MAX + 1);
	status = hpx_pg_ask(reader, HPX_PG_REMOVALS, &params, &result);
	if (status == HPX_OK)
		status = take(r, result, ret_removals);
	PQclear(result);
	return status;
}
