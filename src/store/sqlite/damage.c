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

/* The first word of a statement about damage; "" where there is none. */
static void ask(struct hpx_sqlite_db *db, const char *sql, const char *fine, char what[WHAT_SIZE])
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
}

static void check_table(struct hpx_sqlite_db *db, const char *name, char what[WHAT_SIZE])
{
	char sql[128];

	snprintf(sql, sizeof(sql), "PRAGMA quick_check('%s')", name);
	ask(db, sql, "ok", what);
}

/* quick_check does not compare an index with its table. */
#define LOST_SQL \
	"SELECT CASE count(*) WHEN 0 THEN '' ELSE count(*) || ' rows are missing in the index' END " \
	"FROM hapax_operation_# o NOT INDEXED WHERE NOT EXISTS (SELECT 1 FROM hapax_operation_# i " \
	"INDEXED BY hapax_id_# WHERE i.id = o.id AND i.seq = o.seq)"

static void check_generation(struct hpx_sqlite_db *db, int64_t number, char name[NAME_SIZE],
			     char what[WHAT_SIZE])
{
	char sql[512];
	bool whole;

	snprintf(name, NAME_SIZE, "hapax_answer_%lld", (long long)number);
	check_table(db, name, what);
	if (what[0] != '\0')
		return;
	snprintf(name, NAME_SIZE, "hapax_operation_%lld", (long long)number);
	check_table(db, name, what);
	if (what[0] != '\0')
		return;
	whole = hpx_sqlite_number_sql(LOST_SQL, number, sql, sizeof(sql));
	HPX_ASSERT(whole);
	ask(db, sql, "", what);
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

/* Of open generations, whose keys no filter knows: whether their indexes have every
 * row. Of the others the keeper finds out. */
enum hpx_status hpx_sqlite_damage_start(struct hpx_sqlite_store *s)
{
	struct hpx_sqlite_db *db = &s->writer;
	char sql[512], name[NAME_SIZE], what[WHAT_SIZE];

	for (size_t i = 0; i < db->generation_count; i++) {
		if (db->generations[i].state != HPX_GENERATION_OPEN)
			continue;
		bool whole = hpx_sqlite_number_sql(LOST_SQL, db->generations[i].number, sql, sizeof(sql));
		HPX_ASSERT(whole);
		ask(db, sql, "", what);
		if (what[0] == '\0')
			continue;
		snprintf(name, sizeof(name), "hapax_operation_%lld", (long long)db->generations[i].number);
		if (note(s, db, name, what) != HPX_OK || !is_accepted(db, name))
			atomic_store(&s->damage_seen, true);
		return hpx_sqlite_generations_refresh(db);
	}
	return HPX_OK;
}

/* ---- the keeper's round ---- */

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
		check_generation(db, g->number, name, what);
		return true;
	}
	return false;
}

enum hpx_status hpx_sqlite_damage_look(struct hpx_sqlite_store *s, char *problem)
{
	int64_t began_ms = hpx_clock_boot_ms();
	char name[NAME_SIZE], what[WHAT_SIZE];
	enum hpx_status status;

	if (began_ms < s->check_at_ms)
		return HPX_OK;
	/* The first look waits, too: a start has other things to do. */
	if (s->check_at_ms == 0) {
		s->check_at_ms = began_ms + PAUSE_MS;
		return HPX_OK;
	}
	status = hpx_sqlite_generations_refresh(&s->keeper);
	if (status != HPX_OK || !check_next(s, name, what)) {
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
