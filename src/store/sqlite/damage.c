/* Damage of the file: found in the background, told, and accepted by a person.
 *
 * A row has its check, but an index that lost an entry, or a page that belongs to no
 * table any more, has none: a key would be new that is not. The keeper therefore looks
 * at one table after the other, each in a read of its own and with long pauses:
 * SQLite's quick_check, and of a generation whether its index has every row. What it
 * finds is written to hapax_damage. As long as a person has not accepted it, known keys
 * are answered and new ones refused; `hapax repair` says what is concerned, mends an
 * index from its table, and accepts the rest. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "store/sqlite/driver.h"

/* Between two tables; and so many times as long as the last one took. */
#define PAUSE_MS 1000
#define PAUSE_SHARE 9
#define NAME_SIZE 64
#define WHAT_SIZE 200

static const char *const tables[] = { "hapax_aside", "hapax_generation", "hapax_generation_list",
				      "hapax_filter", "hapax_lease", "hapax_job", "hapax_reconcile",
				      "hapax_event", "hapax_recipe" };
#define TABLE_COUNT ((int64_t)(sizeof(tables) / sizeof(tables[0])))

/* ---- looking ---- */

/* The first word of a statement about damage; "" where there is none. False: the question
 * could not be asked. */
static bool ask(struct hpx_sqlite_db *db, const char *sql, const char *fine, char what[WHAT_SIZE])
{
	sqlite3_stmt *stmt = NULL;
	int code = sqlite3_prepare_v2(db->handle, sql, -1, &stmt, NULL);

	what[0] = '\0';
	if (code == SQLITE_OK)
		code = sqlite3_step(stmt);
	if (code == SQLITE_ROW) {
		const char *text = (const char *)sqlite3_column_text(stmt, 0);
		if (text == NULL || strcmp(text, fine) != 0)
			snprintf(what, WHAT_SIZE, "%s", text != NULL ? text : "it cannot be read");
	} else if ((code & 0xff) == SQLITE_CORRUPT) {
		snprintf(what, WHAT_SIZE, "%s", sqlite3_errmsg(db->handle));
	}
	sqlite3_finalize(stmt);
	return code == SQLITE_ROW || (code & 0xff) == SQLITE_CORRUPT;
}

static bool check_table(struct hpx_sqlite_db *db, const char *name, char what[WHAT_SIZE])
{
	char sql[128];

	snprintf(sql, sizeof(sql), "PRAGMA quick_check('%s')", name);
	return ask(db, sql, "ok", what);
}

/* quick_check does not compare an index with its table. */
#define LOST_SQL \
	"SELECT CASE count(*) WHEN 0 THEN '' ELSE count(*) || ' rows are missing in the index' END " \
	"FROM hapax_operation_# o NOT INDEXED WHERE NOT EXISTS (SELECT 1 FROM hapax_operation_# i " \
	"INDEXED BY hapax_id_# WHERE i.id = o.id AND i.seq = o.seq)"

#define LOST_ASIDE_SQL \
	"SELECT CASE count(*) WHEN 0 THEN '' ELSE count(*) || ' rows are missing in the index' END " \
	"FROM hapax_aside o NOT INDEXED WHERE NOT EXISTS (SELECT 1 FROM hapax_aside i " \
	"INDEXED BY sqlite_autoindex_hapax_aside_1 WHERE i.id = o.id AND i.seq = o.seq)"

/* False: not all of it could be looked at. */
static bool check_generation(struct hpx_sqlite_db *db, int64_t number, char name[NAME_SIZE],
			     char what[WHAT_SIZE])
{
	char sql[512];
	bool whole;

	snprintf(name, NAME_SIZE, "hapax_answer_%lld", (long long)number);
	if (!check_table(db, name, what) || what[0] != '\0')
		return false;
	snprintf(name, NAME_SIZE, "hapax_operation_%lld", (long long)number);
	if (!check_table(db, name, what) || what[0] != '\0')
		return false;
	whole = hpx_sqlite_number_sql(LOST_SQL, number, sql, sizeof(sql));
	HPX_ASSERT(whole);
	return ask(db, sql, "", what);
}

/* ---- noting ---- */

static enum hpx_status put_damage(struct hpx_sqlite_db *db, const char *name, const char *what,
				  int64_t at_ms)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_PUT_DAMAGE);

	hpx_sqlite_bind_text(&stmt, hpx_span_of(name));
	hpx_sqlite_bind_text(&stmt, hpx_span_of(what));
	hpx_sqlite_bind_int(&stmt, at_ms);
	return hpx_sqlite_finish(&stmt);
}

static enum hpx_status end_write(struct hpx_sqlite_db *db, enum hpx_status status)
{
	if (status == HPX_OK)
		status = hpx_sqlite_do(db, HPX_SQL_BUMP_LIST);
	if (status == HPX_OK)
		status = hpx_sqlite_do(db, HPX_SQL_COMMIT);
	if (status != HPX_OK && !sqlite3_get_autocommit(db->handle))
		hpx_sqlite_do(db, HPX_SQL_ROLLBACK);
	hpx_sqlite_generations_forget(db);
	return status;
}

/* With the list's version every process learns of it. */
static enum hpx_status note(struct hpx_sqlite_store *s, struct hpx_sqlite_db *db, const char *name,
			    const char *what)
{
	enum hpx_status status = hpx_sqlite_do(db, HPX_SQL_BEGIN_WRITE);

	if (status != HPX_OK)
		return status;
	return end_write(db, put_damage(db, name, what, hpx_store_moment(&s->base).wall_ms));
}

static bool is_accepted(struct hpx_sqlite_db *db, const char *name)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_ACCEPTED);
	bool accepted;

	hpx_sqlite_bind_text(&stmt, hpx_span_of(name));
	accepted = hpx_sqlite_next(&stmt);
	return hpx_sqlite_end(&stmt) == HPX_OK && accepted;
}

/* ---- at start ---- */

/* Whether the tables of the file are those of the list, newest first: a generation that
 * the list lost would be absent with all that is in it. */
static enum hpx_status check_list(struct hpx_sqlite_store *s, char *problem)
{
	struct hpx_sqlite_db *db = &s->writer;
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_GENERATION_TABLES);
	size_t count = 0;
	bool same = true;
	enum hpx_status status;

	for (size_t i = 1; i < db->generation_count; i++)
		same &= db->generations[i].number < db->generations[i - 1].number;
	while (hpx_sqlite_next(&stmt)) {
		same &= hpx_sqlite_generation_find(db, sqlite3_column_int64(stmt.handle, 0)) != NULL;
		count++;
	}
	status = hpx_sqlite_end(&stmt);
	if (status != HPX_OK || (same && count == db->generation_count))
		return status;
	hpx_store_problem(problem, "%s is damaged: hapax_generation lists %zu generations, and there are tables of %zu: "
				   "what is in the others would be executed again. Restore a backup",
			  s->path, db->generation_count, count);
	return HPX_CORRUPT;
}

static bool has_filter(struct hpx_sqlite_db *db, int64_t generation)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_FILTER);
	bool has;

	hpx_sqlite_bind_int(&stmt, generation);
	has = hpx_sqlite_next(&stmt);
	return hpx_sqlite_end(&stmt) == HPX_OK && has;
}

static void note_at_start(struct hpx_sqlite_store *s, const char *name, const char *what)
{
	if (note(s, &s->writer, name, what) != HPX_OK || !is_accepted(&s->writer, name))
		atomic_store(&s->damage_seen, true);
}

/* Those that have a filter are compared by the keeper; a miss in them counts for nothing
 * until then, which concerns the one new key in 3,000 that the filter lets pass. */
static enum hpx_status list_comparisons(struct hpx_sqlite_store *s)
{
	struct hpx_sqlite_db *db = &s->writer;

	s->comparisons = calloc(db->generation_count + 1, sizeof(*s->comparisons));
	if (s->comparisons == NULL)
		return HPX_NOMEM;
	for (size_t i = 0; i < db->generation_count; i++) {
		const struct hpx_sqlite_generation *g = &db->generations[i];
		struct hpx_sqlite_comparison *c = &s->comparisons[s->comparison_count++];
		c->generation = g->number;
		atomic_store(&c->done, g->state == HPX_GENERATION_DEAD ||
					       (g->state == HPX_GENERATION_OPEN || !has_filter(db, g->number)));
	}
	return HPX_OK;
}

/* Generations without a filter, and aside rows: whether their indexes have every row. */
enum hpx_status hpx_sqlite_damage_start(struct hpx_sqlite_store *s, char *problem)
{
	char sql[512], name[NAME_SIZE], what[WHAT_SIZE];
	enum hpx_status status = check_list(s, problem);

	if (status == HPX_OK)
		status = list_comparisons(s);
	if (status != HPX_OK)
		return status;
	ask(&s->writer, LOST_ASIDE_SQL, "", what);
	if (what[0] != '\0')
		note_at_start(s, "hapax_aside", what);
	for (size_t i = 0; i < s->comparison_count; i++) {
		int64_t number = s->comparisons[i].generation;
		struct hpx_sqlite_generation *g = hpx_sqlite_generation_find(&s->writer, number);
		if (g == NULL || g->state == HPX_GENERATION_DEAD || !atomic_load(&s->comparisons[i].done))
			continue;
		bool whole = hpx_sqlite_number_sql(LOST_SQL, number, sql, sizeof(sql));
		HPX_ASSERT(whole);
		bool compared = ask(&s->writer, sql, "", what) && what[0] == '\0';
		atomic_store(&s->comparisons[i].done, compared);
		if (what[0] == '\0')
			continue;
		snprintf(name, sizeof(name), "hapax_operation_%lld", (long long)number);
		note_at_start(s, name, what);
		status = hpx_sqlite_generations_refresh(&s->writer);
		if (status != HPX_OK)
			return status;
	}
	return hpx_sqlite_generations_refresh(&s->writer);
}

bool hpx_sqlite_miss_counts(struct hpx_sqlite_store *s, int64_t generation)
{
	for (size_t i = 0; i < s->comparison_count; i++) {
		struct hpx_sqlite_comparison *c = &s->comparisons[i];
		if (c->generation != generation)
			continue;
		if (atomic_load(&c->done))
			return true;
		atomic_store(&c->wanted, true);
		return false;
	}
	return true;
}

/* ---- the keeper's round ---- */

static void compare(struct hpx_sqlite_store *s, int64_t number, char name[NAME_SIZE], char what[WHAT_SIZE])
{
	bool compared = check_generation(&s->keeper, number, name, what) && what[0] == '\0';

	for (size_t i = 0; i < s->comparison_count && compared; i++)
		if (s->comparisons[i].generation == number)
			atomic_store(&s->comparisons[i].done, true);
}

/* The next one behind those that were looked at: the tables, then the generations in
 * their order. False: all were. */
static bool check_next(struct hpx_sqlite_store *s, char name[NAME_SIZE], char what[WHAT_SIZE])
{
	struct hpx_sqlite_db *db = &s->keeper;

	what[0] = '\0';
	if (s->checked_tables < TABLE_COUNT) {
		snprintf(name, NAME_SIZE, "%s", tables[s->checked_tables++]);
		check_table(db, name, what);
		return true;
	}
	for (size_t i = db->generation_count; i > 0; i--) {
		const struct hpx_sqlite_generation *g = &db->generations[i - 1];
		if (g->number <= s->checked_generation || g->state == HPX_GENERATION_DEAD)
			continue;
		s->checked_generation = g->number;
		compare(s, g->number, name, what);
		return true;
	}
	return false;
}

/* One that somebody waits for goes first. */
static struct hpx_sqlite_comparison *find_wanted(struct hpx_sqlite_store *s)
{
	for (size_t i = 0; i < s->comparison_count; i++)
		if (atomic_load(&s->comparisons[i].wanted) && !atomic_load(&s->comparisons[i].done))
			return &s->comparisons[i];
	return NULL;
}

/* False: there was nothing to look at. */
static bool check_one(struct hpx_sqlite_store *s, char name[NAME_SIZE], char what[WHAT_SIZE])
{
	struct hpx_sqlite_comparison *wanted = find_wanted(s);

	if (wanted == NULL)
		return check_next(s, name, what);
	atomic_store(&wanted->wanted, false);
	what[0] = '\0';
	if (hpx_sqlite_generation_find(&s->keeper, wanted->generation) != NULL)
		compare(s, wanted->generation, name, what);
	return true;
}

enum hpx_status hpx_sqlite_damage_look(struct hpx_sqlite_store *s, char *problem)
{
	int64_t began_ms = hpx_clock_boot_ms();
	char name[NAME_SIZE], what[WHAT_SIZE];
	enum hpx_status status;

	if (began_ms < s->check_at_ms && find_wanted(s) == NULL)
		return HPX_OK;
	/* The first look waits, too: a start has other things to do. */
	if (s->check_at_ms == 0) {
		s->check_at_ms = began_ms + PAUSE_MS;
		return HPX_OK;
	}
	status = hpx_sqlite_generations_refresh(&s->keeper);
	if (status != HPX_OK || !check_one(s, name, what)) {
		s->check_at_ms = began_ms + PAUSE_MS;
		return status;
	}
	int64_t took_ms = hpx_clock_boot_ms() - began_ms;
	s->check_at_ms = began_ms + took_ms + PAUSE_MS + PAUSE_SHARE * took_ms;
	if (what[0] == '\0')
		return HPX_OK;
	/* Where it cannot be noted, this process goes by what it saw. */
	if (note(s, &s->keeper, name, what) == HPX_OK && is_accepted(&s->keeper, name))
		return HPX_OK;
	atomic_store(&s->damage_seen, true);
	atomic_store(&s->damaged, true);
	hpx_store_problem(problem, "%s: table %s is damaged (%s): new keys are refused until `hapax repair`",
			  s->path, name, what);
	return HPX_CORRUPT;
}

enum hpx_status hpx_sqlite_damage_sync(struct hpx_sqlite_store *s)
{
	struct hpx_sqlite_statement stmt;
	bool damaged;
	enum hpx_status status;

	if (s->damage_version == s->writer.list_version)
		return HPX_OK;
	stmt = hpx_sqlite_statement(&s->writer, HPX_SQL_DAMAGED);
	damaged = hpx_sqlite_next(&stmt);
	status = hpx_sqlite_end(&stmt);
	if (status != HPX_OK)
		return status;
	atomic_store(&s->damaged, damaged || atomic_load(&s->damage_seen));
	s->damage_version = s->writer.list_version;
	return HPX_OK;
}

/* ---- hapax repair ---- */

struct repair {
	struct hpx_sqlite_store *s;
	bool accept;
	struct hpx_store_repair *result;
};

static void tell(const struct repair *repair, const char *text)
{
	repair->result->tell(repair->result->user, text);
}

/* An index can be made anew from its table. */
static bool mend_index(const struct repair *repair, int64_t number, const char *what)
{
	char sql[64];

	if (!repair->accept || strstr(what, "missing in the index") == NULL)
		return false;
	snprintf(sql, sizeof(sql), "REINDEX hapax_id_%lld", (long long)number);
	return sqlite3_exec(repair->s->writer.handle, sql, NULL, NULL, NULL) == SQLITE_OK;
}

static enum hpx_status report(const struct repair *repair, const struct hpx_sqlite_generation *g,
			      const char *name, const char *what)
{
	char text[512];

	repair->result->damaged++;
	if (g != NULL && mend_index(repair, g->number, what)) {
		repair->result->mended++;
		snprintf(text, sizeof(text), "%s: %s: the index was made anew from the table", name, what);
	} else if (g != NULL) {
		snprintf(text, sizeof(text), "%s: %s: of %lld operations, reserved from %lld to %lld "
					     "(milliseconds since 1970), some may be unknown or missing: a "
					     "retry of one that is missing is executed again",
			 name, what, (long long)g->operations, (long long)g->opened_ms,
			 (long long)(g->closed_ms != 0 ? g->closed_ms : hpx_store_moment(&repair->s->base).wall_ms));
	} else {
		snprintf(text, sizeof(text), "%s: %s: rows of it may be unknown or missing", name, what);
	}
	tell(repair, text);
	return HPX_OK;
}

static enum hpx_status accept_all(struct hpx_sqlite_store *s)
{
	struct hpx_sqlite_db *db = &s->writer;
	enum hpx_status status = hpx_sqlite_do(db, HPX_SQL_BEGIN_WRITE);

	return status == HPX_OK ? end_write(db, hpx_sqlite_do(db, HPX_SQL_ACCEPT_DAMAGE)) : status;
}

static enum hpx_status repair_tables(const struct repair *repair)
{
	struct hpx_sqlite_db *db = &repair->s->writer;
	char name[NAME_SIZE], what[WHAT_SIZE];
	enum hpx_status status = hpx_sqlite_generations_refresh(db);

	for (int64_t i = 0; i < TABLE_COUNT && status == HPX_OK; i++) {
		check_table(db, tables[i], what);
		if (what[0] != '\0')
			status = report(repair, NULL, tables[i], what);
		if (what[0] != '\0' && repair->accept && status == HPX_OK)
			status = note(repair->s, db, tables[i], what);
	}
	for (size_t i = 0; i < db->generation_count && status == HPX_OK; i++) {
		const struct hpx_sqlite_generation g = db->generations[i];
		if (g.state == HPX_GENERATION_DEAD)
			continue;
		check_generation(db, g.number, name, what);
		if (what[0] != '\0')
			status = report(repair, &g, name, what);
		if (what[0] != '\0' && repair->accept && status == HPX_OK)
			status = note(repair->s, db, name, what);
		if (status == HPX_OK)
			status = hpx_sqlite_generations_refresh(db);
	}
	return status;
}

enum hpx_status hpx_sqlite_repair_store(struct hpx_sqlite_store *s, bool accept,
					struct hpx_store_repair *result)
{
	struct repair repair = { s, accept, result };
	enum hpx_status status = repair_tables(&repair);

	if (status == HPX_OK && accept)
		status = accept_all(s);
	return status;
}
