/* A connection, its prepared statements, and one call of one of them: bind in
 * order, step, end. An error on the way is kept and comes out at the end, so
 * that callers need not look after every bind. */
#ifndef HPX_STORE_SQLITE_STATEMENT_H
#define HPX_STORE_SQLITE_STATEMENT_H

#include <sqlite3.h>

#include "base/span.h"
#include "base/status.h"
#include "store/store.h"

/* The columns of a record, with its renewal; row.c reads them in this order. */
#define HPX_SQL_RECORD \
	"o.seq, o.id, o.state, o.attempt, o.token, o.mark, o.fingerprint, " \
	"o.recipe, o.tenant_hash, o.owner, o.created, o.changed, o.expires, " \
	"o.retention, o.lease_until, o.status, o.kept, o.when_lost, " \
	"o.advanced, o.point, l.token, l.until"
#define HPX_SQL_DESCRIPTION "o.tenant, o.scope, o.key, o.method, o.path, o.route"
#define HPX_SQL_FROM " FROM hapax_operation o LEFT JOIN hapax_lease l ON l.seq = o.seq "

/* Lengths that a row must have to be readable; the rest is judged in C. */
#define HPX_SQL_READABLE \
	"(o.state BETWEEN 1 AND 5 AND length(o.token) = 16 AND " \
	"length(o.mark) = 16 AND length(o.fingerprint) = 32 AND " \
	"length(o.recipe) = 16 AND length(o.tenant_hash) = 32)"

/* The columns of a delivery and its job; delivery.c reads them in this order. */
#define HPX_SQL_DELIVERY \
	"j.seq, j.operation, j.mark, j.state, j.answers, j.unsure, " \
	"j.attempt, j.budget, j.status, j.token, j.owner, j.created, " \
	"j.changed, j.due, j.lease_until, j.first_sent, j.resend_until, " \
	"j.provider_id, j.name, j.target, j.method, j.path"
#define HPX_SQL_JOB "SELECT " HPX_SQL_DELIVERY ", j.headers, j.body FROM hapax_job j "
/* Without what may be large. */
#define HPX_SQL_JOB_BRIEF "SELECT " HPX_SQL_DELIVERY ", '', x'' FROM hapax_job j "
#define HPX_SQL_JOB_FILTER \
	"(?2 = 0 OR j.state = ?2 OR (?2 = 4 AND j.state NOT BETWEEN 1 AND 6)) " \
	"AND (?3 IS NULL OR j.target = ?3) AND (?4 = 0 OR j.seq = ?4) " \
	"AND (?5 = 0 OR j.seq < ?5) AND (?6 IS NULL OR j.provider_id = ?6) " \
	"ORDER BY j.seq DESC LIMIT ?7"
/* An operation `o` whose job is on its way, or lost: the job is asked about. */
#define HPX_SQL_SPOKEN_FOR \
	"EXISTS (SELECT 1 FROM hapax_job j WHERE j.operation = o.id " \
	"AND j.mark = o.mark AND j.answers = 1 AND j.state IN (1, 2, 4))"

/* What was said before belongs to the same reference only. */
#define HPX_SQL_BEGIN_QUESTION(from) \
	"INSERT INTO hapax_reconcile (id, job, mark, lane, sent, tries, " \
	"in_a_row, first_said, ask_at, evidence, person) SELECT " from \
	" ON CONFLICT (id, job) DO UPDATE SET evidence = CASE WHEN " \
	"mark = excluded.mark THEN evidence ELSE 0 END, " \
	"mark = excluded.mark, lane = excluded.lane, sent = 0, tries = 0, " \
	"in_a_row = 0, first_said = 0, ask_at = excluded.ask_at, person = 0"

#define HPX_SQL_LIST(X) \
	X(BEGIN_WRITE, "BEGIN IMMEDIATE") \
	X(BEGIN_READ, "BEGIN") \
	X(COMMIT, "COMMIT") \
	X(ROLLBACK, "ROLLBACK") \
	X(SAVEPOINT, "SAVEPOINT hapax") \
	X(UNDO, "ROLLBACK TO hapax") \
	X(RELEASE, "RELEASE hapax") \
	X(FIND, "SELECT " HPX_SQL_RECORD HPX_SQL_FROM "WHERE o.id = ?1") \
	X(FIND_ENTRY, "SELECT " HPX_SQL_RECORD ", " HPX_SQL_DESCRIPTION \
			      HPX_SQL_FROM "WHERE o.id = ?1") \
	X(INSERT, "INSERT INTO hapax_operation (id, state, attempt, token, mark, " \
		  "fingerprint, recipe, tenant_hash, owner, created, changed, " \
		  "expires, retention, lease_until, status, kept, when_lost, " \
		  "advanced, point, tenant, scope, key, method, path, route) " \
		  "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, " \
		  "?, ?, ?, ?, ?, ?, ?, ?)") \
	X(INSERT_ABSENT, "INSERT INTO hapax_operation (id, state, attempt, token, mark, " \
			 "fingerprint, recipe, tenant_hash, owner, created, changed, " \
			 "expires, retention, lease_until, status, kept, when_lost, " \
			 "advanced, point, tenant, scope, key, method, path, route) " \
			 "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, " \
			 "?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING") \
	X(COMPLETE_BELIEVED, "UPDATE hapax_operation SET state = 3, " \
			     "changed = ?4, expires = ?5, status = ?6, kept = ?7 " \
			     "WHERE seq = ?1 AND id = ?2 AND token = ?3 AND state = 1 " \
			     "AND attempt = 1 AND advanced = 0 AND point = '' " \
			     "AND NOT EXISTS (SELECT 1 FROM hapax_lease WHERE seq = ?1)") \
	/* Numbered, so that ?1, the id, is left alone: naming it would       \
	 * rewrite its place in the index of ids. */ \
	X(UPDATE, "UPDATE hapax_operation SET state = ?2, attempt = ?3, " \
		  "token = ?4, mark = ?5, fingerprint = ?6, recipe = ?7, " \
		  "tenant_hash = ?8, owner = ?9, created = ?10, changed = ?11, " \
		  "expires = ?12, retention = ?13, lease_until = ?14, " \
		  "status = ?15, kept = ?16, when_lost = ?17, advanced = ?18, " \
		  "point = ?19, point_data = CASE ?19 WHEN '' THEN NULL " \
		  "ELSE point_data END WHERE seq = ?20") \
	X(DESCRIBE, "UPDATE hapax_operation SET tenant = ?, scope = ?, key = ?, " \
		    "method = ?, path = ?, route = ? WHERE seq = ?") \
	X(PUT_POINT_DATA, "UPDATE hapax_operation SET point_data = ? " \
			  "WHERE seq = ?") \
	X(POINT_DATA, "SELECT point_data FROM hapax_operation WHERE seq = ?") \
	X(PUT_JOB, "INSERT INTO hapax_job (operation, mark, name, target, " \
		   "method, path, headers, body, created, changed, due, answers) " \
		   "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, ?9, ?10) " \
		   "ON CONFLICT (operation, mark, name) DO NOTHING") \
	X(SAME_JOB, "SELECT 1 FROM hapax_job WHERE operation = ? AND " \
		    "mark = ? AND name = ? AND target = ? AND method = ? AND " \
		    "path = ? AND headers = ? AND body = ?") \
	/* What is delivered when an operation is executed again. */ \
	X(REPLACE_JOB, "UPDATE hapax_job SET target = ?4, method = ?5, " \
		       "path = ?6, headers = ?7, body = ?8 WHERE operation = ?1 " \
		       "AND mark = ?2 AND name = ?3") \
	/* Columns that no move changes stay; only `state` and the columns of \
	 * one index or two are written to more than the row. */ \
	X(UPDATE_JOB, "UPDATE hapax_job SET state = ?2, unsure = ?3, " \
		      "attempt = ?4, budget = ?5, status = ?6, token = ?7, " \
		      "owner = ?8, changed = ?9, due = ?10, lease_until = ?11, " \
		      "first_sent = ?12, resend_until = ?13, provider_id = ?14 " \
		      "WHERE seq = ?1") \
	X(JOB_NUMBERED, HPX_SQL_JOB_BRIEF "WHERE j.seq = ?") \
	X(JOB_NAMED, HPX_SQL_JOB_BRIEF "WHERE j.operation = ? AND " \
				       "j.mark = ? AND j.name = ?") \
	X(JOB_ANSWERING, HPX_SQL_JOB_BRIEF "WHERE j.operation = ? AND " \
					   "j.mark = ? AND j.answers = 1 ORDER BY j.seq LIMIT 1") \
	/* The heads of their operations' queues, between two times. */ \
	X(JOBS_DUE, HPX_SQL_JOB "WHERE j.state = 1 AND j.target = ?1 AND " \
				"j.due >= ?2 AND j.due <= ?3 AND NOT EXISTS (SELECT 1 FROM " \
				"hapax_job e WHERE e.operation = j.operation AND " \
				"e.mark = j.mark AND e.seq < j.seq AND " \
				"e.state NOT IN (3, 6)) ORDER BY j.due, j.seq") \
	X(JOBS_CLAIMED, HPX_SQL_JOB "WHERE j.state = 2 AND " \
				    "j.lease_until > ?1 AND j.token = ?2") \
	X(JOBS_LOST, HPX_SQL_JOB_BRIEF "WHERE j.state = 2 AND " \
				       "j.lease_until <= ?1") \
	X(JOBS_ORPHANED, HPX_SQL_JOB_BRIEF "WHERE j.state = 2 AND " \
					   "j.owner <> ?1") \
	X(JOBS, HPX_SQL_JOB "WHERE ?1 IS NULL AND " HPX_SQL_JOB_FILTER) \
	X(JOBS_NUMBERED, HPX_SQL_JOB "WHERE j.seq = ?4 AND ?1 IS NULL AND " HPX_SQL_JOB_FILTER) \
	X(JOBS_OF_OPERATION, HPX_SQL_JOB "WHERE j.operation = ?1 AND " HPX_SQL_JOB_FILTER) \
	X(JOBS_OF_PROVIDER, HPX_SQL_JOB "WHERE j.provider_id = ?1 AND " \
					"j.provider_id <> '' AND " HPX_SQL_JOB_FILTER) \
	/* Not while its operation could still ask for it again by its name. */ \
	X(JOBS_FINISHED, "SELECT j.seq, j.operation FROM hapax_job j " \
			 "WHERE j.state IN (3, 6) AND j.changed <= ?1 AND NOT EXISTS " \
			 "(SELECT 1 FROM hapax_operation o WHERE o.id = j.operation " \
			 "AND o.mark = j.mark AND o.state <> 3) LIMIT ?2") \
	X(REMOVE_JOB, "DELETE FROM hapax_job WHERE seq = ?") \
	X(JOB_COUNTS, "SELECT (SELECT count(*) FROM hapax_job WHERE state = 1), " \
		      "(SELECT count(*) FROM hapax_job WHERE state = 2), " \
		      "(SELECT count(*) FROM hapax_job WHERE state IN (3, 6) AND state = 3), " \
		      "(SELECT count(*) FROM hapax_job WHERE state = 4), " \
		      "(SELECT count(*) FROM hapax_job WHERE state = 5), " \
		      "(SELECT count(*) FROM hapax_job WHERE state IN (3, 6) AND state = 6), " \
		      "(SELECT min(due) FROM hapax_job WHERE state = 1), " \
		      "(SELECT min(changed) FROM hapax_job WHERE state = 4), " /* A question leaves with the outcome that it is about. */ \
		      "(SELECT count(*) FROM hapax_reconcile WHERE person = 1 " \
		      "AND job = 0) + " \
		      "(SELECT count(*) FROM hapax_reconcile r JOIN hapax_job j " \
		      "ON j.seq = r.job WHERE r.person = 1 AND r.job > 0 AND " \
		      "j.answers = 1), " \
		      "(SELECT count(*) FROM hapax_reconcile WHERE person = 1 " \
		      "AND job > 0)") \
	X(RECONCILE, "SELECT sent, tries, in_a_row, first_said, ask_at, " \
		     "evidence, person FROM hapax_reconcile WHERE id = ? AND " \
		     "job = ? AND mark = ?") \
	/* Whom to ask is said when it becomes unknown; '?' is nobody. */ \
	X(PUT_RECONCILE, "INSERT INTO hapax_reconcile (id, job, " \
			 "mark, sent, tries, in_a_row, first_said, ask_at, evidence, " \
			 "person, lane) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '?') " \
			 "ON CONFLICT (id, job) DO UPDATE SET mark = excluded.mark, " \
			 "sent = excluded.sent, tries = excluded.tries, " \
			 "in_a_row = excluded.in_a_row, " \
			 "first_said = excluded.first_said, " \
			 "ask_at = excluded.ask_at, evidence = excluded.evidence, " \
			 "person = excluded.person") \
	/* Unknown from now on: a question is due. */ \
	X(BEGIN_QUESTION, HPX_SQL_BEGIN_QUESTION("o.id, 0, o.mark, " \
						 "CASE o.route WHEN '' THEN '?' ELSE o.route END, 0, 0, 0, 0, " \
						 "max(o.changed, 1), 0, 0 FROM hapax_operation o " \
						 "WHERE o.id = ?1 AND o.state = 4 AND NOT " HPX_SQL_SPOKEN_FOR)) \
	X(BEGIN_JOB_QUESTION, HPX_SQL_BEGIN_QUESTION("j.operation, j.seq, " \
						     "j.mark, 'target:' || j.target, 0, 0, 0, 0, " \
						     "max(j.changed, 1), 0, 0 FROM hapax_job j " \
						     "WHERE j.seq = ?1 AND j.state = 4")) \
	/* One that is due, and about nothing that is unknown. */ \
	X(END_QUESTION, "DELETE FROM hapax_reconcile WHERE id = ? AND " \
			"job = ? AND person = 0 AND ask_at > 0") \
	X(LEAVE_QUESTION, "UPDATE hapax_reconcile SET person = 1 " \
			  "WHERE id = ? AND job = ?") \
	X(REMOVE_RECONCILE, "DELETE FROM hapax_reconcile WHERE id = ? AND " \
			    "job = ?") \
	/* That it was declined was said of an attempt before. */ \
	X(REMOVE_DECLINED, "DELETE FROM hapax_reconcile WHERE job = 0 AND " \
			   "evidence = 2 AND id = (SELECT id FROM hapax_operation " \
			   "WHERE seq = ?)") \
	X(REMOVE_QUESTION, "DELETE FROM hapax_reconcile WHERE job = 0 AND " \
			   "id = (SELECT id FROM hapax_operation WHERE seq = ?)") \
	/* One lane after the other, each with its first question. */ \
	X(NEXT_LANE, "SELECT lane, ask_at FROM hapax_reconcile " \
		     "WHERE person = 0 AND ask_at > 0 AND lane > ?1 " \
		     "ORDER BY lane, ask_at LIMIT 1") \
	X(QUESTIONS_DUE, "SELECT id, job, evidence, ask_at, mark " \
			 "FROM hapax_reconcile " \
			 "WHERE person = 0 AND ask_at > 0 AND lane = ?1 AND " \
			 "ask_at <= ?2 AND ask_at >= ?3 ORDER BY ask_at LIMIT ?4") \
	X(NEXT_QUESTION, "SELECT coalesce(min(r.ask_at) FILTER " \
			 "(WHERE r.person = 0 AND r.sent > 0), 0), " \
			 "coalesce(min(r.person), 0) " \
			 "FROM hapax_operation o JOIN hapax_reconcile r ON r.id = o.id " \
			 "AND r.mark = o.mark WHERE o.id = ?1 AND o.state = 4 AND " \
			 "(r.job = 0 OR EXISTS (SELECT 1 FROM hapax_job j " \
			 "WHERE j.seq = r.job AND j.answers = 1 AND j.state = 4))") \
	X(OVERDUE, "SELECT " HPX_SQL_RECORD HPX_SQL_FROM \
		   "WHERE o.state = 5 AND o.expires <= ?1") \
	/* No fewer than the rows there are, read from both ends. */ \
	X(SPREAD, "SELECT max(seq) - (SELECT min(seq) FROM hapax_operation) " \
		  "+ 1 FROM hapax_operation") \
	X(IDS, "SELECT id FROM hapax_operation WHERE id > ? ORDER BY id LIMIT ?") \
	X(REMOVE, "DELETE FROM hapax_operation WHERE seq = ?") \
	X(ANSWER, "SELECT headers, body, crc FROM hapax_response WHERE seq = ?") \
	X(PUT_ANSWER, "INSERT INTO hapax_response (seq, headers, body, crc) " \
		      "VALUES (?1, ?2, ?3, ?4) ON CONFLICT (seq) DO UPDATE SET " \
		      "headers = ?2, body = ?3, crc = ?4") \
	X(REMOVE_ANSWER, "DELETE FROM hapax_response WHERE seq = ?") \
	X(PUT_LEASE, "INSERT INTO hapax_lease (seq, token, until) " \
		     "VALUES (?1, ?2, ?3) ON CONFLICT (seq) DO UPDATE SET " \
		     "token = ?2, until = ?3") \
	X(REMOVE_LEASE, "DELETE FROM hapax_lease WHERE seq = ?") \
	X(LOST, "SELECT " HPX_SQL_RECORD HPX_SQL_FROM \
		"WHERE o.state = 1 AND o.lease_until <= ?1") \
	X(ORPHANED, "SELECT " HPX_SQL_RECORD HPX_SQL_FROM \
		    "WHERE o.state = 1 AND o.owner <> ?1 AND (o.owner <> 0 OR ?2)") \
	X(EXPIRED, "SELECT " HPX_SQL_RECORD HPX_SQL_FROM \
		   "WHERE o.expires IS NOT NULL AND o.expires <= ?1 " \
		   "AND o.state <> 5") \
	X(PUT_RECIPE, "INSERT INTO hapax_recipe (id, text) VALUES (?, ?) " \
		      "ON CONFLICT (id) DO NOTHING") \
	X(RECIPE, "SELECT text FROM hapax_recipe WHERE id = ?") \
	X(PUT_EVENT, "INSERT INTO hapax_event (id, at, attempt, what, actor, " \
		     "reason, status) VALUES (?, ?, ?, ?, ?, ?, ?)") \
	X(EVENTS, "SELECT at, attempt, what, actor, reason, status " \
		  "FROM hapax_event WHERE id = ? ORDER BY seq") \
	X(NEWEST_EVENT, "SELECT seq, id, at FROM hapax_event WHERE seq = " \
			"(SELECT max(seq) FROM hapax_event)") \
	X(SAME_EVENT, "SELECT 1 FROM hapax_event WHERE seq = ? AND id = ? " \
		      "AND at = ?") \
	X(REMOVALS, "SELECT id FROM hapax_event WHERE seq > ?1 AND what IN " \
		    "(" HPX_SQL_REMOVAL_EVENTS ") " \
		    "ORDER BY seq LIMIT ?2") \
	/* Events are appended, so the oldest are the first: no index on      \
	 * `at`, never more than the limit is looked at, and one row where    \
	 * nothing is old enough. */ \
	X(REAP_EVENTS, "DELETE FROM hapax_event WHERE at <= ?1 AND " \
		       "(SELECT at FROM hapax_event ORDER BY seq LIMIT 1) <= ?1 AND " \
		       "seq IN (SELECT seq FROM hapax_event ORDER BY seq LIMIT ?2)") \
	X(LIST, "SELECT " HPX_SQL_RECORD ", " HPX_SQL_DESCRIPTION \
			HPX_SQL_FROM "WHERE (?1 < 0 OR o.state = ?1 OR " \
		"(?1 = 4 AND NOT " HPX_SQL_READABLE ")) " \
		"AND (?2 IS NULL OR o.key = ?2) " \
		"AND (?3 = 0 OR o.changed < ?3) " \
		"ORDER BY o.changed DESC, o.seq DESC LIMIT ?4") \
	X(COUNTS, "SELECT (SELECT count(*) FROM hapax_operation WHERE state = 1), " \
		  "(SELECT count(*) FROM hapax_operation WHERE state = 2), " \
		  "(SELECT count(*) FROM hapax_operation WHERE expires IS NOT NULL), " \
		  "(SELECT count(*) FROM hapax_operation WHERE state = 4), " \
		  "(SELECT min(changed) FROM hapax_operation WHERE state = 4), " \
		  "(SELECT count(*) FROM hapax_operation WHERE state = 5)") \
	X(CLOCK, "SELECT boot, ahead, seen, held FROM hapax_clock") \
	X(PUT_CLOCK, "INSERT INTO hapax_clock (one, boot, ahead, seen, held) " \
		     "VALUES (1, ?1, ?2, ?3, ?4) ON CONFLICT (one) DO UPDATE SET " \
		     "boot = ?1, ahead = ?2, seen = ?3, held = ?4") \
	/* The row of this name, else that of the name used last. */ \
	X(UPSTREAM, "SELECT name, url FROM hapax_upstream " \
		    "ORDER BY name <> ?1, used DESC LIMIT 1") \
	X(PUT_UPSTREAM, "INSERT INTO hapax_upstream (name, url, used) " \
			"VALUES (?1, ?2, ?3) ON CONFLICT (name) DO UPDATE SET " \
			"url = ?2, used = ?3")

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

struct hpx_sqlite_statement {
	struct hpx_sqlite_db *db;
	sqlite3_stmt *handle;
	int index; /* of the parameter bound last */
	int code;  /* SQLITE_OK as long as all went well */
};

enum hpx_status hpx_sqlite_status(int code);

struct hpx_sqlite_statement hpx_sqlite_statement(struct hpx_sqlite_db *db, enum hpx_sql sql);
void hpx_sqlite_bind_int(struct hpx_sqlite_statement *stmt, int64_t value);
void hpx_sqlite_bind_null(struct hpx_sqlite_statement *stmt);
/* The bytes are borrowed until the statement ends. */
void hpx_sqlite_bind_blob(struct hpx_sqlite_statement *stmt, const void *bytes, size_t len);
void hpx_sqlite_bind_text(struct hpx_sqlite_statement *stmt, struct hpx_span text);
/* True: a row is there. False: no more, or an error; end() tells which. */
bool hpx_sqlite_next(struct hpx_sqlite_statement *stmt);
enum hpx_status hpx_sqlite_end(struct hpx_sqlite_statement *stmt);
/* Steps to the end, for statements that give no row. */
enum hpx_status hpx_sqlite_finish(struct hpx_sqlite_statement *stmt);
/* A statement without parameters and rows. */
enum hpx_status hpx_sqlite_do(struct hpx_sqlite_db *db, enum hpx_sql sql);

/* The bytes of a BLOB or TEXT column, valid until the next step; ptr NULL for
 * any other type. */
struct hpx_span hpx_sqlite_bytes(struct hpx_sqlite_statement *stmt, int column);
/* Exactly that many bytes, or nothing is copied. */
bool hpx_sqlite_fixed(struct hpx_sqlite_statement *stmt, int column, void *out, size_t len);
/* An integer between both, or nothing is set. */
bool hpx_sqlite_int(struct hpx_sqlite_statement *stmt, int column, int64_t min, int64_t max,
		    int64_t *ret_value);
/* A quarter of the range: sums of two times never overflow. */
#define HPX_SQLITE_TIME_MAX (INT64_MAX / 4)
bool hpx_sqlite_time(struct hpx_sqlite_statement *stmt, int column, int64_t min, int64_t *ret_ms);

void hpx_sqlite_db_close(struct hpx_sqlite_db *db);
/* Lets go of a connection that stays the caller's. */
void hpx_sqlite_db_finalize(struct hpx_sqlite_db *db);

#endif
