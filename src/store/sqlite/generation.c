/* Generations: which there are, which one a reservation goes into, and how they
 * open, close and settle. A generation is a pair of tables (sql/sqlite/schema.sql).
 *
 *            count, time              no attempt         all expired
 *   open ─────────────────▶ closed ─────────────▶ closed ───────────▶ dead ──▶ (none)
 *   marked                  marked                unmarked            reap.c
 *
 * Every change is part of the transaction of whoever makes it, and adds one to the
 * list's version. A transaction of ours begins with a look at that version
 * (hpx_sqlite_generations_refresh), so that no writer inserts into a generation that
 * is closed, and no look-up misses one that was opened, whichever process did it.
 * Numbers are never used again. */
#include <stdlib.h>

#include "base/crash_point.h"
#include "store/sqlite/driver.h"

/* A generation closes when it has so many rows, or is not empty and a part of its
 * class's time has passed. */
#define OPERATIONS_MAX 250000
#define CLASS_SHARE 24
#define OPEN_MS_MIN (10 * 60 * 1000)
/* Of shorter retentions there is one class. */
#define CLASS_MS_MIN ((int64_t)1 << 20)

#ifdef HPX_STEPS
static int64_t number_of_environment(const char *name, int64_t usual)
{
	struct hpx_span text = hpx_span_of(getenv(name));
	uint64_t value = 0;

	if (text.len == 0 || !hpx_span_u64(text, INT64_MAX / 2, &value))
		return usual;
	return (int64_t)value;
}
#else
static int64_t number_of_environment(const char *name, int64_t usual)
{
	(void)name;
	return usual;
}
#endif

static int64_t class_of(int64_t retention_ms)
{
	int64_t class_ms = CLASS_MS_MIN;

	while (class_ms < retention_ms && class_ms < HPX_SQLITE_TIME_MAX / 2)
		class_ms *= 2;
	return class_ms;
}

static int64_t open_ms(const struct hpx_sqlite_store *s, const struct hpx_sqlite_generation *g)
{
	int64_t ms = g->class_ms / CLASS_SHARE;

	if (ms < OPEN_MS_MIN)
		ms = OPEN_MS_MIN;
	return s->generation_ms != 0 ? s->generation_ms : ms;
}

void hpx_sqlite_generations_init(struct hpx_sqlite_store *s)
{
	s->generation_operations = number_of_environment("HAPAX_TEST_GENERATION_OPERATIONS",
							 OPERATIONS_MAX);
	s->generation_ms = number_of_environment("HAPAX_TEST_GENERATION_MS", 0);
}

/* ---- the list ---- */

static uint32_t crc_of(const struct hpx_sqlite_generation *g)
{
	const int64_t values[] = { g->number, g->class_ms, g->state, g->marked, g->opened_ms,
				   g->closed_ms, g->retention_ms, g->operations, g->settled,
				   g->expires_ms, g->moved, g->oldest_ms };
	struct hpx_sqlite_crc crc;

	hpx_sqlite_crc_init(&crc);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		hpx_sqlite_crc_int(&crc, values[i]);
	return hpx_sqlite_crc_end(&crc);
}

/* A row that cannot be believed is one of a closed generation that is looked into
 * and never reaped. */
static void read_generation(struct hpx_sqlite_statement *stmt, struct hpx_sqlite_generation *g)
{
	*g = (struct hpx_sqlite_generation){
		.number = sqlite3_column_int64(stmt->handle, 0),
		.class_ms = sqlite3_column_int64(stmt->handle, 1),
		.state = (enum hpx_generation_state)sqlite3_column_int64(stmt->handle, 2),
		.marked = sqlite3_column_int64(stmt->handle, 3) != 0,
		.opened_ms = sqlite3_column_int64(stmt->handle, 4),
		.closed_ms = sqlite3_column_int64(stmt->handle, 5),
		.retention_ms = sqlite3_column_int64(stmt->handle, 6),
		.operations = sqlite3_column_int64(stmt->handle, 7),
		.settled = sqlite3_column_int64(stmt->handle, 8),
		.expires_ms = sqlite3_column_int64(stmt->handle, 9),
		.moved = sqlite3_column_int64(stmt->handle, 10),
		.oldest_ms = sqlite3_column_int64(stmt->handle, 11),
		.last = -1,
		.walked = INT64_MIN,
	};
	g->readable = sqlite3_column_int64(stmt->handle, 12) == crc_of(g);
	if (g->readable)
		return;
	g->state = HPX_GENERATION_CLOSED;
	g->marked = false;
	g->settled = 0;
	g->moved = 0;
	g->oldest_ms = 0;
}

/* What is known of a generation stays known: its statements, and how far it was
 * judged. */
static void keep_known(struct hpx_sqlite_db *db, struct hpx_sqlite_generation *fresh,
		       size_t count)
{
	for (size_t i = 0, j = 0; i < count && j < db->generation_count;) {
		struct hpx_sqlite_generation *old = &db->generations[j];
		if (fresh[i].number == old->number) {
			memcpy(fresh[i].statements, old->statements, sizeof(old->statements));
			memset(old->statements, 0, sizeof(old->statements));
			fresh[i].walked = old->walked;
			fresh[i].walk_at_ms = old->walk_at_ms;
			i++;
			j++;
		} else if (fresh[i].number > old->number) {
			i++;
		} else {
			j++;
		}
	}
	hpx_sqlite_generations_free(db->generations, db->generation_count);
	db->generations = fresh;
	db->generation_count = count;
}

static enum hpx_status read_list(struct hpx_sqlite_db *db)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_GENERATIONS);
	struct hpx_sqlite_generation *list = NULL;
	size_t count = 0, room = 0;
	enum hpx_status status;
	bool whole = true;

	while (whole && hpx_sqlite_next(&stmt)) {
		if (count == room) {
			size_t more = room != 0 ? 2 * room : 8;
			void *grown = reallocarray(list, more, sizeof(*list));
			whole = grown != NULL;
			if (!whole)
				break;
			list = grown;
			room = more;
		}
		read_generation(&stmt, &list[count++]);
	}
	status = hpx_sqlite_end(&stmt);
	if (status == HPX_OK && !whole)
		status = HPX_NOMEM;
	if (status == HPX_OK)
		keep_known(db, list, count);
	else
		free(list);
	return status;
}

enum hpx_status hpx_sqlite_generations_refresh(struct hpx_sqlite_db *db)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_LIST_VERSION);
	int64_t version = 0;
	enum hpx_status status;

	if (hpx_sqlite_next(&stmt))
		version = sqlite3_column_int64(stmt.handle, 0);
	status = hpx_sqlite_end(&stmt);
	if (status == HPX_OK && version <= 0)
		return HPX_CORRUPT;
	if (status != HPX_OK || version == db->list_version)
		return status;
	db->list_version = 0;
	status = read_list(db);
	if (status == HPX_OK)
		db->list_version = version;
	return status;
}

/* After a transaction that came to nothing: what was changed in memory was not. A walk that
 * went on behind rows whose tombstones were rolled back would have lost them. */
void hpx_sqlite_generations_forget(struct hpx_sqlite_db *db)
{
	db->list_version = 0;
	for (size_t i = 0; i < db->generation_count; i++) {
		db->generations[i].last = -1;
		db->generations[i].walked = INT64_MIN;
		db->generations[i].walk_at_ms = 0;
	}
}

struct hpx_sqlite_generation *hpx_sqlite_generation_find(struct hpx_sqlite_db *db, int64_t number)
{
	for (size_t i = 0; i < db->generation_count; i++)
		if (db->generations[i].number == number)
			return &db->generations[i];
	return NULL;
}

static enum hpx_status bump(struct hpx_sqlite_db *db)
{
	enum hpx_status status = hpx_sqlite_do(db, HPX_SQL_BUMP_LIST);

	if (status == HPX_OK)
		db->list_version++;
	return status;
}

static void bind_generation(struct hpx_sqlite_statement *stmt, const struct hpx_sqlite_generation *g)
{
	hpx_sqlite_bind_int(stmt, g->class_ms);
	hpx_sqlite_bind_int(stmt, g->state);
	hpx_sqlite_bind_int(stmt, g->marked);
	hpx_sqlite_bind_int(stmt, g->opened_ms);
	hpx_sqlite_bind_int(stmt, g->closed_ms);
	hpx_sqlite_bind_int(stmt, g->retention_ms);
	hpx_sqlite_bind_int(stmt, g->operations);
	hpx_sqlite_bind_int(stmt, g->settled);
	hpx_sqlite_bind_int(stmt, g->expires_ms);
	hpx_sqlite_bind_int(stmt, g->moved);
	hpx_sqlite_bind_int(stmt, g->oldest_ms);
	hpx_sqlite_bind_int(stmt, crc_of(g));
}

enum hpx_status hpx_sqlite_generation_put(struct hpx_sqlite_db *db,
					  const struct hpx_sqlite_generation *g)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_PUT_GENERATION);
	enum hpx_status status;

	HPX_ASSERT(g->number > 0 && g->readable);
	bind_generation(&stmt, g);
	hpx_sqlite_bind_int(&stmt, g->number);
	status = hpx_sqlite_finish(&stmt);
	return status == HPX_OK ? bump(db) : status;
}

/* ---- opening ---- */

static enum hpx_status add_row(struct hpx_sqlite_db *db, struct hpx_sqlite_generation *g)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_ADD_GENERATION);
	enum hpx_status status;

	bind_generation(&stmt, g);
	status = hpx_sqlite_finish(&stmt);
	g->number = sqlite3_last_insert_rowid(db->handle);
	/* The check is over the number too. */
	return status == HPX_OK ? hpx_sqlite_generation_put(db, g) : status;
}

/* The newest stands first. */
static enum hpx_status remember(struct hpx_sqlite_db *db, const struct hpx_sqlite_generation *g)
{
	size_t count = db->generation_count;
	struct hpx_sqlite_generation *list = reallocarray(db->generations, count + 1, sizeof(*list));

	if (list == NULL)
		return HPX_NOMEM;
	memmove(list + 1, list, count * sizeof(*list));
	list[0] = *g;
	db->generations = list;
	db->generation_count = count + 1;
	return HPX_OK;
}

static enum hpx_status open_generation(struct hpx_sqlite_store *s, struct hpx_sqlite_db *db,
				       int64_t retention_ms)
{
	int64_t wall_ms = hpx_store_moment(&s->base).wall_ms;
	struct hpx_sqlite_generation g = {
		.class_ms = class_of(retention_ms),
		.state = HPX_GENERATION_OPEN,
		.marked = true,
		.opened_ms = wall_ms,
		.oldest_ms = wall_ms,
		.retention_ms = retention_ms,
		.readable = true,
		.walked = INT64_MIN,
	};
	enum hpx_status status = add_row(db, &g);

	if (status == HPX_OK)
		status = hpx_sqlite_generation_make(db, g.number);
	if (status == HPX_OK)
		status = remember(db, &g);
	HPX_CRASH_POINT(generation_opened);
	return status;
}

/* ---- closing ---- */

static enum hpx_status count_last(struct hpx_sqlite_db *db, struct hpx_sqlite_generation *g)
{
	struct hpx_sqlite_statement stmt;

	if (g->last >= 0)
		return HPX_OK;
	stmt = hpx_sqlite_generation_statement(db, g, HPX_GENERATION_SQL_LAST);
	if (hpx_sqlite_next(&stmt))
		g->last = sqlite3_column_int64(stmt.handle, 0);
	return hpx_sqlite_end(&stmt);
}

/* Where space is low, one whose first operation has expired is not waited for: it goes
 * once the last has, and no new keys are taken meanwhile. */
static bool is_full(struct hpx_sqlite_store *s, const struct hpx_sqlite_generation *g, int64_t wall_ms)
{
	int64_t age_ms = wall_ms - g->opened_ms;
	bool low = atomic_load(&s->base.space_low);

	return g->last > 0 && (g->last >= s->generation_operations || age_ms >= open_ms(s, g) ||
			       (low && age_ms >= g->retention_ms));
}

static enum hpx_status close_generation(struct hpx_sqlite_store *s, struct hpx_sqlite_db *db,
					struct hpx_sqlite_generation *g)
{
	enum hpx_status status;

	HPX_ASSERT(g->state == HPX_GENERATION_OPEN && g->readable);
	g->state = HPX_GENERATION_CLOSED;
	g->closed_ms = hpx_store_moment(&s->base).wall_ms;
	g->operations = g->last;
	status = hpx_sqlite_generation_put(db, g);
	HPX_CRASH_POINT(generation_closed);
	return status;
}

enum hpx_status hpx_sqlite_generations_close_due(struct hpx_sqlite_store *s)
{
	struct hpx_sqlite_db *db = &s->writer;
	int64_t wall_ms = hpx_store_moment(&s->base).wall_ms;
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < db->generation_count && status == HPX_OK; i++) {
		struct hpx_sqlite_generation *g = &db->generations[i];
		if (g->state != HPX_GENERATION_OPEN)
			continue;
		/* Another process may have been the first in it. */
		if (g->last == 0)
			g->last = -1;
		status = count_last(db, g);
		if (status == HPX_OK && is_full(s, g, wall_ms))
			status = close_generation(s, db, g);
	}
	return status;
}

/* ---- which one a reservation goes into ---- */

static struct hpx_sqlite_generation *open_of_class(struct hpx_sqlite_db *db, int64_t class_ms)
{
	for (size_t i = 0; i < db->generation_count; i++)
		if (db->generations[i].state == HPX_GENERATION_OPEN &&
		    db->generations[i].class_ms == class_ms)
			return &db->generations[i];
	return NULL;
}

static enum hpx_status note_retention(struct hpx_sqlite_db *db, struct hpx_sqlite_generation *g,
				      int64_t retention_ms)
{
	if (retention_ms <= g->retention_ms)
		return HPX_OK;
	g->retention_ms = retention_ms;
	return hpx_sqlite_generation_put(db, g);
}

enum hpx_status hpx_sqlite_generation_for(struct hpx_sqlite_store *s, int64_t retention_ms,
					  struct hpx_sqlite_generation **ret_generation)
{
	struct hpx_sqlite_db *db = &s->writer;
	int64_t class_ms = class_of(retention_ms);
	struct hpx_sqlite_generation *g = open_of_class(db, class_ms);
	enum hpx_status status = HPX_OK;

	/* A borrowed connection makes nothing. */
	if (s->borrowed) {
		*ret_generation = g;
		return HPX_OK;
	}
	if (g != NULL)
		status = count_last(db, g);
	if (status == HPX_OK && g != NULL && is_full(s, g, hpx_store_moment(&s->base).wall_ms)) {
		status = close_generation(s, db, g);
		g = NULL;
	}
	if (status == HPX_OK && g == NULL) {
		status = open_generation(s, db, retention_ms);
		g = db->generations;
		if (status == HPX_OK)
			status = hpx_sqlite_filters_sync(s);
	}
	if (status == HPX_OK)
		status = note_retention(db, g, retention_ms);
	if (status == HPX_OK)
		*ret_generation = g;
	return status;
}

/* ---- settling: no attempt is under way any more ---- */

static enum hpx_status has_lease(struct hpx_sqlite_db *db, int64_t number, bool *ret_has)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_LEASED);

	hpx_sqlite_bind_int(&stmt, number);
	*ret_has = hpx_sqlite_next(&stmt);
	return hpx_sqlite_end(&stmt);
}

/* Of a server that holds the lock, attempts are in its memory; whoever else holds it
 * finds what a server left in the table. */
static enum hpx_status has_attempts(struct hpx_sqlite_store *s, struct hpx_sqlite_generation *g,
				    bool *ret_has)
{
	struct hpx_sqlite_statement stmt;
	enum hpx_status status = has_lease(&s->writer, g->number, ret_has);

	if (status != HPX_OK || *ret_has)
		return status;
	if (s->serve) {
		*ret_has = hpx_sqlite_leases_least(&s->leases, g->number) != INT64_MAX;
		return HPX_OK;
	}
	stmt = hpx_sqlite_generation_statement(&s->writer, g, HPX_GENERATION_SQL_UNANSWERED);
	hpx_sqlite_bind_int(&stmt, g->number);
	hpx_sqlite_bind_int(&stmt, g->settled);
	hpx_sqlite_bind_int(&stmt, 1);
	*ret_has = hpx_sqlite_next(&stmt);
	return hpx_sqlite_end(&stmt);
}

/* When the last operation of it was reserved: it hardly expires later than the longest
 * retention after that. The reaper looks at each. */
static enum hpx_status read_newest(struct hpx_sqlite_store *s, struct hpx_sqlite_generation *g,
				   int64_t *ret_created_ms)
{
	struct hpx_sqlite_statement stmt =
		hpx_sqlite_generation_statement(&s->writer, g, HPX_GENERATION_SQL_NEWEST);
	struct hpx_sqlite_row row;
	enum hpx_status read = HPX_OK, status;

	*ret_created_ms = 0;
	hpx_sqlite_bind_int(&stmt, INT64_MAX);
	hpx_sqlite_bind_int(&stmt, 1);
	if (hpx_sqlite_next(&stmt)) {
		read = hpx_sqlite_plain_read(s, &stmt, g, NULL, &row);
		*ret_created_ms = row.found.record.created_ms;
	}
	status = hpx_sqlite_end(&stmt);
	return status != HPX_OK ? status : read;
}

static enum hpx_status settle(struct hpx_sqlite_store *s, struct hpx_sqlite_generation *g)
{
	int64_t created_ms;
	enum hpx_status status = read_newest(s, g, &created_ms);

	if (status != HPX_OK)
		return status;
	g->marked = false;
	g->expires_ms = created_ms + g->retention_ms;
	status = hpx_sqlite_generation_put(&s->writer, g);
	HPX_CRASH_POINT(generation_settled);
	return status;
}

enum hpx_status hpx_sqlite_generations_settle(struct hpx_sqlite_store *s)
{
	struct hpx_sqlite_db *db = &s->writer;
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < db->generation_count && status == HPX_OK; i++) {
		struct hpx_sqlite_generation *g = &db->generations[i];
		bool has = true;
		if (g->state != HPX_GENERATION_CLOSED || !g->marked)
			continue;
		status = has_attempts(s, g, &has);
		if (status == HPX_OK && !has)
			status = settle(s, g);
	}
	return status;
}

/* Up to which number nothing is under way, so that a start looks at few rows. */
enum hpx_status hpx_sqlite_generations_note(struct hpx_sqlite_store *s)
{
	struct hpx_sqlite_db *db = &s->writer;
	enum hpx_status status = HPX_OK;

	HPX_ASSERT(s->serve);
	for (size_t i = 0; i < db->generation_count && status == HPX_OK; i++) {
		struct hpx_sqlite_generation *g = &db->generations[i];
		if (!g->marked || g->state == HPX_GENERATION_DEAD)
			continue;
		status = count_last(db, g);
		int64_t least = hpx_sqlite_leases_least(&s->leases, g->number);
		int64_t settled = least != INT64_MAX ? least - 1 : g->last;
		if (status != HPX_OK || settled <= g->settled)
			continue;
		g->settled = settled;
		status = hpx_sqlite_generation_put(db, g);
	}
	return status;
}
