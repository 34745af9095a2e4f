/* Damage of the file: found in the background, told, and accepted by a person.
 *
 * A row has its check, but an index that lost an entry, or a page that belongs to no
 * table any more, has none: a key would be new that is not. Of a closed generation the
 * list of its ids stands in for the index (filter.c), so that nobody waits for what is
 * looked for here; but damage in one place is a sign of more. The keeper therefore goes
 * through the whole file once a day, at a hundredth of a core: SQLite's quick_check of
 * each small table; of a generation a few thousand rows at a time, each in a read of its
 * own, whether all can be read and the index has them. Where one looks damaged, all of
 * that generation is checked at once. What is found is written to hapax_damage. As long
 * as a person has not accepted it, known keys are answered and new ones refused; `hapax
 * repair` says what is concerned, mends an index from its table, and accepts the rest. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "store/sqlite/driver.h"

/* Before the first look, and between two rounds. */
#define PAUSE_MS 1000
#define ROUND_MS ((int64_t)24 * 60 * 60 * 1000)
/* Between two looks, so many times as long as the last one took. */
#define PAUSE_SHARE 99
/* Rows of one look; and for how long looks follow each other where somebody waits. */
#define LOOK_ROWS 2000
#define WANTED_MS 50
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

static struct hpx_sqlite_comparison *find_comparison(struct hpx_sqlite_store *s, int64_t generation)
{
	for (size_t i = 0; i < s->comparison_count; i++)
		if (s->comparisons[i].generation == generation)
			return &s->comparisons[i];
	return NULL;
}

static void end_comparison(struct hpx_sqlite_store *s, int64_t generation, bool compared)
{
	struct hpx_sqlite_comparison *c = find_comparison(s, generation);

	if (c == NULL)
		return;
	atomic_store(&c->wanted, false);
	if (compared)
		atomic_store(&c->done, true);
}

/* The number that a statement about rows between two numbers gives. */
static enum hpx_status count_between(struct hpx_sqlite_db *db, struct hpx_sqlite_generation *g,
				     enum hpx_generation_sql sql, int64_t from, int64_t to,
				     int64_t *ret_count)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_generation_statement(db, g, sql);

	hpx_sqlite_bind_int(&stmt, from);
	hpx_sqlite_bind_int(&stmt, to);
	*ret_count = hpx_sqlite_next(&stmt) ? sqlite3_column_int64(stmt.handle, 0) : -1;
	return hpx_sqlite_end(&stmt);
}

/* The number up to which the next rows go; INT64_MAX: they are the last. */
static enum hpx_status find_rows(struct hpx_sqlite_db *db, struct hpx_sqlite_generation *g, int64_t from,
				 int64_t *ret_to)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_generation_statement(db, g, HPX_GENERATION_SQL_BEHIND);

	*ret_to = INT64_MAX;
	hpx_sqlite_bind_int(&stmt, from);
	hpx_sqlite_bind_int(&stmt, LOOK_ROWS);
	if (hpx_sqlite_next(&stmt))
		*ret_to = sqlite3_column_int64(stmt.handle, 0);
	return hpx_sqlite_end(&stmt);
}

/* The next rows of the generation that is looked at. `*ret_fine` false: something is
 * wrong with them. */
static enum hpx_status look_at_rows(struct hpx_sqlite_store *s, struct hpx_sqlite_generation *g, bool *ret_fine)
{
	struct hpx_sqlite_db *db = &s->keeper;
	int64_t from = s->looked_to, to = from, lost = 0, answers = 0;
	enum hpx_status status = find_rows(db, g, from, &to);

	if (status == HPX_OK)
		status = count_between(db, g, HPX_GENERATION_SQL_LOST, from, to, &lost);
	if (status == HPX_OK)
		status = count_between(db, g, HPX_GENERATION_SQL_READ_ANSWERS, from, to, &answers);
	*ret_fine = status == HPX_OK && lost == 0 && answers >= 0;
	if (status == HPX_OK)
		s->looked_to = to;
	return status == HPX_CORRUPT ? HPX_OK : status;
}

static void begin_generation(struct hpx_sqlite_store *s, int64_t generation)
{
	s->looking = generation;
	s->looked_to = INT64_MIN;
}

/* A part of the generation that is looked at, or all of it where that part is damaged.
 * `name` and `what` as check_generation() has them. */
static enum hpx_status look_at_generation(struct hpx_sqlite_store *s, struct hpx_sqlite_generation *g,
					  char name[NAME_SIZE], char what[WHAT_SIZE])
{
	bool fine = true;
	enum hpx_status status = look_at_rows(s, g, &fine);

	if (status != HPX_OK)
		return status;
	if (!fine)
		fine = check_generation(&s->keeper, g->number, name, what) && what[0] == '\0';
	if (!fine || s->looked_to == INT64_MAX) {
		end_comparison(s, g->number, fine);
		s->looking = 0;
	}
	return HPX_OK;
}

/* The oldest behind those that were looked at; NULL: all were. */
static struct hpx_sqlite_generation *next_generation(struct hpx_sqlite_store *s)
{
	struct hpx_sqlite_db *db = &s->keeper;

	for (size_t i = db->generation_count; i > 0; i--) {
		struct hpx_sqlite_generation *g = &db->generations[i - 1];
		if (g->number > s->checked_generation && g->state != HPX_GENERATION_DEAD)
			return g;
	}
	return NULL;
}

/* The generation that is looked at; where none is, the next. */
static struct hpx_sqlite_generation *looked_at(struct hpx_sqlite_store *s)
{
	struct hpx_sqlite_generation *g = hpx_sqlite_generation_find(&s->keeper, s->looking);

	if (g != NULL && g->state != HPX_GENERATION_DEAD)
		return g;
	g = next_generation(s);
	if (g != NULL) {
		s->checked_generation = g->number;
		begin_generation(s, g->number);
	}
	return g;
}

/* One that somebody waits for goes first. What was begun before is begun anew. */
static bool take_wanted(struct hpx_sqlite_store *s)
{
	struct hpx_sqlite_comparison *current = find_comparison(s, s->looking);

	if (current != NULL && atomic_load(&current->wanted) && !atomic_load(&current->done))
		return true;
	for (size_t i = 0; i < s->comparison_count; i++) {
		struct hpx_sqlite_comparison *c = &s->comparisons[i];
		if (!atomic_load(&c->wanted) || atomic_load(&c->done))
			continue;
		if (hpx_sqlite_generation_find(&s->keeper, c->generation) == NULL) {
			atomic_store(&c->wanted, false);
			continue;
		}
		if (s->looking != 0 && s->looking == s->checked_generation)
			s->checked_generation--;
		begin_generation(s, c->generation);
		return true;
	}
	return false;
}

/* The tables, then the generations in their order. `*ret_all`: everything was looked
 * at. */
static enum hpx_status look_next(struct hpx_sqlite_store *s, char name[NAME_SIZE], char what[WHAT_SIZE],
				 bool *ret_all)
{
	bool wanted = take_wanted(s);
	struct hpx_sqlite_generation *g;

	if (!wanted && s->looking == 0 && s->checked_tables < TABLE_COUNT) {
		snprintf(name, NAME_SIZE, "%s", tables[s->checked_tables++]);
		check_table(&s->keeper, name, what);
		return HPX_OK;
	}
	g = looked_at(s);
	*ret_all = g == NULL;
	return g != NULL ? look_at_generation(s, g, name, what) : HPX_OK;
}

static bool is_wanted(const struct hpx_sqlite_store *s)
{
	for (size_t i = 0; i < s->comparison_count; i++)
		if (atomic_load(&s->comparisons[i].wanted) && !atomic_load(&s->comparisons[i].done))
			return true;
	return false;
}

static enum hpx_status look(struct hpx_sqlite_store *s, int64_t began_ms, char name[NAME_SIZE],
			    char what[WHAT_SIZE])
{
	enum hpx_status status = hpx_sqlite_generations_refresh(&s->keeper);
	bool all = false;

	do {
		if (status == HPX_OK)
			status = look_next(s, name, what, &all);
	} while (status == HPX_OK && what[0] == '\0' && is_wanted(s) &&
		 hpx_clock_boot_ms() < began_ms + WANTED_MS);
	int64_t now_ms = hpx_clock_boot_ms();
	s->check_at_ms = now_ms + (PAUSE_SHARE * (now_ms - began_ms));
	if (!all)
		return status;
	s->check_at_ms = now_ms + ROUND_MS;
	s->checked_tables = 0;
	s->checked_generation = 0;
	return status;
}

enum hpx_status hpx_sqlite_damage_look(struct hpx_sqlite_store *s, char *problem)
{
	int64_t began_ms = hpx_clock_boot_ms();
	char name[NAME_SIZE] = "", what[WHAT_SIZE] = "";
	enum hpx_status status;

	if (began_ms < s->check_at_ms && !is_wanted(s))
		return HPX_OK;
	/* The first look waits, too: a start has other things to do. */
	if (s->check_at_ms == 0) {
		s->check_at_ms = began_ms + PAUSE_MS;
		return HPX_OK;
	}
	status = look(s, began_ms, name, what);
	if (status != HPX_OK || what[0] == '\0')
		return status;
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
