/* The view `hapax_operation`: all operations with the columns that people ask for, for
 * whoever opens the file with SQLite's own shell. hapax itself never reads it. It is
 * made anew by the keeper when generations have come or gone, in a transaction of its
 * own; where that fails, nothing else does. */
#include "store/sqlite/driver.h"

/* SQLite joins at most 500 parts in one view. */
#define GENERATIONS_MAX 400
#define VIEW_BYTES_MAX ((size_t)1 << 20)

/* As sql/sqlite/schema.sql makes it first. */
#define ASIDE_PART \
	"CREATE VIEW hapax_operation AS SELECT id, state, attempt, status, created, changed, " \
	"expires, tenant, scope, key, method, path, route, generation, 'aside' AS place " \
	"FROM hapax_aside"

#define GENERATION_PART \
	" UNION ALL SELECT CAST(o.id || o.rest AS BLOB), CASE WHEN a.seq IS NULL THEN 1 ELSE 3 END, " \
	"1, coalesce(a.status, 0), o.created, coalesce(a.changed, o.created), a.expires, o.tenant, " \
	"o.scope, o.key, o.method, o.path, o.route, #, 'plain' FROM hapax_operation_# o " \
	"LEFT JOIN hapax_answer_# a ON a.seq = o.seq WHERE NOT EXISTS (SELECT 1 FROM hapax_aside s " \
	"WHERE s.generation = # AND s.generation > 0 AND s.number = o.seq)"

static enum hpx_status write_text(const struct hpx_sqlite_db *db, struct hpx_buffer *text)
{
	enum hpx_status status = hpx_buffer_append(text, hpx_span_of(ASIDE_PART));
	size_t parts = 0;
	char part[2048];

	for (size_t i = 0; i < db->generation_count && status == HPX_OK; i++) {
		const struct hpx_sqlite_generation *g = &db->generations[i];
		if (g->state == HPX_GENERATION_DEAD || parts++ >= GENERATIONS_MAX)
			continue;
		bool whole = hpx_sqlite_number_sql(GENERATION_PART, g->number, part, sizeof(part));
		HPX_ASSERT(whole);
		status = hpx_buffer_append(text, hpx_span_of(part));
	}
	return status == HPX_OK ? hpx_buffer_append(text, hpx_span("", 1)) : status;
}

static enum hpx_status is_made(struct hpx_sqlite_db *db, const char *text, bool *ret_made)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_VIEW);

	*ret_made = hpx_sqlite_next(&stmt) &&
		    hpx_span_eq(hpx_sqlite_bytes(&stmt, 0), hpx_span_of(text));
	return hpx_sqlite_end(&stmt);
}

static enum hpx_status make_view(struct hpx_sqlite_db *db, const char *text)
{
	enum hpx_status status = hpx_sqlite_status(
		sqlite3_exec(db->handle, "DROP VIEW IF EXISTS hapax_operation", NULL, NULL, NULL));

	if (status == HPX_OK)
		status = hpx_sqlite_status(sqlite3_exec(db->handle, text, NULL, NULL, NULL));
	return status;
}

static enum hpx_status renew_view(struct hpx_sqlite_db *db)
{
	struct hpx_buffer text;
	enum hpx_status status = hpx_sqlite_generations_refresh(db);
	bool made = true;

	hpx_buffer_init(&text, VIEW_BYTES_MAX);
	if (status == HPX_OK)
		status = write_text(db, &text);
	if (status == HPX_OK)
		status = is_made(db, hpx_buffer_span(&text).ptr, &made);
	if (status == HPX_OK && !made)
		status = make_view(db, hpx_buffer_span(&text).ptr);
	hpx_buffer_done(&text);
	return status;
}

enum hpx_status hpx_sqlite_view_make(struct hpx_sqlite_store *s)
{
	struct hpx_sqlite_db *db = &s->keeper;
	enum hpx_status status = hpx_sqlite_generations_refresh(db);

	if (status != HPX_OK || db->list_version == s->view_version)
		return status;
	status = hpx_sqlite_do(db, HPX_SQL_BEGIN_WRITE);
	if (status != HPX_OK)
		return status;
	status = renew_view(db);
	if (status == HPX_OK)
		status = hpx_sqlite_do(db, HPX_SQL_COMMIT);
	if (status == HPX_OK) {
		s->view_version = db->list_version;
		return HPX_OK;
	}
	if (!sqlite3_get_autocommit(db->handle))
		hpx_sqlite_do(db, HPX_SQL_ROLLBACK);
	hpx_sqlite_generations_forget(db);
	return status;
}
