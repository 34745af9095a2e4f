/* What is left of finished operations, for people: hapax_history, where the reaper and
 * whoever uses an expired key again leave an entry of the operation that goes, in the
 * transaction in which it goes. An operation that is there is its own entry, so that each
 * is told once. Nothing is decided by what stands here. */
#include <stdlib.h>

#include "store/history_list.h"
#include "store/sqlite/driver.h"

/* Entries that one REAP deletes. */
#define REAP_MAX 2000
/* How far a clock may be set back between the reservations of one generation. */
#define CLOCK_SLACK_MS ((int64_t)60 * 1000)

/* ---- the rule, and writing ---- */

enum hpx_status hpx_sqlite_history_rule(struct hpx_sqlite_db *db, int64_t *ret_retention_ms)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_HISTORY_RULE);

	*ret_retention_ms = 0;
	if (hpx_sqlite_next(&stmt))
		(void)hpx_sqlite_time(&stmt, 0, 0, ret_retention_ms);
	return hpx_sqlite_end(&stmt);
}

enum hpx_status hpx_sqlite_history_settle(struct hpx_sqlite_store *s)
{
	struct hpx_sqlite_statement stmt;
	int64_t retention_ms = 0;
	enum hpx_status status = hpx_sqlite_history_rule(&s->writer, &retention_ms);

	if (status != HPX_OK || retention_ms == s->history_retention_ms)
		return status;
	stmt = hpx_sqlite_statement(&s->writer, HPX_SQL_PUT_HISTORY_RULE);
	hpx_sqlite_bind_int(&stmt, s->history_retention_ms);
	return hpx_sqlite_finish(&stmt);
}

static bool is_finished(const struct hpx_sqlite_row *row)
{
	enum hpx_state state = row->found.record.state;

	return row->found.readable &&
	       (state == HPX_STATE_COMPLETED || state == HPX_STATE_FAILED_RETRYABLE);
}

enum hpx_status hpx_sqlite_history_keep(struct hpx_sqlite_store *s, const struct hpx_sqlite_row *row,
					int64_t retention_ms)
{
	const struct hpx_record *record = &row->found.record;
	struct hpx_sqlite_generation *g;
	struct hpx_sqlite_statement stmt;

	if (retention_ms <= 0 || !is_finished(row) ||
	    record->created_ms <= hpx_store_moment(&s->base).wall_ms - retention_ms)
		return HPX_OK;
	if (row->place == HPX_SQLITE_ASIDE) {
		stmt = hpx_sqlite_statement(&s->writer, HPX_SQL_KEEP_HISTORY);
		hpx_sqlite_bind_int(&stmt, row->aside);
		return hpx_sqlite_finish(&stmt);
	}
	g = hpx_sqlite_generation_find(&s->writer, row->generation);
	HPX_ASSERT(g != NULL && record->attempt == 1);
	stmt = hpx_sqlite_generation_statement(&s->writer, g, HPX_GENERATION_SQL_KEEP_HISTORY);
	hpx_sqlite_bind_int(&stmt, row->number);
	hpx_sqlite_bind_blob(&stmt, record->mark.bytes, sizeof(record->mark.bytes));
	hpx_sqlite_bind_int(&stmt, record->status);
	hpx_sqlite_bind_int(&stmt, record->changed_ms);
	return hpx_sqlite_finish(&stmt);
}

/* Where none is written, those that are there stay: a server that was started with the
 * wrong file must not take years of them away. */
enum hpx_status hpx_sqlite_history_reap(struct hpx_sqlite_store *s, int64_t wall_ms)
{
	struct hpx_sqlite_statement stmt;
	int64_t retention_ms = 0;
	enum hpx_status status = hpx_sqlite_history_rule(&s->writer, &retention_ms);

	if (status != HPX_OK || retention_ms <= 0)
		return status;
	stmt = hpx_sqlite_statement(&s->writer, HPX_SQL_REAP_HISTORY);
	hpx_sqlite_bind_int(&stmt, wall_ms - retention_ms);
	hpx_sqlite_bind_int(&stmt, REAP_MAX);
	return hpx_sqlite_finish(&stmt);
}

/* ---- reading ---- */

struct gathering {
	struct hpx_sqlite_store *s;
	struct hpx_sqlite_db *db;
	struct hpx_history_list list;
	struct hpx_arena scratch; /* the texts of one row */
};

/* The columns of HPX_SQL_HISTORY. */
static bool read_entry(struct hpx_sqlite_statement *stmt, struct hpx_history_entry *entry)
{
	struct hpx_description *d = &entry->description;
	struct hpx_span *const texts[] = { &d->tenant, &d->key, &d->method, &d->path, &d->route };
	int64_t state = 0, attempt = 0, status = 0;
	bool ok;

	*entry = (struct hpx_history_entry){ .expires_ms = 0 };
	ok = hpx_sqlite_fixed(stmt, 1, entry->id.bytes, sizeof(entry->id.bytes));
	ok &= hpx_sqlite_fixed(stmt, 2, entry->mark.bytes, sizeof(entry->mark.bytes));
	ok &= hpx_sqlite_int(stmt, 3, HPX_STATE_IN_PROGRESS, HPX_STATE_COUNT - 1, &state);
	ok &= hpx_sqlite_int(stmt, 4, 1, UINT32_MAX, &attempt);
	ok &= hpx_sqlite_int(stmt, 5, 0, 999, &status);
	ok &= hpx_sqlite_time(stmt, 6, 0, &entry->created_ms);
	ok &= hpx_sqlite_time(stmt, 7, 0, &entry->changed_ms);
	entry->state = (enum hpx_state)state;
	entry->attempt = (uint32_t)attempt;
	entry->status = (uint32_t)status;
	d->scope = HPX_SPAN("");
	for (int i = 0; i < (int)(sizeof(texts) / sizeof(texts[0])); i++) {
		*texts[i] = hpx_sqlite_bytes(stmt, 8 + i);
		ok &= texts[i]->ptr != NULL;
	}
	return ok;
}

/* By the index on time, from the newest. */
static enum hpx_status gather_reaped(struct gathering *g)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(g->db, HPX_SQL_HISTORY);
	enum hpx_status status = HPX_OK, ended;
	struct hpx_history_entry entry;

	hpx_sqlite_bind_int(&stmt, g->list.query->since_ms);
	hpx_sqlite_bind_int(&stmt, g->list.query->until_ms);
	while (status == HPX_OK && hpx_history_reads_on(&g->list) && hpx_sqlite_next(&stmt))
		if (read_entry(&stmt, &entry))
			status = hpx_history_take(&g->list, &entry);
	ended = hpx_sqlite_end(&stmt);
	return ended != HPX_OK ? ended : status;
}

static enum hpx_status take_row(struct gathering *g, const struct hpx_sqlite_row *row,
				const struct hpx_description *description)
{
	struct hpx_history_entry entry;

	hpx_history_of_record(&row->found.record, description, &entry);
	return hpx_history_take(&g->list, &entry);
}

static enum hpx_status gather_aside(struct gathering *g)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(g->db, HPX_SQL_FINISHED_ASIDE);
	enum hpx_status status = HPX_OK, ended;

	hpx_sqlite_bind_int(&stmt, g->list.query->since_ms);
	hpx_sqlite_bind_int(&stmt, g->list.query->until_ms);
	while (status == HPX_OK && hpx_history_looks_on(&g->list) && hpx_sqlite_next(&stmt)) {
		struct hpx_description texts;
		struct hpx_sqlite_want want = { .arena = &g->scratch, .description = &texts };
		struct hpx_sqlite_row row;
		status = hpx_sqlite_aside_read(g->s, &stmt, &want, &row);
		if (status == HPX_OK && is_finished(&row))
			status = take_row(g, &row, &texts);
		hpx_arena_recycle(&g->scratch);
	}
	ended = hpx_sqlite_end(&stmt);
	return ended != HPX_OK ? ended : status;
}

static enum hpx_status consider(struct gathering *g, struct hpx_sqlite_statement *stmt,
				const struct hpx_sqlite_generation *generation)
{
	struct hpx_description texts;
	struct hpx_sqlite_want want = { .arena = &g->scratch, .description = &texts };
	struct hpx_sqlite_row row;
	bool covered = true;
	enum hpx_status status = hpx_sqlite_plain_read(g->s, stmt, generation, &want, &row);

	if (status == HPX_OK && is_finished(&row))
		status = hpx_sqlite_row_covered(g->db, row.generation, row.number, &covered);
	if (status == HPX_OK && !covered)
		status = take_row(g, &row, &texts);
	hpx_arena_recycle(&g->scratch);
	return status;
}

static enum hpx_status gather_generation(struct gathering *g, struct hpx_sqlite_generation *generation)
{
	struct hpx_sqlite_statement stmt =
		hpx_sqlite_generation_statement(g->db, generation, HPX_GENERATION_SQL_FINISHED);
	enum hpx_status status = HPX_OK, ended;

	hpx_sqlite_bind_int(&stmt, generation->moved);
	hpx_sqlite_bind_int(&stmt, g->list.query->since_ms);
	hpx_sqlite_bind_int(&stmt, g->list.query->until_ms);
	while (status == HPX_OK && hpx_history_looks_on(&g->list) && hpx_sqlite_next(&stmt))
		status = consider(g, &stmt, generation);
	ended = hpx_sqlite_end(&stmt);
	return ended != HPX_OK ? ended : status;
}

/* Whether an operation in it may have begun in the time that is asked for. */
static bool may_have(const struct hpx_sqlite_generation *generation, const struct hpx_history_query *query)
{
	if (generation->state == HPX_GENERATION_DEAD ||
	    generation->oldest_ms - CLOCK_SLACK_MS >= query->until_ms)
		return false;
	return generation->state == HPX_GENERATION_OPEN ||
	       generation->closed_ms + CLOCK_SLACK_MS >= query->since_ms;
}

static enum hpx_status gather(struct gathering *g)
{
	enum hpx_status status = hpx_sqlite_generations_refresh(g->db);

	if (status == HPX_OK)
		status = hpx_sqlite_history_rule(g->db, &g->list.found.retention_ms);
	if (status == HPX_OK)
		status = gather_aside(g);
	for (size_t i = 0; i < g->db->generation_count && status == HPX_OK; i++)
		if (may_have(&g->db->generations[i], g->list.query))
			status = gather_generation(g, &g->db->generations[i]);
	return status == HPX_OK ? gather_reaped(g) : status;
}

/* In one read transaction: an operation is a row, or an entry. */
enum hpx_status hpx_sqlite_history(struct hpx_store_reader *reader,
				   const struct hpx_history_query *query, struct hpx_arena *arena,
				   struct hpx_history *ret_history)
{
	struct gathering g = { .s = hpx_sqlite_of(reader->store) };
	enum hpx_status status = hpx_sqlite_reader_db(reader, &g.db);

	hpx_history_list_init(&g.list, query, arena);
	if (status == HPX_OK)
		status = hpx_sqlite_do(g.db, HPX_SQL_BEGIN_READ);
	if (status != HPX_OK)
		return status;
	hpx_arena_init(&g.scratch, arena->max_bytes);
	status = hpx_sqlite_end_read(g.db, gather(&g));
	hpx_arena_done(&g.scratch);
	if (status == HPX_OK)
		hpx_history_list_end(&g.list, ret_history);
	return status;
}
