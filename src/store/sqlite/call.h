/* A connection, its prepared statements, and one call of one of them: bind in
 * order, step, end. An error on the way is kept and comes out at the end, so
 * that callers need not look after every bind. */
#ifndef HPX_STORE_SQLITE_CALL_H
#define HPX_STORE_SQLITE_CALL_H

#include <sqlite3.h>

#include "base/span.h"
#include "base/status.h"

/* The columns of a record, with its renewal; row.c reads them in this order. */
#define HPX_SQL_RECORD                                                        \
	"o.seq, o.id, o.state, o.attempt, o.token, o.first, o.fingerprint, "  \
	"o.recipe, o.tenant_hash, o.owner, o.created, o.changed, o.expires, " \
	"o.retention, o.lease_until, o.status, o.kept, o.when_lost, "         \
	"o.advanced, o.point, l.token, l.until"
#define HPX_SQL_DESCRIPTION "o.tenant, o.scope, o.key, o.method, o.path, o.route"
#define HPX_SQL_FROM " FROM hapax_operation o LEFT JOIN hapax_lease l ON l.seq = o.seq "

/* Lengths that a row must have to be readable; the rest is judged in C. */
#define HPX_SQL_READABLE                                                      \
	"(o.state BETWEEN 1 AND 4 AND length(o.token) = 16 AND "              \
	"length(o.first) = 16 AND length(o.fingerprint) = 32 AND "            \
	"length(o.recipe) = 16 AND length(o.tenant_hash) = 32)"

#define HPX_SQL_LIST(X)                                                       \
	X(BEGIN_WRITE, "BEGIN IMMEDIATE")                                     \
	X(BEGIN_READ, "BEGIN")                                                \
	X(COMMIT, "COMMIT")                                                   \
	X(ROLLBACK, "ROLLBACK")                                               \
	X(SAVEPOINT, "SAVEPOINT hapax")                                       \
	X(UNDO, "ROLLBACK TO hapax")                                          \
	X(RELEASE, "RELEASE hapax")                                           \
	X(FIND, "SELECT " HPX_SQL_RECORD HPX_SQL_FROM "WHERE o.id = ?1")      \
	X(FIND_ENTRY, "SELECT " HPX_SQL_RECORD ", " HPX_SQL_DESCRIPTION       \
		HPX_SQL_FROM "WHERE o.id = ?1")                               \
	X(INSERT, "INSERT INTO hapax_operation (id, state, attempt, token, first, " \
		"fingerprint, recipe, tenant_hash, owner, created, changed, " \
		"expires, retention, lease_until, status, kept, when_lost, "  \
		"advanced, point, tenant, scope, key, method, path, route) "  \
		"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, " \
		"?, ?, ?, ?, ?, ?, ?, ?)")                                    \
	/* Numbered, so that ?1, the id, is left alone: naming it would       \
	 * rewrite its place in the index of ids. */                          \
	X(UPDATE, "UPDATE hapax_operation SET state = ?2, attempt = ?3, "           \
		"token = ?4, first = ?5, fingerprint = ?6, recipe = ?7, "     \
		"tenant_hash = ?8, owner = ?9, created = ?10, changed = ?11, "\
		"expires = ?12, retention = ?13, lease_until = ?14, "         \
		"status = ?15, kept = ?16, when_lost = ?17, advanced = ?18, " \
		"point = ?19, point_data = CASE ?19 WHEN '' THEN NULL "       \
		"ELSE point_data END WHERE seq = ?20")                        \
	X(DESCRIBE, "UPDATE hapax_operation SET tenant = ?, scope = ?, key = ?, "   \
		"method = ?, path = ?, route = ? WHERE seq = ?")              \
	X(PUT_POINT_DATA, "UPDATE hapax_operation SET point_data = ? "        \
		"WHERE seq = ?")                                              \
	X(POINT_DATA, "SELECT point_data FROM hapax_operation WHERE seq = ?") \
	X(PUT_JOB, "INSERT INTO hapax_job (operation, first, name, target, "  \
		"method, path, headers, body, created) "                      \
		"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) "                         \
		"ON CONFLICT (operation, first, name) DO NOTHING")            \
	X(SAME_JOB, "SELECT 1 FROM hapax_job WHERE operation = ? AND "        \
		"first = ? AND name = ? AND target = ? AND method = ? AND "   \
		"path = ? AND headers = ? AND body = ?")                      \
	X(REMOVE, "DELETE FROM hapax_operation WHERE seq = ?")                      \
	X(ANSWER, "SELECT headers, body, crc FROM hapax_response WHERE seq = ?")    \
	X(PUT_ANSWER, "INSERT INTO hapax_response (seq, headers, body, crc) "       \
		"VALUES (?1, ?2, ?3, ?4) ON CONFLICT (seq) DO UPDATE SET "    \
		"headers = ?2, body = ?3, crc = ?4")                          \
	X(REMOVE_ANSWER, "DELETE FROM hapax_response WHERE seq = ?")                \
	X(PUT_LEASE, "INSERT INTO hapax_lease (seq, token, until) "                 \
		"VALUES (?1, ?2, ?3) ON CONFLICT (seq) DO UPDATE SET "        \
		"token = ?2, until = ?3")                                     \
	X(REMOVE_LEASE, "DELETE FROM hapax_lease WHERE seq = ?")                    \
	X(LOST, "SELECT " HPX_SQL_RECORD HPX_SQL_FROM                         \
		"WHERE o.state = 1 AND o.lease_until <= ?1")                  \
	X(ORPHANED, "SELECT " HPX_SQL_RECORD HPX_SQL_FROM                     \
		"WHERE o.state = 1 AND o.owner <> ?1 AND (o.owner <> 0 OR ?2)") \
	X(EXPIRED, "SELECT " HPX_SQL_RECORD HPX_SQL_FROM                      \
		"WHERE o.expires IS NOT NULL AND o.expires <= ?1")            \
	X(PUT_RECIPE, "INSERT INTO hapax_recipe (id, text) VALUES (?, ?) "          \
		"ON CONFLICT (id) DO NOTHING")                                \
	X(RECIPE, "SELECT text FROM hapax_recipe WHERE id = ?")                     \
	X(PUT_EVENT, "INSERT INTO hapax_event (id, at, attempt, what, actor, "      \
		"reason, status) VALUES (?, ?, ?, ?, ?, ?, ?)")               \
	X(EVENTS, "SELECT at, attempt, what, actor, reason, status "          \
		"FROM hapax_event WHERE id = ? ORDER BY seq")                       \
	/* Events are appended, so the oldest are the first: no index on      \
	 * `at`, never more than the limit is looked at, and one row where    \
	 * nothing is old enough. */                                          \
	X(REAP_EVENTS, "DELETE FROM hapax_event WHERE at <= ?1 AND "                \
		"(SELECT at FROM hapax_event ORDER BY seq LIMIT 1) <= ?1 AND "      \
		"seq IN (SELECT seq FROM hapax_event ORDER BY seq LIMIT ?2)")       \
	X(LIST, "SELECT " HPX_SQL_RECORD ", " HPX_SQL_DESCRIPTION             \
		HPX_SQL_FROM "WHERE (?1 < 0 OR o.state = ?1 OR "              \
		"(?1 = 4 AND NOT " HPX_SQL_READABLE ")) "                     \
		"AND (?2 IS NULL OR o.key = ?2) "                             \
		"AND (?3 = 0 OR o.changed < ?3) "                             \
		"ORDER BY o.changed DESC, o.seq DESC LIMIT ?4")               \
	X(COUNTS, "SELECT (SELECT count(*) FROM hapax_operation WHERE state = 1), " \
		"(SELECT count(*) FROM hapax_operation WHERE state = 2), "          \
		"(SELECT count(*) FROM hapax_operation WHERE expires IS NOT NULL), "\
		"(SELECT count(*) FROM hapax_operation WHERE state = 4), "          \
		"(SELECT min(changed) FROM hapax_operation WHERE state = 4)")       \
	X(CLOCK, "SELECT boot, ahead, seen, held FROM hapax_clock")                 \
	X(PUT_CLOCK, "INSERT INTO hapax_clock (one, boot, ahead, seen, held) "      \
		"VALUES (1, ?1, ?2, ?3, ?4) ON CONFLICT (one) DO UPDATE SET " \
		"boot = ?1, ahead = ?2, seen = ?3, held = ?4")

enum hpx_sql {
#define X(name, sql) HPX_SQL_##name,
	HPX_SQL_LIST(X)
#undef X
	HPX_SQL_COUNT
};

/* A connection; prepared statements are made when first used. */
struct hpx_sqlite_db {
	sqlite3 *handle;
	sqlite3_stmt *statements[HPX_SQL_COUNT];
};

struct hpx_sqlite_call {
	struct hpx_sqlite_db *db;
	sqlite3_stmt *stmt;
	int index;     /* of the parameter bound last */
	int code;      /* SQLITE_OK as long as all went well */
};

enum hpx_status hpx_sqlite_status(int code);

struct hpx_sqlite_call hpx_sqlite_call(struct hpx_sqlite_db *db, enum hpx_sql sql);
void hpx_sqlite_bind_int(struct hpx_sqlite_call *call, int64_t value);
void hpx_sqlite_bind_null(struct hpx_sqlite_call *call);
/* The bytes are borrowed until the call ends. */
void hpx_sqlite_bind_blob(struct hpx_sqlite_call *call, const void *bytes, size_t len);
void hpx_sqlite_bind_text(struct hpx_sqlite_call *call, struct hpx_span text);
/* True: a row is there. False: no more, or an error; end() tells which. */
bool hpx_sqlite_next(struct hpx_sqlite_call *call);
enum hpx_status hpx_sqlite_end(struct hpx_sqlite_call *call);
/* Steps to the end, for statements that give no row. */
enum hpx_status hpx_sqlite_finish(struct hpx_sqlite_call *call);
/* A statement without parameters and rows. */
enum hpx_status hpx_sqlite_do(struct hpx_sqlite_db *db, enum hpx_sql sql);

/* The bytes of a BLOB or TEXT column, valid until the next step; ptr NULL for
 * any other type. */
struct hpx_span hpx_sqlite_bytes(struct hpx_sqlite_call *call, int column);

void hpx_sqlite_db_close(struct hpx_sqlite_db *db);
/* Lets go of a connection that stays the caller's. */
void hpx_sqlite_db_finalize(struct hpx_sqlite_db *db);

#endif
