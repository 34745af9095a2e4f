/* run(): a batch of ops in one transaction.
 *
 *  batch_begun      BEGIN IMMEDIATE: the write lock is held; what follows sees
 *                   everything that was ever committed.
 *  batch_written    every op read its row, asked the rules, wrote its row. A
 *                   crash until here leaves no trace of any of them.
 *  batch_committed  the log is fsynced. A crash from here on leaves all of
 *                   them; their submitters were told nothing, and find out by
 *                   their tokens.
 */
#include "base/clock.h"
#include "base/crash_point.h"
#include "store/sqlite/driver.h"

/* How often file and clocks are looked at. */
#define CHECK_MS 1000

/* A file that was deleted or replaced under us still takes writes, and a
 * restart would find none of them. */
static enum hpx_status check_file(struct hpx_sqlite_store *s, char *problem)
{
	int moved = 0;

	sqlite3_file_control(s->writer.handle, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
	if (moved == 0)
		return HPX_OK;
	hpx_store_problem(problem, "%s was moved, replaced or deleted while it is in use", s->path);
	return HPX_IO;
}

static enum hpx_status check_now_and_then(struct hpx_sqlite_store *s, char *problem)
{
	int64_t now_ms = hpx_clock_boot_ms();
	enum hpx_status status;

	if (s->checked_ms != 0 && now_ms - s->checked_ms < CHECK_MS)
		return HPX_OK;
	status = check_file(s, problem);
	if (status == HPX_OK)
		status = hpx_sqlite_clock_check(s, &s->writer, s->serve);
	if (status == HPX_OK)
		s->checked_ms = now_ms;
	return status;
}

/* Of a server, what is dead was found when it opened the file. */
static bool counts_on_boot(const struct hpx_store_op *op)
{
	return op->verb == HPX_VERB_RESERVE && op->reserve.ask != NULL && op->reserve.ask->owner == 0 && !op->reserve.look;
}

static enum hpx_status write_op(struct hpx_sqlite_store *s, const struct hpx_sqlite_row *row,
				const struct hpx_change *change, const struct hpx_moment *now,
				struct hpx_store_op *op)
{
	enum hpx_status status = hpx_sqlite_job_put(s, change, now, op);

	if (status == HPX_OK && op->status == HPX_OK)
		status = hpx_sqlite_conclude(s, row, change, now, op);
	if (status == HPX_OK && op->status == HPX_OK)
		status = hpx_sqlite_change_write(s, row, change, op);
	return status;
}

/* The op's token names no attempt in progress: whatever the server held for it is over,
 * also where somebody else ended the attempt. */
static void note_end(struct hpx_sqlite_store *s, const struct hpx_sqlite_row *row,
		     const struct hpx_store_op *op)
{
	const struct hpx_record *record = &row->found.record;

	if (!s->serve || op->verb == HPX_VERB_RESERVE || hpx_token_is_void(&op->token))
		return;
	if (!row->found.exists || record->state != HPX_STATE_IN_PROGRESS ||
	    !hpx_token_eq(&record->token, &op->token))
		hpx_sqlite_lease_end(&s->leases, &op->token, &op->id);
}

/* What was found, judged and written. `*answer` is given away where it is replayed. */
static enum hpx_status run_found(struct hpx_sqlite_store *s, const struct hpx_sqlite_row *row,
				 struct hpx_answer **answer, struct hpx_store_op *op)
{
	struct hpx_moment now = hpx_store_moment(&s->base);
	struct hpx_change change;

	hpx_change_make(&row->found, op, &now, atomic_load(&s->base.space_low), &change);
	note_end(s, row, op);
	if (op->status != HPX_OK)
		return HPX_OK;
	/* A new key may be one whose row is lost. */
	if (change.write == HPX_WRITE_INSERT && atomic_load(&s->damaged)) {
		op->status = HPX_UNAVAILABLE;
		op->decision = (struct hpx_decision){ .kind = HPX_DECISION_COUNT };
		return HPX_OK;
	}
	if (op->verb == HPX_VERB_RESERVE && op->decision.kind == HPX_DECISION_REPLAY) {
		op->reserve.replay = *answer;
		*answer = NULL;
	}
	if (op->verb == HPX_VERB_READ_POINT)
		return hpx_sqlite_read_point(&s->writer, row, op);
	return write_op(s, row, &change, &now, op);
}

/* The slow path. What lacks memory, or cannot be read or believed, is the op's own trouble: nothing
 * of it was written. */
static enum hpx_status run_slowly(struct hpx_sqlite_store *s, struct hpx_store_op *op)
{
	struct hpx_answer *answer = NULL;
	struct hpx_sqlite_want want = { .answer = op->verb == HPX_VERB_RESERVE ? &answer : NULL };
	struct hpx_sqlite_row row;
	enum hpx_status status = hpx_sqlite_row_find(s, &s->writer, hpx_op_id(op), &want, &row);

	if (status == HPX_NOMEM || status == HPX_CORRUPT || status == HPX_UNAVAILABLE) {
		op->status = status;
		status = HPX_OK;
	} else if (status == HPX_OK) {
		status = run_found(s, &row, &answer, op);
	}
	hpx_answer_free(answer);
	return status;
}

enum hpx_status hpx_sqlite_run_one(struct hpx_sqlite_store *s, struct hpx_store_op *op)
{
	enum hpx_status status = counts_on_boot(op) ? hpx_sqlite_settle_boot(s) : HPX_OK;

	if (status == HPX_OK)
		status = hpx_sqlite_fast_path(s, op);
	return status == HPX_NOT_FOUND ? run_slowly(s, op) : status;
}

static enum hpx_status put_recipe(struct hpx_sqlite_store *s, const struct hpx_store_op *op)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(&s->writer, HPX_SQL_PUT_RECIPE);

	HPX_ASSERT(op->verb == HPX_VERB_RECIPE);
	hpx_sqlite_bind_blob(&stmt, op->recipe.id.bytes, sizeof(op->recipe.id.bytes));
	hpx_sqlite_bind_text(&stmt, op->recipe.text);
	return hpx_sqlite_finish(&stmt);
}

static enum hpx_status run_op(struct hpx_sqlite_store *s, struct hpx_store_op *op)
{
	s->removed |= hpx_verb_has(op->verb, HPX_TRAIT_REMOVES);
	switch (op->verb) {
	case HPX_VERB_SWEEP:
		return hpx_sqlite_sweep(s, op, HPX_SQLITE_RAN_OUT);
	case HPX_VERB_REAP:
		return hpx_sqlite_reap(s, op);
	case HPX_VERB_CLAIM:
		return hpx_sqlite_claim(s, op);
	case HPX_VERB_JOB:
		return hpx_sqlite_job_update(s, op);
	case HPX_VERB_SWEEP_JOBS:
		return hpx_sqlite_sweep_jobs(s, op, HPX_SQLITE_RAN_OUT);
	case HPX_VERB_CLAIM_UNKNOWN:
		return hpx_sqlite_claim_unknown(s, op);
	case HPX_VERB_ESCALATE:
		return hpx_sqlite_escalate(s, op);
	case HPX_VERB_RULE:
		return hpx_sqlite_rule(s, op);
	case HPX_VERB_RECIPE:
		return put_recipe(s, op);
	case HPX_VERB_LANE:
		return hpx_sqlite_put_lane(s, op);
	case HPX_VERB_ACCEPT_CLOCK:
		return hpx_sqlite_clock_accept(s);
	default:
		return hpx_sqlite_run_one(s, op);
	}
}

static enum hpx_status run_ops(struct hpx_sqlite_store *s, struct hpx_store_op **ops, size_t count,
			       char *problem)
{
	enum hpx_status status = check_now_and_then(s, problem);
	int64_t changes = sqlite3_total_changes64(s->writer.handle);

	if (status == HPX_OK)
		status = hpx_sqlite_generations_refresh(&s->writer);
	if (status == HPX_OK)
		status = hpx_sqlite_filters_sync(s);
	if (status == HPX_OK)
		status = hpx_sqlite_damage_sync(s);
	for (size_t i = 0; i < count && status == HPX_OK; i++)
		status = run_op(s, ops[i]);
	if (status == HPX_OK && sqlite3_total_changes64(s->writer.handle) != changes)
		status = hpx_sqlite_clock_note(s);
	return status;
}

/* Which failures leave a connection that cannot be trusted: after a failed
 * fsync the pages it believes written may be gone. A lock held by somebody
 * else, a full disk and no memory are rolled back cleanly. */
static bool breaks_connection(enum hpx_status status)
{
	return status != HPX_BUSY && status != HPX_FULL && status != HPX_NOMEM &&
	       status != HPX_TOO_LARGE && status != HPX_UNAVAILABLE;
}

static enum hpx_status give_up(struct hpx_sqlite_store *s, enum hpx_status status, char *problem)
{
	/* Whatever the batch believed of the clocks and of the generations is asked again. */
	s->checked_ms = 0;
	hpx_sqlite_generations_forget(&s->writer);
	hpx_sqlite_leases_commit(&s->leases, false);
	if (problem[0] == '\0')
		hpx_sqlite_explain(&s->writer, s->path, "cannot be written", problem);
	if (!sqlite3_get_autocommit(s->writer.handle) &&
	    hpx_sqlite_do(&s->writer, HPX_SQL_ROLLBACK) != HPX_OK)
		s->broken = true;
	if (breaks_connection(status))
		s->broken = true;
	if (status == HPX_FULL && !s->broken)
		hpx_sqlite_log_cut(s);
	return status;
}

static enum hpx_status commit(struct hpx_sqlite_store *s)
{
	hpx_sqlite_wal_begin(&s->writer);
	return hpx_sqlite_wal_end(&s->writer, hpx_sqlite_do(&s->writer, HPX_SQL_COMMIT));
}

enum hpx_status hpx_sqlite_run(struct hpx_store *store, struct hpx_store_op **ops, size_t count,
			       char *problem)
{
	struct hpx_sqlite_store *s = hpx_sqlite_of(store);
	enum hpx_status status;

	if (s->broken || s->writer.handle == NULL) {
		hpx_store_problem(problem, "%s must be opened anew after a failure", s->path);
		return HPX_IO;
	}
	hpx_sqlite_space_check(s);
	s->removed = false;
	status = hpx_sqlite_do(&s->writer, HPX_SQL_BEGIN_WRITE);
	if (status != HPX_OK)
		return give_up(s, status, problem);
	HPX_CRASH_POINT(batch_begun);
	status = run_ops(s, ops, count, problem);
	if (status == HPX_OK) {
		HPX_CRASH_POINT(batch_written);
		status = commit(s);
	}
	if (status != HPX_OK)
		return give_up(s, status, problem);
	HPX_ASSERT(sqlite3_get_autocommit(s->writer.handle)); /* no transaction is left open */
	HPX_CRASH_POINT(batch_committed);
	hpx_sqlite_leases_commit(&s->leases, true);
	if (s->removed)
		hpx_sqlite_removal_counter_add(s);
	hpx_sqlite_wal_bound(s);
	return HPX_OK;
}
