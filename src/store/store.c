/* The wrappers around every driver: they pick it, measure time, count errors
 * and let tests inject faults. What a store keeps is the drivers' affair. */
#include "store/store.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "store/memory/memory.h"
#include "store/postgres/postgres.h"
#include "store/sqlite/sqlite.h"

/* The table of drivers: the one place outside its own folder where a driver is
 * named. Two rows may be of one driver. */
struct driver_row {
	const char *scheme;
	const char *form; /* what a URL begins with */
	bool has_rest;    /* something must stand behind it; else nothing may */
	unsigned capabilities;
	enum hpx_lent_connection lent;
	const struct hpx_store_driver *driver;
};

#define SQLITE_CAN \
	(HPX_STORE_PERSISTS | HPX_STORE_FILE | HPX_STORE_OUTBOX | HPX_STORE_LOCAL | \
	 HPX_STORE_TELLS_REMOVALS | HPX_STORE_SCHEMA)
#define POSTGRES_CAN \
	(HPX_STORE_PERSISTS | HPX_STORE_SHARED | HPX_STORE_OUTBOX | HPX_STORE_TELLS_REMOVALS | \
	 HPX_STORE_SCHEMA)
#define MEMORY_CAN HPX_STORE_LOCAL

static const struct driver_row drivers[] = {
	{ "sqlite", HPX_STORE_FILE_URL, true, SQLITE_CAN, HPX_LENT_SQLITE3, &hpx_store_sqlite_driver },
	{ "postgres", "postgres://", true, POSTGRES_CAN, HPX_LENT_PGCONN, &hpx_store_postgres_driver },
	{ "postgresql", "postgresql://", true, POSTGRES_CAN, HPX_LENT_PGCONN, &hpx_store_postgres_driver },
	{ "memory", "memory:", false, MEMORY_CAN, HPX_LENT_NONE, &hpx_store_memory_driver },
};
#define DRIVER_COUNT (sizeof(drivers) / sizeof(drivers[0]))

static const struct {
	const char *name;
	unsigned traits;
} verbs[HPX_VERB_COUNT] = {
#define X(name, traits) { #name, traits },
	HPX_VERB_LIST(X)
#undef X
};

const char *hpx_verb_name(enum hpx_verb verb)
{
	HPX_ASSERT(verb < HPX_VERB_COUNT);
	/* The name that operators' log filters know. */
	return verb == HPX_VERB_MARK_UNKNOWN ? "LOSE" : verbs[verb].name;
}

bool hpx_verb_has(enum hpx_verb verb, enum hpx_trait trait)
{
	HPX_ASSERT(verb < HPX_VERB_COUNT);
	return (verbs[verb].traits & trait) != 0;
}

void hpx_store_problem(char *problem, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(problem, HPX_STORE_PROBLEM_SIZE, format, args);
	va_end(args);
}

#ifdef HPX_STEPS
static int64_t shift_of_environment(void)
{
	struct hpx_span text = hpx_span_of(getenv("HAPAX_TEST_WALL_SHIFT_MS"));
	bool back = hpx_span_starts(text, HPX_SPAN("-"));
	uint64_t value = 0;

	if (back)
		text = hpx_span_skip(text, 1);
	if (text.len == 0 || !hpx_span_u64(text, INT64_MAX / 2, &value))
		return 0;
	return back ? -(int64_t)value : (int64_t)value;
}
#else
static int64_t shift_of_environment(void)
{
	return 0;
}
#endif

void hpx_store_init(struct hpx_store *store, const struct hpx_store_driver *driver)
{
	store->driver = driver;
	hpx_random(&store->owner, sizeof(store->owner));
	atomic_store(&store->wall_shift_ms, shift_of_environment());
}

struct hpx_moment hpx_store_moment(struct hpx_store *store)
{
	struct hpx_now now = hpx_clock_now();
	struct hpx_moment moment = {
		.wall_ms = now.wall_ms + atomic_load(&store->wall_shift_ms),
		.lease_ms = now.boot_ms + atomic_load(&store->lease_shift_ms),
		.hold_expiry = atomic_load(&store->expiry_held),
	};
	int64_t ahead_ms = atomic_load(&store->ahead_ms);
	int64_t parted_ms = moment.wall_ms - moment.lease_ms - ahead_ms;

	if (ahead_ms != 0 &&
	    (parted_ms > HPX_CLOCK_PARTED_MS || parted_ms < -HPX_CLOCK_PARTED_MS))
		moment.hold_expiry = true;
	return moment;
}

/* ---- which driver ---- */

static bool has_scheme(struct hpx_span url, const char *scheme)
{
	struct hpx_span name = hpx_span_of(scheme);

	return hpx_span_starts(url, name) && url.len > name.len && url.ptr[name.len] == ':';
}

/* NULL: no driver reads this. */
static const struct driver_row *row_of(struct hpx_span url)
{
	for (size_t i = 0; i < DRIVER_COUNT; i++)
		if (has_scheme(url, drivers[i].scheme))
			return &drivers[i];
	return NULL;
}

bool hpx_store_url_can(struct hpx_span url, enum hpx_capability capability)
{
	const struct driver_row *row = row_of(url);

	return row != NULL && (row->capabilities & capability) != 0;
}

bool hpx_store_url_valid(struct hpx_span url)
{
	const struct driver_row *row = row_of(url);
	struct hpx_span form;

	if (row == NULL)
		return false;
	form = hpx_span_of(row->form);
	return hpx_span_starts(url, form) && (url.len > form.len) == row->has_rest;
}

struct hpx_span hpx_store_url_path(struct hpx_span url)
{
	if (!hpx_store_url_can(url, HPX_STORE_FILE))
		return HPX_SPAN("");
	return hpx_span_skip(url, strlen(HPX_STORE_FILE_URL));
}

/* A capability stands for the slots that come with it. */
static void check_slots(const struct driver_row *row)
{
	const struct hpx_store_driver *driver = row->driver;
	unsigned can = row->capabilities;

	HPX_ASSERT((driver->jobs != NULL) == ((can & HPX_STORE_OUTBOX) != 0));
	HPX_ASSERT((driver->peek != NULL) == ((can & HPX_STORE_LOCAL) != 0));
	HPX_ASSERT((driver->watch != NULL) == ((can & HPX_STORE_SHARED) != 0));
	HPX_ASSERT((driver->removals != NULL) == ((can & HPX_STORE_TELLS_REMOVALS) != 0));
	HPX_ASSERT((driver->migrate != NULL) == ((can & HPX_STORE_SCHEMA) != 0));
	HPX_ASSERT((driver->schema != NULL) == ((can & HPX_STORE_SCHEMA) != 0));
}

static enum hpx_status refuse_url(char *problem)
{
	hpx_store_problem(problem, "the store's address must begin with sqlite:, postgres:// or "
				   "memory:");
	return HPX_INVALID;
}

enum hpx_status hpx_store_open(const struct hpx_store_options *options,
			       struct hpx_store **ret_store, char *problem)
{
	const struct driver_row *row = row_of(options->url);
	char unread[HPX_STORE_PROBLEM_SIZE];
	enum hpx_status status;

	if (problem == NULL)
		problem = unread;
	problem[0] = '\0';
	if (row == NULL)
		return refuse_url(problem);
	check_slots(row);
	status = row->driver->open(options, ret_store, problem);
	if (status == HPX_OK)
		(*ret_store)->capabilities = row->capabilities;
	return status;
}

void hpx_store_each_schema(void (*tell)(void *user, const char *scheme, unsigned number),
			   void *user)
{
	const struct hpx_store_driver *last = NULL;

	for (size_t i = 0; i < DRIVER_COUNT; i++) {
		const struct hpx_store_driver *driver = drivers[i].driver;

		/* The rows of one driver stand together. */
		if (driver->schema != NULL && driver != last)
			tell(user, drivers[i].scheme, driver->schema());
		last = driver;
	}
}

enum hpx_status hpx_store_migrate(const struct hpx_store_options *options,
				  struct hpx_store_migration *ret_migration, char *problem)
{
	const struct driver_row *row = row_of(options->url);

	problem[0] = '\0';
	if (row == NULL)
		return refuse_url(problem);
	if (row->driver->migrate == NULL)
		return HPX_UNSUPPORTED;
	return row->driver->migrate(options, ret_migration, problem);
}

enum hpx_status hpx_store_repair(const struct hpx_store_options *options, bool accept,
				 struct hpx_store_repair *ret_repair, char *problem)
{
	const struct driver_row *row = row_of(options->url);

	HPX_ASSERT(ret_repair->tell != NULL);
	problem[0] = '\0';
	if (row == NULL)
		return refuse_url(problem);
	if (row->driver->repair == NULL)
		return HPX_UNSUPPORTED;
	return row->driver->repair(options, accept, ret_repair, problem);
}

static const struct hpx_store_driver *driver_of(enum hpx_lent_connection kind)
{
	size_t i = 0;

	HPX_ASSERT(kind != HPX_LENT_NONE);
	while (i < DRIVER_COUNT && drivers[i].lent != kind)
		i++;
	HPX_ASSERT(i < DRIVER_COUNT);
	return drivers[i].driver;
}

enum hpx_status hpx_store_borrow(enum hpx_lent_connection kind, void *connection,
				 struct hpx_store **ret_store, char *problem)
{
	return driver_of(kind)->borrow(connection, ret_store, problem);
}

enum hpx_status hpx_store_install(enum hpx_lent_connection kind, void *connection, char *problem)
{
	return driver_of(kind)->install(connection, problem);
}

void hpx_store_close(struct hpx_store *store)
{
	if (store == NULL)
		return;
	hpx_store_close(store->second);
	store->driver->close(store);
}

void hpx_store_open_second(struct hpx_store *store)
{
	char unread[HPX_STORE_PROBLEM_SIZE];

	HPX_ASSERT(store->second == NULL && store->first == NULL);
	if (store->driver->second == NULL ||
	    store->driver->second(store, &store->second, unread) != HPX_OK)
		return;
	store->second->first = store;
}

static enum hpx_status fault_at(struct hpx_store *store, enum hpx_store_point point, char *problem)
{
	enum hpx_status status = HPX_OK;

	if (store->fault != NULL)
		status = store->fault(store->fault_user, point);
	if (status != HPX_OK && problem != NULL)
		hpx_store_problem(problem, "a fault was injected");
	return status;
}

/* The results of one verb; nothing that they point to is freed. */
static void clear_own_results(struct hpx_store_op *op)
{
	switch (op->verb) {
	case HPX_VERB_RESERVE:
		op->reserve.row = 0;
		op->reserve.replay = NULL;
		break;
	case HPX_VERB_COMPLETE:
		op->complete.already = false;
		break;
	case HPX_VERB_CONCLUDE:
		op->conclude.already = false;
		break;
	case HPX_VERB_READ_POINT:
		op->read_point.data = (struct hpx_buffer){ .ptr = NULL };
		break;
	case HPX_VERB_SWEEP:
		op->sweep.count = 0;
		op->sweep.more = false;
		break;
	case HPX_VERB_SWEEP_JOBS:
		op->sweep_jobs.count = 0;
		op->sweep_jobs.more = false;
		break;
	case HPX_VERB_REAP:
		op->reap.count = 0;
		op->reap.more = false;
		break;
	case HPX_VERB_CLAIM:
		op->claim.jobs = NULL;
		op->claim.count = 0;
		break;
	case HPX_VERB_JOB:
		op->job.after = NULL;
		break;
	case HPX_VERB_CLAIM_UNKNOWN:
		op->claim_unknown.unsettled = NULL;
		op->claim_unknown.count = 0;
		break;
	case HPX_VERB_ESCALATE:
		op->escalate.unsettled = NULL;
		op->escalate.count = 0;
		break;
	default:
		break;
	}
}

static void clear_results(struct hpx_store_op *op)
{
	op->status = HPX_OK;
	op->decision = (struct hpx_decision){ .kind = HPX_DECISION_COUNT };
	op->judged_ms = 0;
	clear_own_results(op);
}

void hpx_store_op_drop(struct hpx_store_op *op)
{
	switch (op->verb) {
	case HPX_VERB_RESERVE:
		hpx_answer_free(op->reserve.replay);
		break;
	case HPX_VERB_READ_POINT:
		hpx_buffer_done(&op->read_point.data);
		break;
	case HPX_VERB_CLAIM:
		hpx_job_entry_free(op->claim.jobs);
		break;
	case HPX_VERB_JOB:
		hpx_job_entry_free(op->job.after);
		break;
	case HPX_VERB_CLAIM_UNKNOWN:
		hpx_unsettled_free(op->claim_unknown.unsettled);
		break;
	default:
		break;
	}
	clear_results(op);
}

/* Nothing is known of a batch that failed: no result may be used. What was
 * released before is its submitter's again. */
static void drop_results(struct hpx_store_op **ops, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (ops[i] != NULL)
			hpx_store_op_drop(ops[i]);
}

enum hpx_status hpx_store_run(struct hpx_store *store, struct hpx_store_op **ops, size_t count,
			      char *problem)
{
	char unread[HPX_STORE_PROBLEM_SIZE];
	struct hpx_store *counted = store->first != NULL ? store->first : store;
	int64_t begun_us = hpx_clock_boot_us();

	HPX_ASSERT(count > 0);
	if (problem == NULL)
		problem = unread;
	problem[0] = '\0';
	for (size_t i = 0; i < count; i++)
		clear_results(ops[i]);
	enum hpx_status status = fault_at(store, HPX_STORE_RUN_BEFORE, problem);
	if (status == HPX_OK)
		status = store->driver->run(store, ops, count, problem);
	if (status == HPX_OK)
		status = fault_at(store, HPX_STORE_RUN_AFTER, problem);
	if (status != HPX_OK) {
		drop_results(ops, count);
		hpx_counter_add(&counted->errors, 1);
		return status;
	}
	hpx_histogram_add(&counted->commit_us, (uint64_t)(hpx_clock_boot_us() - begun_us));
	hpx_histogram_add(&counted->batch_ops, count);
	return HPX_OK;
}

void hpx_store_release(struct hpx_store *store, struct hpx_store_op **op)
{
	struct hpx_store_op *released = *op;

	HPX_ASSERT(released != NULL && released->status != HPX_BUSY); /* once, and for good */
	if (store->released == NULL)
		return;
	*op = NULL;
	store->released(store->released_user, released);
}

enum hpx_status hpx_store_recover(struct hpx_store *store, char *problem)
{
	char unread[HPX_STORE_PROBLEM_SIZE];

	if (problem == NULL)
		problem = unread;
	problem[0] = '\0';
	enum hpx_status status = fault_at(store, HPX_STORE_RECOVER_BEFORE, problem);
	if (status == HPX_OK)
		status = store->driver->recover(store, problem);
	if (status == HPX_OK)
		status = fault_at(store, HPX_STORE_RECOVER_AFTER, problem);
	return status;
}

enum hpx_status hpx_store_maintain(struct hpx_store *store, char *problem)
{
	char unread[HPX_STORE_PROBLEM_SIZE];

	if (problem == NULL)
		problem = unread;
	problem[0] = '\0';
	if (store->second != NULL)
		(void)store->driver->maintain(store->second, problem); /* nobody depends on it */
	return store->driver->maintain(store, problem);
}

enum hpx_status hpx_store_reader_open(struct hpx_store *store, struct hpx_store_reader **ret_reader)
{
	return store->driver->reader_open(store, ret_reader);
}

void hpx_store_reader_close(struct hpx_store_reader *reader)
{
	if (reader != NULL)
		reader->store->driver->reader_close(reader);
}

enum hpx_space hpx_space_judge(uint64_t disk_bytes, uint64_t file_bytes, uint64_t wanted_bytes)
{
	if (disk_bytes < wanted_bytes / HPX_SPACE_LOG_SHARE)
		return HPX_SPACE_LOG_LOW;
	if (disk_bytes < wanted_bytes && file_bytes < wanted_bytes - disk_bytes)
		return HPX_SPACE_LOW;
	return HPX_SPACE_ENOUGH;
}

enum hpx_status hpx_store_peek(struct hpx_store_reader *reader, const struct hpx_ask *ask,
			       const struct hpx_policy *policy, struct hpx_decision *ret_decision,
			       struct hpx_answer **ret_replay)
{
	enum hpx_status status = fault_at(reader->store, HPX_STORE_PEEK_BEFORE, NULL);

	if (status != HPX_OK)
		return status;
	if (reader->store->driver->peek == NULL)
		return HPX_NOT_FOUND;
	return reader->store->driver->peek(reader, ask, policy, ret_decision, ret_replay);
}

enum hpx_status hpx_store_find(struct hpx_store_reader *reader, const struct hpx_operation_id *id,
			       struct hpx_arena *arena, struct hpx_entry *ret_entry,
			       struct hpx_answer **ret_answer)
{
	return reader->store->driver->find(reader, id, arena, ret_entry, ret_answer);
}

enum hpx_status hpx_store_list(struct hpx_store_reader *reader, const struct hpx_query *query,
			       struct hpx_arena *arena, struct hpx_entry **ret_entries,
			       size_t *ret_count, struct hpx_looked *ret_looked)
{
	struct hpx_query with_hash = *query;
	char hash[HPX_KEY_HASH_SIZE];
	enum hpx_status status = HPX_OK;

	HPX_ASSERT(query->limit > 0);
	if (query->key.ptr != NULL)
		status = hpx_key_hash_print(query->key, hash);
	if (status != HPX_OK)
		return status;
	with_hash.key_hash = query->key.ptr != NULL ? hpx_span_of(hash) : query->key;
	return reader->store->driver->list(reader, &with_hash, arena, ret_entries, ret_count,
					   ret_looked);
}

enum hpx_status hpx_store_events(struct hpx_store_reader *reader, const struct hpx_operation_id *id,
				 struct hpx_arena *arena, struct hpx_event **ret_events,
				 size_t *ret_count)
{
	return reader->store->driver->events(reader, id, arena, ret_events, ret_count);
}

enum hpx_status hpx_store_recipe(struct hpx_store_reader *reader, const struct hpx_recipe_id *id,
				 struct hpx_arena *arena, struct hpx_span *ret_text)
{
	return reader->store->driver->recipe(reader, id, arena, ret_text);
}

enum hpx_status hpx_store_stats(struct hpx_store_reader *reader, struct hpx_store_stats *ret_stats)
{
	return reader->store->driver->stats(reader, ret_stats);
}

enum hpx_status hpx_store_history(struct hpx_store_reader *reader,
				  const struct hpx_history_query *query, struct hpx_arena *arena,
				  struct hpx_history *ret_history)
{
	const struct hpx_store_driver *driver = reader->store->driver;

	return driver->history != NULL ? driver->history(reader, query, arena, ret_history) :
					 HPX_UNSUPPORTED;
}

enum hpx_status hpx_store_jobs(struct hpx_store_reader *reader, const struct hpx_job_query *query,
			       struct hpx_job_entry **ret_jobs)
{
	const struct hpx_store_driver *driver = reader->store->driver;

	return driver->jobs != NULL ? driver->jobs(reader, query, ret_jobs) : HPX_UNSUPPORTED;
}

enum hpx_status hpx_store_provided(struct hpx_store_reader *reader, struct hpx_span provider_id,
				   struct hpx_reference *references, size_t max, size_t *ret_count)
{
	const struct hpx_store_driver *driver = reader->store->driver;

	*ret_count = 0;
	return driver->provided != NULL ?
		       driver->provided(reader, provider_id, references, max, ret_count) :
		       HPX_UNSUPPORTED;
}

enum hpx_status hpx_route_key_hash(struct hpx_span upstream, struct hpx_span route,
				   struct hpx_span key, uint8_t ret_hash[static HPX_ROUTE_KEY_HASH_SIZE])
{
	uint8_t whole[HPX_SHA256_SIZE];
	struct hpx_sha256 hash;
	enum hpx_status status;

	hpx_sha256_init(&hash);
	hpx_sha256_part(&hash, HPX_SPAN("route_key"));
	hpx_sha256_part(&hash, upstream);
	hpx_sha256_part(&hash, route);
	hpx_sha256_part(&hash, key);
	status = hpx_sha256_done(&hash, whole);
	if (status == HPX_OK)
		memcpy(ret_hash, whole, HPX_ROUTE_KEY_HASH_SIZE);
	return status;
}

static bool is_known_keyed(const struct hpx_store_reader *reader, const struct hpx_keyed_route *route)
{
	for (unsigned i = 0; i < HPX_KEYED_ROUTES_MAX && i < reader->keyed_count; i++)
		if (reader->keyed[i].since_ms == route->since_ms &&
		    memcmp(reader->keyed[i].hash, route->hash, sizeof(route->hash)) == 0)
			return true;
	return false;
}

/* An operation without its route_key began before `since_ms`; once that is over and none is
 * left, there is none any more. */
static enum hpx_status find_hidden(struct hpx_store_reader *reader, const struct hpx_key_query *query,
				   int64_t since_ms, bool *ret_hidden)
{
	struct hpx_keyed_route route = { .since_ms = since_ms };
	enum hpx_status status =
		hpx_route_key_hash(query->upstream, query->route, HPX_SPAN(""), route.hash);

	if (status != HPX_OK || is_known_keyed(reader, &route)) {
		*ret_hidden = false;
		return status;
	}
	status = reader->store->driver->unkeyed(reader, query, since_ms, ret_hidden);
	if (status == HPX_OK && !*ret_hidden && hpx_store_moment(reader->store).wall_ms >= since_ms)
		reader->keyed[reader->keyed_count++ % HPX_KEYED_ROUTES_MAX] = route;
	return status;
}

enum hpx_status hpx_store_keyed(struct hpx_store_reader *reader, const struct hpx_key_query *query,
				struct hpx_key_matches *ret_matches)
{
	const struct hpx_store_driver *driver = reader->store->driver;
	int64_t since_ms = 0;
	enum hpx_status status;

	*ret_matches = (struct hpx_key_matches){ .hidden = true };
	if (driver->keyed == NULL)
		return HPX_UNSUPPORTED;
	status = driver->keyed(reader, query, ret_matches, &since_ms);
	if (status != HPX_OK || since_ms == 0)
		return status;
	return find_hidden(reader, query, since_ms, &ret_matches->hidden);
}

enum hpx_status hpx_store_question(struct hpx_store_reader *reader,
				   const struct hpx_operation_id *id,
				   struct hpx_next_question *ret_question)
{
	const struct hpx_store_driver *driver = reader->store->driver;

	return driver->question != NULL ? driver->question(reader, id, ret_question) :
					  HPX_NOT_FOUND;
}

enum hpx_status hpx_store_lanes(struct hpx_store_reader *reader, struct hpx_arena *arena,
				struct hpx_lane_due **ret_lanes, size_t *ret_count)
{
	const struct hpx_store_driver *driver = reader->store->driver;

	*ret_count = 0;
	return driver->lanes != NULL ? driver->lanes(reader, arena, ret_lanes, ret_count) : HPX_OK;
}

enum hpx_status hpx_store_due(struct hpx_store_reader *reader, struct hpx_span lane,
			      int64_t from_ms, struct hpx_due *due, size_t max, size_t *ret_count)
{
	const struct hpx_store_driver *driver = reader->store->driver;

	*ret_count = 0;
	return driver->due != NULL ? driver->due(reader, lane, from_ms, due, max, ret_count) : HPX_OK;
}

enum hpx_status hpx_store_watch(struct hpx_store_reader *reader, const struct hpx_operation_id *ids,
				size_t count, bool *ret_ended)
{
	return reader->store->driver->watch(reader, ids, count, ret_ended);
}

enum hpx_status hpx_store_removals(struct hpx_store_reader *reader,
				   struct hpx_removals *ret_removals)
{
	return reader->store->driver->removals(reader, ret_removals);
}
