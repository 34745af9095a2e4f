/* Lists of operations, for people and for whoever must see all of them, and the events
 * of one.
 *
 * A list for people looks at the newest rows only, at a bounded number of them, and says
 * how far: rows that did not go the plain way by the indexes of their states, plain rows
 * by their numbers, from the newest. Rows of several generations are taken in the order
 * in which they were begun, since generations of several classes are open at a time.
 * Those that cannot match by their texts are passed over inside SQLite. */
#include <stdlib.h>

#include "store/sqlite/driver.h"

/* At how many rows a list looks: at those that did not go the plain way, of each kind; at
 * plain rows that are read whole; at plain rows that SQLite passes over by itself. Each of
 * them takes some 50 ms. */
#define LOOK_ASIDE_MAX 10000
#define LOOK_WHOLE_MAX 10000
#define LOOK_MAX 200000
/* By a key: up to a second. */
#define LOOK_FOR_KEY_MAX 1000000
/* Plain rows that are looked at together. */
#define CHUNK 500
/* By how much the wall clock may have been set back unnoticed, as expiry has it. */
#define CLOCK_SLACK_MS 60000

/* An array in an arena that doubles; what it leaves behind dies with the
 * arena. */
struct growing {
	struct hpx_arena *arena;
	void *items;
	size_t size;
	size_t count;
	size_t room;
};

static void *grow(struct growing *list)
{
	HPX_ASSERT(list->count <= list->room && list->size > 0);
	if (list->count == list->room) {
		size_t room = list->room != 0 ? 2 * list->room : 16;
		void *items = hpx_arena_zalloc(list->arena, room, list->size);
		if (items == NULL)
			return NULL;
		if (list->count != 0)
			memcpy(items, list->items, list->count * list->size);
		list->items = items;
		list->room = room;
	}
	return (char *)list->items + list->size * list->count++;
}

static enum hpx_status add_event(struct hpx_sqlite_statement *stmt, struct growing *list)
{
	struct hpx_event *event = grow(list);

	if (event == NULL)
		return HPX_NOMEM;
	event->at_ms = sqlite3_column_int64(stmt->handle, 0);
	event->attempt = (uint32_t)sqlite3_column_int64(stmt->handle, 1);
	event->what = hpx_arena_dup(list->arena, hpx_sqlite_bytes(stmt, 2));
	event->actor = hpx_arena_dup(list->arena, hpx_sqlite_bytes(stmt, 3));
	event->reason = hpx_arena_dup(list->arena, hpx_sqlite_bytes(stmt, 4));
	event->status = (uint32_t)sqlite3_column_int64(stmt->handle, 5);
	return event->what.ptr && event->actor.ptr && event->reason.ptr ? HPX_OK : HPX_NOMEM;
}

static enum hpx_status fill(struct hpx_sqlite_statement *stmt,
			    enum hpx_status (*add)(struct hpx_sqlite_statement *, struct growing *),
			    struct growing *list)
{
	enum hpx_status status = HPX_OK;
	enum hpx_status ended;

	while (status == HPX_OK && hpx_sqlite_next(stmt))
		status = add(stmt, list);
	ended = hpx_sqlite_end(stmt);
	return ended != HPX_OK ? ended : status;
}

/* ---- operations ---- */

/* What is being looked for, and what was found of it. */
struct search {
	struct hpx_sqlite_store *s;
	struct hpx_sqlite_db *db;
	const struct hpx_query *query;
	struct growing list;
	struct hpx_looked looked;
};

/* Reads a row into an arena of its own first: most do not match. */
static enum hpx_status consider(struct search *search, struct hpx_sqlite_statement *stmt,
				const struct hpx_sqlite_generation *g, bool *ret_matches)
{
	struct hpx_entry entry;
	struct hpx_arena arena;
	struct hpx_sqlite_want want = { .arena = &arena, .description = &entry.description };
	struct hpx_sqlite_row row;
	struct hpx_entry *room = NULL;
	enum hpx_status status;

	*ret_matches = false;
	hpx_arena_init(&arena, 1 << 20);
	for (int pass = 0; pass < 2; pass++) {
		status = g != NULL ? hpx_sqlite_plain_read(search->s, stmt, g, &want, &row) :
				     hpx_sqlite_aside_read(search->s, stmt, &want, &row);
		entry.record = row.found.record;
		entry.readable = row.found.readable;
		if (status != HPX_OK || !hpx_entry_matches(&entry, search->query))
			break;
		want.arena = search->list.arena;
		*ret_matches = pass == 1;
	}
	hpx_arena_done(&arena);
	if (status != HPX_OK || !*ret_matches)
		return status;
	room = grow(&search->list);
	if (room == NULL)
		return HPX_NOMEM;
	*room = entry;
	return HPX_OK;
}

/* ---- rows that did not go the plain way ---- */

/* Takes what matches, up to the limit. `*ret_last` is the number of the last row read. */
static enum hpx_status take_aside(struct search *search, struct hpx_sqlite_statement *stmt,
				  size_t *ret_rows, size_t *ret_found, int64_t *ret_last)
{
	enum hpx_status read = HPX_OK, status;
	size_t rows = 0, found = 0;
	bool matches;

	while (read == HPX_OK && found < search->query->limit && hpx_sqlite_next(stmt)) {
		*ret_last = sqlite3_column_int64(stmt->handle, 0);
		read = consider(search, stmt, NULL, &matches);
		found += matches;
		rows++;
	}
	search->looked.operations += rows;
	*ret_rows = rows;
	*ret_found = found;
	status = hpx_sqlite_end(stmt);
	return status != HPX_OK ? status : read;
}

/* Of one kind, from the newest. */
static enum hpx_status list_aside(struct search *search, enum hpx_sql kind)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(search->db, kind);
	size_t rows = 0, found = 0;
	int64_t last = 0;

	hpx_sqlite_bind_int(&stmt, LOOK_ASIDE_MAX);
	enum hpx_status status = take_aside(search, &stmt, &rows, &found, &last);
	if (rows >= LOOK_ASIDE_MAX || found >= search->query->limit)
		search->looked.all = false;
	return status;
}

static enum hpx_status list_asides(struct search *search)
{
	enum hpx_state state = search->query->state;
	enum hpx_status status = HPX_OK;

	if (state == HPX_STATE_COUNT || state == HPX_STATE_UNKNOWN)
		status = list_aside(search, HPX_SQL_LIST_UNKNOWN);
	if (status == HPX_OK && (state == HPX_STATE_COUNT || state == HPX_STATE_FAILED_RETRYABLE))
		status = list_aside(search, HPX_SQL_LIST_FAILED);
	/* Among them those that cannot be read, which are unknown. */
	if (status == HPX_OK && state != HPX_STATE_FAILED_RETRYABLE)
		status = list_aside(search, HPX_SQL_LIST_OTHERS);
	return status;
}

/* ---- plain rows ---- */

/* The newest row of a generation that was not looked at yet. */
struct head {
	struct hpx_sqlite_generation *generation;
	int64_t number; /* looked at: all from this number on */
	int64_t created_ms;
	bool known; /* false: created_ms is only the latest that it can be */
	bool ended;
};

static void bind_text_or_null(struct hpx_sqlite_statement *stmt, struct hpx_span text)
{
	if (text.ptr != NULL)
		hpx_sqlite_bind_text(stmt, text);
	else
		hpx_sqlite_bind_null(stmt);
}

static enum hpx_status find_head(struct search *search, struct head *head)
{
	struct hpx_sqlite_statement stmt =
		hpx_sqlite_generation_statement(search->db, head->generation, HPX_GENERATION_SQL_HEAD);

	hpx_sqlite_bind_int(&stmt, head->number);
	head->ended = !hpx_sqlite_next(&stmt);
	if (!head->ended) {
		head->number = sqlite3_column_int64(stmt.handle, 0) + 1;
		head->created_ms = sqlite3_column_int64(stmt.handle, 1);
	}
	head->known = true;
	return hpx_sqlite_end(&stmt);
}

/* Looks at the next rows of a generation. `*oldest_ms` becomes the beginning of the
 * oldest that was taken, if that is less. */
static enum hpx_status take_chunk(struct search *search, struct head *head, size_t *found,
				  int64_t *oldest_ms)
{
	const struct hpx_query *query = search->query;
	struct hpx_sqlite_statement stmt =
		hpx_sqlite_generation_statement(search->db, head->generation, HPX_GENERATION_SQL_LOOK);
	int64_t to = head->number > CHUNK ? head->number - CHUNK : 0;
	enum hpx_status read = HPX_OK, status;

	hpx_sqlite_bind_int(&stmt, head->number);
	hpx_sqlite_bind_int(&stmt, to);
	bind_text_or_null(&stmt, query->key);
	bind_text_or_null(&stmt, query->tenant);
	bind_text_or_null(&stmt, query->route);
	hpx_sqlite_bind_int(&stmt, query->state == HPX_STATE_IN_PROGRESS);
	bind_text_or_null(&stmt, query->key_hash);
	while (read == HPX_OK && hpx_sqlite_next(&stmt)) {
		int64_t number = sqlite3_column_int64(stmt.handle, 0);
		bool passed = number <= head->generation->moved, covered = false, matches = false;
		read = hpx_sqlite_row_covered(search->db, head->generation->number, number, &covered);
		if (read == HPX_OK && !covered && !passed)
			read = consider(search, &stmt, head->generation, &matches);
		if (!matches)
			continue;
		const struct hpx_entry *entries = search->list.items;
		int64_t created_ms = entries[search->list.count - 1].record.created_ms;
		*oldest_ms = created_ms < *oldest_ms ? created_ms : *oldest_ms;
		(*found)++;
	}
	search->looked.operations += (uint64_t)(head->number - to);
	head->number = to;
	head->known = false;
	status = hpx_sqlite_end(&stmt);
	return status != HPX_OK ? status : read;
}

static struct head *newest_head(struct head *heads, size_t count)
{
	struct head *newest = NULL;

	for (size_t i = 0; i < count; i++)
		if (!heads[i].ended && (newest == NULL || heads[i].created_ms > newest->created_ms))
			newest = &heads[i];
	return newest;
}

static size_t fill_heads(const struct search *search, struct head *heads)
{
	size_t count = 0;

	for (size_t i = 0; i < search->db->generation_count; i++) {
		struct hpx_sqlite_generation *g = &search->db->generations[i];
		bool closed = g->state == HPX_GENERATION_CLOSED && g->readable;
		if (g->state != HPX_GENERATION_DEAD)
			heads[count++] = (struct head){ .generation = g,
							.number = INT64_MAX,
							.created_ms = closed ? g->closed_ms : INT64_MAX };
	}
	return count;
}

static size_t look_max(const struct hpx_query *query)
{
	if (query->state == HPX_STATE_UNKNOWN || query->state == HPX_STATE_IN_PROGRESS)
		return LOOK_WHOLE_MAX;
	return query->key.ptr != NULL ? LOOK_FOR_KEY_MAX : LOOK_MAX;
}

/* Generations are looked into from where their newest rows are. */
static enum hpx_status look_at(struct search *search, struct head *heads, size_t count)
{
	uint64_t end = search->looked.operations + look_max(search->query);
	int64_t oldest_ms = INT64_MAX;
	enum hpx_status status = HPX_OK;
	size_t found = 0;

	for (struct head *head; status == HPX_OK && (head = newest_head(heads, count)) != NULL;) {
		if (!head->known) {
			status = find_head(search, head);
			continue;
		}
		if (head->created_ms < search->query->since_ms - CLOCK_SLACK_MS)
			return HPX_OK;
		if ((found >= search->query->limit && head->created_ms <= oldest_ms) ||
		    search->looked.operations >= end) {
			search->looked.all = false;
			search->looked.back_to_ms = head->created_ms;
			return HPX_OK;
		}
		status = take_chunk(search, head, &found, &oldest_ms);
	}
	return status;
}

static enum hpx_status list_plain(struct search *search)
{
	enum hpx_state state = search->query->state;
	struct head *heads;

	/* A plain row has had no error. */
	if (state == HPX_STATE_FAILED_RETRYABLE || state == HPX_STATE_PENDING ||
	    search->query->error != HPX_LAST_ERROR_NONE)
		return HPX_OK;
	heads = calloc(search->db->generation_count + 1, sizeof(*heads));
	if (heads == NULL)
		return HPX_NOMEM;
	enum hpx_status status = look_at(search, heads, fill_heads(search, heads));
	free(heads);
	return status;
}

/* ---- a walk over all of them ----
 * Plain rows first, generation by generation, then the others: what leaves the plain way
 * meanwhile is seen there. */

/* The generation with the least number from `number` on; NULL where there is none. */
static struct hpx_sqlite_generation *next_generation(struct hpx_sqlite_db *db, int64_t number)
{
	for (size_t i = db->generation_count; i > 0; i--) {
		struct hpx_sqlite_generation *g = &db->generations[i - 1];
		if (g->number >= number && g->state != HPX_GENERATION_DEAD)
			return g;
	}
	return NULL;
}

static enum hpx_status walk_generation(struct search *search, struct hpx_sqlite_generation *g)
{
	struct hpx_walk *walk = search->query->walk;
	struct hpx_sqlite_statement stmt =
		hpx_sqlite_generation_statement(search->db, g, HPX_GENERATION_SQL_WALK);
	enum hpx_status read = HPX_OK, status;
	bool more = true;

	hpx_sqlite_bind_int(&stmt, walk->number);
	hpx_sqlite_bind_int(&stmt, INT64_MAX);
	while (read == HPX_OK && search->list.count < search->query->limit &&
	       (more = hpx_sqlite_next(&stmt))) {
		struct hpx_sqlite_row row = { .generation = g->number,
					      .number = sqlite3_column_int64(stmt.handle, 0) };
		bool covered = false, matches;
		read = hpx_sqlite_row_covered(search->db, row.generation, row.number, &covered);
		if (read == HPX_OK && !covered && row.number > g->moved)
			read = consider(search, &stmt, g, &matches);
		walk->number = row.number;
		search->looked.operations++;
	}
	if (!more) {
		walk->part = g->number + 1;
		walk->number = 0;
	}
	status = hpx_sqlite_end(&stmt);
	return status != HPX_OK ? status : read;
}

/* The part behind all generations. */
#define PART_ASIDE INT64_MAX

static enum hpx_status walk_on(struct search *search)
{
	struct hpx_walk *walk = search->query->walk;
	enum hpx_status status = HPX_OK;
	size_t rows = 0, found = 0;

	while (status == HPX_OK && walk->part != PART_ASIDE && search->list.count < search->query->limit) {
		struct hpx_sqlite_generation *g = next_generation(search->db, walk->part);
		if (g == NULL || g->number != walk->part)
			walk->number = 0;
		walk->part = g != NULL ? g->number : PART_ASIDE;
		if (g != NULL)
			status = walk_generation(search, g);
	}
	if (status != HPX_OK || search->list.count >= search->query->limit)
		return status;
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(search->db, HPX_SQL_WALK_ASIDE);
	hpx_sqlite_bind_int(&stmt, walk->number);
	status = take_aside(search, &stmt, &rows, &found, &walk->number);
	walk->ended = found < search->query->limit;
	return status;
}

/* ---- both ---- */

static enum hpx_status look(struct search *search)
{
	enum hpx_status status = hpx_sqlite_generations_refresh(search->db);

	if (status == HPX_OK && search->query->walk != NULL) {
		status = walk_on(search);
		search->looked.all = search->query->walk->ended;
		return status;
	}
	if (status == HPX_OK)
		status = list_asides(search);
	return status == HPX_OK ? list_plain(search) : status;
}

enum hpx_status hpx_sqlite_list(struct hpx_store_reader *reader, const struct hpx_query *query,
				struct hpx_arena *arena, struct hpx_entry **ret_entries,
				size_t *ret_count, struct hpx_looked *ret_looked)
{
	struct search search = { .s = hpx_sqlite_of(reader->store),
				 .query = query,
				 .list = { .arena = arena, .size = sizeof(struct hpx_entry) },
				 .looked = { .all = true } };
	enum hpx_status status = hpx_sqlite_reader_db(reader, &search.db);

	if (status == HPX_OK)
		status = hpx_sqlite_do(search.db, HPX_SQL_BEGIN_READ);
	if (status != HPX_OK)
		return status;
	status = hpx_sqlite_end_read(search.db, look(&search));
	if (status != HPX_OK)
		return status;
	if (query->walk == NULL) {
		search.looked.all &= search.list.count <= query->limit;
		hpx_entries_newest(search.list.items, &search.list.count, query->limit);
	}
	*ret_entries = search.list.items;
	*ret_count = search.list.count;
	*ret_looked = search.looked;
	return HPX_OK;
}

enum hpx_status hpx_sqlite_events(struct hpx_store_reader *reader,
				  const struct hpx_operation_id *id, struct hpx_arena *arena,
				  struct hpx_event **ret_events, size_t *ret_count)
{
	struct growing list = { .arena = arena, .size = sizeof(struct hpx_event) };
	struct hpx_sqlite_statement stmt;
	struct hpx_sqlite_db *db;
	enum hpx_status status = hpx_sqlite_reader_db(reader, &db);

	if (status != HPX_OK)
		return status;
	stmt = hpx_sqlite_statement(db, HPX_SQL_EVENTS);
	hpx_sqlite_bind_blob(&stmt, id->bytes, sizeof(id->bytes));
	status = fill(&stmt, add_event, &list);
	if (status == HPX_OK) {
		*ret_events = list.items;
		*ret_count = list.count;
	}
	return status;
}
