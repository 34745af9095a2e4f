/* The filters of a server: which ids each generation may have.
 *
 * The filter of a closed generation is made from all rows of its table, by the keeper, a
 * bounded part at a time, and stored in the file; a start reads it. Nothing is inserted
 * into a closed generation, so that the filter is right for every connection that sees
 * the generation closed: "not there" then saves the look into its index, for writers
 * as for readers. A closed generation without a stored filter is looked into.
 *
 * With 40 closed generations one new key in 77 is let pass by one of the filters. Beside
 * each stands the list of the same ids, exactly, in parts with a check each
 * (hapax_filter_part): where the right part lacks an id, the generation does, and its
 * index, which has no check, is not asked. A part that is missing or damaged says
 * nothing. What was removed from a closed generation stays in its list; there the index
 * decides, once it was compared with its table (damage.c).
 *
 * A generation that is open has a hint instead: the ids that this process reserved,
 * and those that the keeper read. Another process' ids are not in it, so that a hint
 * only saves a reader its look; the reservation that follows goes by the file. */
#include <stdlib.h>

#include "base/crash_point.h"
#include "store/sqlite/driver.h"

/* Of one call of maintain(), which comes five times a second. */
#define READ_AT_ONCE 50000
#define PARTS_AT_ONCE 1024
/* Parts of a list: about so many ids each; a part's number has so many bits behind that
 * of its generation. */
#define IDS_OF_PART 64
#define PART_BITS 16

enum hpx_status hpx_sqlite_filters_init(struct hpx_sqlite_filters *filters)
{
	return pthread_rwlock_init(&filters->lock, NULL) == 0 ? HPX_OK : HPX_NOMEM;
}

static void free_item(struct hpx_sqlite_filter *item)
{
	hpx_id_filter_free(item->stored);
	hpx_id_filter_free(item->hint);
}

void hpx_sqlite_filters_done(struct hpx_sqlite_filters *filters)
{
	for (size_t i = 0; i < filters->count; i++)
		free_item(&filters->items[i]);
	free(filters->items);
	pthread_rwlock_destroy(&filters->lock);
}

static struct hpx_sqlite_filter *find_item(const struct hpx_sqlite_filters *filters, int64_t generation)
{
	for (size_t i = 0; i < filters->count; i++)
		if (filters->items[i].generation == generation)
			return &filters->items[i];
	return NULL;
}

/* ---- asking ---- */

/* Lists of generations have the same order, newest first: the next is close behind the
 * last one that was asked for. */
static const struct hpx_sqlite_filter *find_next(const struct hpx_sqlite_filters *filters,
						 int64_t generation, size_t *at)
{
	for (size_t i = *at; i < filters->count && filters->items[i].generation >= generation; i++)
		if (filters->items[i].generation == generation) {
			*at = i + 1;
			return &filters->items[i];
		}
	return NULL;
}

/* The writer needs no lock: only its thread replaces the list, and a filter that is
 * stored stays. */
static bool filter_may_have(struct hpx_sqlite_store *s, bool lock, int64_t generation,
			    const struct hpx_operation_id *id, size_t *at)
{
	const struct hpx_sqlite_filter *item;
	const struct hpx_id_filter *stored;
	bool may = true;

	if (lock)
		pthread_rwlock_rdlock(&s->filters.lock);
	item = find_next(&s->filters, generation, at);
	stored = item != NULL ? atomic_load_explicit(&item->stored, memory_order_acquire) : NULL;
	if (stored != NULL)
		may = hpx_id_filter_may_have(stored, id->bytes);
	if (lock)
		pthread_rwlock_unlock(&s->filters.lock);
	return may;
}

/* ---- the list ---- */

static int64_t part_count(const struct hpx_sqlite_generation *g)
{
	int64_t count = g->operations / IDS_OF_PART + 1;

	return count < 1 << PART_BITS ? count : 1 << PART_BITS;
}

/* By the first eight bytes, in the order of the ids. */
static int64_t part_of(const struct hpx_sqlite_generation *g, const uint8_t *id)
{
	uint64_t first = 0;

	for (int i = 0; i < 8; i++)
		first = first << 8 | id[i];
	return (int64_t)((unsigned __int128)first * (uint64_t)part_count(g) >> 64);
}

static uint32_t part_crc(int64_t number, struct hpx_span ids)
{
	struct hpx_sqlite_crc crc;

	hpx_sqlite_crc_init(&crc);
	hpx_sqlite_crc_int(&crc, number);
	hpx_sqlite_crc_span(&crc, ids);
	return hpx_sqlite_crc_end(&crc);
}

static bool has_id(struct hpx_span ids, const struct hpx_operation_id *id)
{
	for (size_t at = 0; at + HPX_SQLITE_ID_BYTES <= ids.len; at += HPX_SQLITE_ID_BYTES)
		if (memcmp(ids.ptr + at, id->bytes, HPX_SQLITE_ID_BYTES) == 0)
			return true;
	return false;
}

/* Whether it is certain that a closed generation lacks the id, index or no index. The
 * number of parts is that of a row whose check is right. */
static bool list_lacks(struct hpx_sqlite_db *db, const struct hpx_sqlite_generation *g,
		       const struct hpx_operation_id *id)
{
	struct hpx_sqlite_statement stmt;
	int64_t number = g->number << PART_BITS | part_of(g, id->bytes);
	bool lacks = false;

	if (!g->readable)
		return false;
	stmt = hpx_sqlite_statement(db, HPX_SQL_FILTER_PART);
	hpx_sqlite_bind_int(&stmt, number);
	if (hpx_sqlite_next(&stmt)) {
		struct hpx_span ids = hpx_sqlite_bytes(&stmt, 0);
		lacks = ids.ptr != NULL && sqlite3_column_int64(stmt.handle, 1) == part_crc(number, ids) &&
			!has_id(ids, id);
	}
	return hpx_sqlite_end(&stmt) == HPX_OK && lacks;
}

bool hpx_sqlite_filter_may_have(struct hpx_sqlite_store *s, struct hpx_sqlite_db *db,
				const struct hpx_sqlite_generation *g,
				const struct hpx_operation_id *id, size_t *at)
{
	if (g->state != HPX_GENERATION_CLOSED)
		return true;
	if (s->serve && !filter_may_have(s, db != &s->writer, g->number, id, at))
		return false;
	return !list_lacks(db, g, id);
}

/* ---- hints ---- */

static bool item_hints(const struct hpx_sqlite_filter *item, const struct hpx_operation_id *id)
{
	if (item->stored != NULL)
		return hpx_id_filter_may_have(item->stored, id->bytes);
	return !item->whole || hpx_id_filter_may_have(item->hint, id->bytes);
}

bool hpx_sqlite_filter_hint(struct hpx_sqlite_store *s, const struct hpx_operation_id *id)
{
	bool may = !s->serve;

	pthread_rwlock_rdlock(&s->filters.lock);
	for (size_t i = 0; i < s->filters.count && !may; i++)
		may = item_hints(&s->filters.items[i], id);
	pthread_rwlock_unlock(&s->filters.lock);
	return may;
}

void hpx_sqlite_filter_add(struct hpx_sqlite_store *s, int64_t generation,
			   const struct hpx_operation_id *id)
{
	struct hpx_sqlite_filter *item;

	if (!s->serve)
		return;
	pthread_rwlock_rdlock(&s->filters.lock);
	item = find_item(&s->filters, generation);
	if (item != NULL && item->hint != NULL)
		hpx_id_filter_add(item->hint, id->bytes);
	pthread_rwlock_unlock(&s->filters.lock);
}

/* ---- the list follows the writer's ---- */

/* The marker makes a filter of a machine with another order of bytes no filter. */
static uint32_t crc_of(int64_t generation, struct hpx_span bits)
{
	const uint32_t marker = 0x01020304;
	struct hpx_sqlite_crc crc;

	hpx_sqlite_crc_init(&crc);
	hpx_sqlite_crc_int(&crc, generation);
	hpx_sqlite_crc_fixed(&crc, &marker, sizeof(marker));
	hpx_sqlite_crc_span(&crc, bits);
	return hpx_sqlite_crc_end(&crc);
}

/* Bytes that are no filter are made anew. */
static enum hpx_status read_stored(struct hpx_sqlite_db *db, int64_t generation,
				   struct hpx_id_filter **ret_filter)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_FILTER);

	*ret_filter = NULL;
	hpx_sqlite_bind_int(&stmt, generation);
	if (hpx_sqlite_next(&stmt)) {
		struct hpx_span bits = hpx_sqlite_bytes(&stmt, 0);
		if (bits.ptr != NULL &&
		    sqlite3_column_int64(stmt.handle, 1) == crc_of(generation, bits))
			*ret_filter = hpx_id_filter_of(bits);
	}
	return hpx_sqlite_end(&stmt);
}

static enum hpx_status make_item(struct hpx_sqlite_store *s, const struct hpx_sqlite_generation *g,
				 struct hpx_sqlite_filter *item)
{
	uint64_t expected = (uint64_t)s->generation_operations;
	struct hpx_id_filter *stored = NULL;
	enum hpx_status status = HPX_OK;

	*item = (struct hpx_sqlite_filter){ .generation = g->number };
	if (g->state == HPX_GENERATION_CLOSED)
		status = read_stored(&s->writer, g->number, &stored);
	item->stored = stored;
	if (status != HPX_OK || stored != NULL)
		return status;
	if ((uint64_t)g->operations > expected)
		expected = (uint64_t)g->operations;
	/* Without the memory for one, looks read the file. */
	item->hint = hpx_id_filter_new(expected);
	/* One that was just opened has nothing that this process does not know of. */
	item->whole = item->hint != NULL && g->state == HPX_GENERATION_OPEN && g->last == 0;
	return HPX_OK;
}

/* Takes over what is there and adds what is new; the old list stays where memory is
 * missing. */
enum hpx_status hpx_sqlite_filters_sync(struct hpx_sqlite_store *s)
{
	struct hpx_sqlite_filters *filters = &s->filters;
	struct hpx_sqlite_db *db = &s->writer;
	struct hpx_sqlite_filter *fresh;
	enum hpx_status status = HPX_OK;
	size_t count = 0;

	if (!s->serve || filters->version == db->list_version)
		return HPX_OK;
	fresh = calloc(db->generation_count + 1, sizeof(*fresh));
	if (fresh == NULL)
		return HPX_NOMEM;
	pthread_rwlock_wrlock(&filters->lock);
	for (size_t i = 0; i < db->generation_count && status == HPX_OK; i++) {
		struct hpx_sqlite_filter *known = find_item(filters, db->generations[i].number);
		if (db->generations[i].state == HPX_GENERATION_DEAD)
			continue;
		if (known != NULL) {
			fresh[count++] = *known;
			*known = (struct hpx_sqlite_filter){ .generation = 0 };
		} else {
			status = make_item(s, &db->generations[i], &fresh[count++]);
		}
	}
	for (size_t i = 0; i < filters->count; i++)
		free_item(&filters->items[i]);
	free(filters->items);
	filters->items = fresh;
	filters->count = count;
	if (status == HPX_OK)
		filters->version = db->list_version;
	pthread_rwlock_unlock(&filters->lock);
	return status;
}

/* ---- making them, on the keeper's connection ---- */

static enum hpx_status keep_id(struct hpx_sqlite_making *making, const struct hpx_sqlite_half_id *id)
{
	if (making->id_count == making->id_room) {
		size_t more = making->id_room != 0 ? 2 * making->id_room : 1024;
		void *grown = reallocarray(making->ids, more, sizeof(*making->ids));
		if (grown == NULL)
			return HPX_NOMEM;
		making->ids = grown;
		making->id_room = more;
	}
	making->ids[making->id_count++] = *id;
	return HPX_OK;
}

/* Adds the rows behind `*read_to` to a filter, and to the ids themselves where these are
 * wanted; whether they were the last. */
static enum hpx_status read_ids(struct hpx_sqlite_db *db, struct hpx_sqlite_generation *g,
				struct hpx_id_filter *filter, struct hpx_sqlite_making *making,
				int64_t *read_to, bool *ret_end)
{
	struct hpx_sqlite_statement stmt =
		hpx_sqlite_generation_statement(db, g, HPX_GENERATION_SQL_IDS);
	enum hpx_status read = HPX_OK, status;
	unsigned count = 0;

	hpx_sqlite_bind_int(&stmt, *read_to);
	hpx_sqlite_bind_int(&stmt, READ_AT_ONCE);
	while (read != HPX_NOMEM && hpx_sqlite_next(&stmt)) {
		struct hpx_sqlite_half_id id;
		/* A row without an id is damaged; the index may still lead to it. */
		if (!hpx_sqlite_fixed(&stmt, 1, id.bytes, sizeof(id.bytes)))
			read = HPX_CORRUPT;
		else
			hpx_id_filter_add(filter, id.bytes);
		if (making != NULL && read == HPX_OK)
			read = keep_id(making, &id);
		*read_to = sqlite3_column_int64(stmt.handle, 0);
		count++;
	}
	status = hpx_sqlite_end(&stmt);
	*ret_end = status == HPX_OK && read == HPX_OK && count < READ_AT_ONCE;
	return status == HPX_OK ? read : status;
}

static enum hpx_status write_filter(struct hpx_sqlite_db *db, int64_t generation,
				    struct hpx_span bits)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_PUT_FILTER);

	hpx_sqlite_bind_int(&stmt, generation);
	hpx_sqlite_bind_blob(&stmt, bits.ptr, bits.len);
	hpx_sqlite_bind_int(&stmt, crc_of(generation, bits));
	return hpx_sqlite_finish(&stmt);
}

static enum hpx_status write_part(struct hpx_sqlite_db *db, int64_t number, struct hpx_span ids)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_PUT_FILTER_PART);

	hpx_sqlite_bind_int(&stmt, number);
	hpx_sqlite_bind_blob(&stmt, ids.ptr, ids.len);
	hpx_sqlite_bind_int(&stmt, part_crc(number, ids));
	return hpx_sqlite_finish(&stmt);
}

/* The next parts of the list: `*part` and `*at`, which id comes next, move on. */
static enum hpx_status write_parts(struct hpx_sqlite_db *db, const struct hpx_sqlite_generation *g,
				   const struct hpx_sqlite_making *making, int64_t *part, size_t *at)
{
	int64_t end = *part + PARTS_AT_ONCE < part_count(g) ? *part + PARTS_AT_ONCE : part_count(g);
	enum hpx_status status = HPX_OK;

	for (; *part < end && status == HPX_OK; ++*part) {
		size_t first = *at;
		while (*at < making->id_count && part_of(g, making->ids[*at].bytes) == *part)
			++*at;
		status = write_part(db, g->number << PART_BITS | *part,
				    hpx_span((const char *)(making->ids + first), (*at - first) * sizeof(*making->ids)));
	}
	return status;
}

/* The list's next parts, and behind the last of them the filter. The list of a
 * generation whose row cannot be believed would not be asked. */
static enum hpx_status write_next(struct hpx_sqlite_db *db, const struct hpx_sqlite_generation *g,
				  struct hpx_sqlite_making *making, bool *ret_end)
{
	int64_t part = making->part;
	size_t at = making->at;
	enum hpx_status status = g->readable ? write_parts(db, g, making, &part, &at) : HPX_OK;
	bool end = status == HPX_OK && (!g->readable || part == part_count(g));

	if (end)
		status = write_filter(db, g->number, hpx_id_filter_bytes(making->filter));
	HPX_CRASH_POINT(generation_filtered);
	if (status == HPX_OK)
		status = hpx_sqlite_do(db, HPX_SQL_COMMIT);
	if (status != HPX_OK)
		return status;
	making->part = part;
	making->at = at;
	*ret_end = end;
	return HPX_OK;
}

/* In a transaction of its own: only where the generation is still there, and closed. */
static enum hpx_status store_next(struct hpx_sqlite_store *s, bool *ret_end)
{
	struct hpx_sqlite_db *db = &s->keeper;
	const struct hpx_sqlite_generation *g;
	enum hpx_status status = hpx_sqlite_do(db, HPX_SQL_BEGIN_WRITE);

	if (status != HPX_OK)
		return status;
	status = hpx_sqlite_generations_refresh(db);
	g = hpx_sqlite_generation_find(db, s->making.generation);
	if (status == HPX_OK)
		status = g != NULL && g->state == HPX_GENERATION_CLOSED ? write_next(db, g, &s->making, ret_end) :
									  HPX_NOT_FOUND;
	if (status == HPX_OK) {
		HPX_CRASH_POINT(filter_stored);
		return HPX_OK;
	}
	if (!sqlite3_get_autocommit(db->handle))
		hpx_sqlite_do(db, HPX_SQL_ROLLBACK);
	hpx_sqlite_generations_forget(db);
	return status;
}

void hpx_sqlite_making_end(struct hpx_sqlite_store *s)
{
	hpx_id_filter_free(s->making.filter);
	free(s->making.ids);
	s->making = (struct hpx_sqlite_making){ .filter = NULL };
}

static void use_filter(struct hpx_sqlite_store *s, int64_t generation)
{
	struct hpx_sqlite_filter *item;

	pthread_rwlock_wrlock(&s->filters.lock);
	item = find_item(&s->filters, generation);
	if (item != NULL && item->stored == NULL) {
		item->stored = s->making.filter;
		s->making.filter = NULL;
		hpx_id_filter_free(item->hint);
		item->hint = NULL;
	}
	pthread_rwlock_unlock(&s->filters.lock);
	hpx_sqlite_making_end(s);
}

static int compare_ids(const void *left, const void *right)
{
	return memcmp(left, right, sizeof(struct hpx_sqlite_half_id));
}

static enum hpx_status making_begin(struct hpx_sqlite_store *s, const struct hpx_sqlite_generation *g)
{
	if (s->making.filter != NULL && s->making.generation == g->number)
		return HPX_OK;
	hpx_sqlite_making_end(s);
	s->making.filter = hpx_id_filter_new((uint64_t)(g->operations > 0 ? g->operations : 1));
	s->making.generation = g->number;
	s->making.read_to = INT64_MIN;
	return s->making.filter != NULL ? HPX_OK : HPX_NOMEM;
}

static enum hpx_status make_filter(struct hpx_sqlite_store *s, struct hpx_sqlite_generation *g)
{
	struct hpx_sqlite_making *making = &s->making;
	enum hpx_status status = making_begin(s, g);
	bool stored = false;

	if (status == HPX_OK && !making->whole) {
		status = read_ids(&s->keeper, g, making->filter, making, &making->read_to, &making->whole);
		if (making->whole && making->id_count > 0)
			qsort(making->ids, making->id_count, sizeof(*making->ids), compare_ids);
	}
	if (status == HPX_OK && making->whole)
		status = store_next(s, &stored);
	if (stored)
		use_filter(s, making->generation);
	else if (status != HPX_OK && status != HPX_BUSY)
		hpx_sqlite_making_end(s);
	/* It was dropped meanwhile. */
	return status == HPX_NOT_FOUND ? HPX_OK : status;
}

/* The hint's filter is added to by the writer meanwhile; only the keeper moves its
 * `read_to`, and only the writer's thread replaces items, under the lock. */
static enum hpx_status fill_hint(struct hpx_sqlite_store *s, struct hpx_sqlite_generation *g)
{
	struct hpx_sqlite_filter *item;
	enum hpx_status status = HPX_OK;
	bool end = false;

	pthread_rwlock_rdlock(&s->filters.lock);
	item = find_item(&s->filters, g->number);
	if (item != NULL && item->hint != NULL && !item->whole) {
		status = read_ids(&s->keeper, g, item->hint, NULL, &item->read_to, &end);
		item->whole = end;
	}
	pthread_rwlock_unlock(&s->filters.lock);
	return status;
}

static bool has_stored(struct hpx_sqlite_store *s, int64_t generation)
{
	const struct hpx_sqlite_filter *item;
	bool has;

	pthread_rwlock_rdlock(&s->filters.lock);
	item = find_item(&s->filters, generation);
	has = item == NULL || item->stored != NULL;
	pthread_rwlock_unlock(&s->filters.lock);
	return has;
}

enum hpx_status hpx_sqlite_filters_make(struct hpx_sqlite_store *s)
{
	struct hpx_sqlite_db *db = &s->keeper;
	enum hpx_status status = hpx_sqlite_generations_refresh(db);

	for (size_t i = 0; i < db->generation_count && status == HPX_OK; i++) {
		struct hpx_sqlite_generation *g = &db->generations[i];
		if (g->state == HPX_GENERATION_OPEN)
			status = fill_hint(s, g);
	}
	for (size_t i = 0; i < db->generation_count && status == HPX_OK; i++) {
		struct hpx_sqlite_generation *g = &db->generations[i];
		if (g->state != HPX_GENERATION_CLOSED || has_stored(s, g->number))
			continue;
		/* A damaged one is looked into by its index. */
		return make_filter(s, g);
	}
	return status;
}
