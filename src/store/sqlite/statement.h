/* A connection, its prepared statements, and one call of one of them: bind in
 * order, step, end. An error on the way is kept and comes out at the end, so
 * that callers need not look after every bind. */
#ifndef HPX_STORE_SQLITE_STATEMENT_H
#define HPX_STORE_SQLITE_STATEMENT_H

#include <sqlite3.h>

#include "base/span.h"
#include "base/status.h"
#include "store/store.h"

/* The columns of an aside row; row.c reads them in this order. */
#define HPX_SQL_ASIDE \
	"o.seq, o.generation, o.number, o.id, o.state, o.attempt, o.token, o.mark, " \
	"o.fingerprint, o.recipe, o.tenant_hash, o.owner, o.created, o.changed, " \
	"o.expires, o.retention, o.tombstone, o.status, o.kept, o.when_lost, o.advanced, " \
	"o.last_error, o.point, o.text_crc, o.point_crc, o.answer_crc, o.crc, o.tenant, o.scope, o.key, " \
	"o.method, o.path, o.route, o.headers, o.body, " \
	"(SELECT l.until FROM hapax_lease l WHERE o.state = 1 AND l.token = o.token AND l.id = o.id)"
#define HPX_SQL_FROM_ASIDE "SELECT " HPX_SQL_ASIDE " FROM hapax_aside o "

/* The columns of a plain row with its answer; row.c reads them in this order. */
#define HPX_SQL_PLAIN \
	"o.seq, o.id, o.rest, o.token, o.fingerprint, o.recipe, o.tenant_hash, " \
	"o.owner, o.created, o.retention, o.tombstone, o.when_lost, o.crc, o.tenant, o.scope, " \
	"o.key, o.method, o.path, o.route, a.seq, a.changed, a.expires, a.status, " \
	"a.kept, a.headers, a.body, a.crc, (SELECT l.until FROM hapax_lease l " \
	"WHERE a.seq IS NULL AND l.token = o.token AND " \
	"l.id = CAST(o.id || o.rest AS BLOB))"
#define HPX_SQL_FROM_PLAIN \
	"SELECT " HPX_SQL_PLAIN " FROM hapax_operation_# o " \
	"LEFT JOIN hapax_answer_# a ON a.seq = o.seq "
#define HPX_SQL_UNANSWERED \
	"NOT EXISTS (SELECT 1 FROM hapax_answer_# a WHERE a.seq = o.seq) AND " \
	"NOT EXISTS (SELECT 1 FROM hapax_aside s WHERE s.generation = ?1 AND " \
	"s.generation > 0 AND s.number = o.seq)"

#define HPX_SQL_HISTORY_COLUMNS \
	"id, mark, state, attempt, status, created, changed, tenant, key, method, path, route"

/* X(name, sql): of one generation; # is its number. */
#define HPX_GENERATION_SQL_LIST(X) \
	X(INSERT, "INSERT INTO hapax_operation_# (id, rest, token, fingerprint, recipe, " \
		  "tenant_hash, owner, created, retention, tombstone, when_lost, tenant, scope, " \
		  "key, method, path, route, crc) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, " \
		  "?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18 WHERE NOT EXISTS " \
		  "(SELECT 1 FROM hapax_aside WHERE id = ?19) ON CONFLICT (id) DO NOTHING") \
	/* A tombstone's answer. */ \
	X(BURY, "INSERT INTO hapax_answer_# (seq, changed, expires, status, kept, headers, " \
		"body, crc) VALUES (?1, ?2, ?3, ?4, 2, x'', x'', ?5)") \
	/* What people are left with of a plain row. */ \
	X(KEEP_HISTORY, "INSERT INTO hapax_history (" HPX_SQL_HISTORY_COLUMNS ") SELECT " \
			"CAST(id || rest AS BLOB), ?2, 3, 1, ?3, created, ?4, tenant, key, method, path, " \
			"route FROM hapax_operation_# WHERE seq = ?1") \
	X(HAS, "SELECT 1 FROM hapax_operation_# WHERE id = ?1") \
	/* Only where the row is still as its attempt left it. */ \
	X(COMPLETE, "INSERT INTO hapax_answer_# (seq, changed, expires, status, kept, " \
		    "headers, body, crc) SELECT seq, ?4, ?5, ?6, ?7, ?8, ?9, ?10 " \
		    "FROM hapax_operation_# WHERE seq = ?1 AND id = ?2 AND token = ?3 AND " \
		    "NOT EXISTS (SELECT 1 FROM hapax_aside WHERE id = ?11) " \
		    "ON CONFLICT (seq) DO NOTHING") \
	X(FIND, HPX_SQL_FROM_PLAIN "WHERE o.id = ?1") \
	X(TEXTS, "SELECT tenant, scope, key, method, path, route FROM hapax_operation_# " \
		 "WHERE seq = ?1") \
	X(REMOVE, "DELETE FROM hapax_operation_# WHERE seq = ?1 AND id = ?2") \
	X(REMOVE_ANSWER, "DELETE FROM hapax_answer_# WHERE seq = ?1") \
	X(LAST, "SELECT coalesce(max(seq), 0) FROM hapax_operation_#") \
	X(ROWS, "SELECT count(*) FROM hapax_operation_# INDEXED BY hapax_id_#") \
	/* Attempts of a server without an end, behind a number. */ \
	X(UNANSWERED, HPX_SQL_FROM_PLAIN "WHERE o.seq > ?2 AND o.owner <> 0 AND " HPX_SQL_UNANSWERED " LIMIT ?3") \
	X(COUNT_UNANSWERED, "SELECT count(*) FROM hapax_operation_# o WHERE o.seq > ?2 AND " \
			    "o.owner <> 0 AND " HPX_SQL_UNANSWERED) \
	/* The rows in order, from a number on: the reaper judges each. */ \
	X(WALK, HPX_SQL_FROM_PLAIN "WHERE o.seq > ?1 ORDER BY o.seq LIMIT ?2") \
	/* For lists: the newest row below a number, and those between two numbers, the newest \
	 * first; ?6: only without an answer; ?7: the hash of the key. */ \
	X(HEAD, "SELECT seq, created FROM hapax_operation_# WHERE seq < ?1 " \
		"ORDER BY seq DESC LIMIT 1") \
	X(LOOK, HPX_SQL_FROM_PLAIN "WHERE o.seq < ?1 AND o.seq >= ?2 AND (?3 IS NULL OR o.key IN (?3, ?7)) " \
				   "AND (?4 IS NULL OR o.tenant = ?4) AND (?5 IS NULL OR o.route = ?5) " \
				   "AND (?6 = 0 OR a.seq IS NULL) ORDER BY o.seq DESC") \
	/* Answered ones that began within a time, the newest first. */ \
	X(FINISHED, HPX_SQL_FROM_PLAIN "WHERE o.seq > ?1 AND o.created >= ?2 AND o.created < ?3 " \
				       "AND a.seq IS NOT NULL ORDER BY o.seq DESC") \
	X(NEWEST, HPX_SQL_FROM_PLAIN "WHERE o.seq < ?1 ORDER BY o.seq DESC LIMIT ?2") \
	X(UNKEYED, "SELECT 1 FROM hapax_operation_# o WHERE o.created < ?3 AND o.route = ?2 AND " \
		   "NOT EXISTS (SELECT 1 FROM hapax_route_key k WHERE k.generation = ?1 AND " \
		   "k.number = o.seq) LIMIT 1") \
	/* By the table and not by its index: a filter must not lack what the index \
	 * lost. */ \
	X(IDS, "SELECT seq, id FROM hapax_operation_# NOT INDEXED WHERE seq > ?1 " \
	       "ORDER BY seq LIMIT ?2") \
	/* For a look at some rows: so many behind a number lies this one; of those between \
	 * two numbers, how many the index lacks; and their answers, read. */ \
	X(BEHIND, "SELECT seq FROM hapax_operation_# WHERE seq > ?1 ORDER BY seq LIMIT 1 OFFSET ?2") \
	X(LOST, "SELECT count(*) FROM hapax_operation_# o NOT INDEXED WHERE o.seq > ?1 AND " \
		"o.seq <= ?2 AND NOT EXISTS (SELECT 1 FROM hapax_operation_# i " \
		"INDEXED BY hapax_id_# WHERE i.id = o.id AND i.seq = o.seq)") \
	X(READ_ANSWERS, "SELECT count(*), sum(length(body)) FROM hapax_answer_# WHERE " \
			"seq > ?1 AND seq <= ?2") \
	X(REAP, "DELETE FROM hapax_operation_# WHERE seq IN " \
		"(SELECT seq FROM hapax_operation_# ORDER BY seq LIMIT ?1)") \
	X(REAP_ANSWERS, "DELETE FROM hapax_answer_# WHERE seq IN " \
			"(SELECT seq FROM hapax_answer_# ORDER BY seq LIMIT ?1)")

enum hpx_generation_sql {
#define X(name, sql) HPX_GENERATION_SQL_##name,
	HPX_GENERATION_SQL_LIST(X)
#undef X
		HPX_GENERATION_SQL_COUNT
};

/* The columns of a delivery and its job; outbox_rows.c reads them in this order. */
#define HPX_SQL_DELIVERY \
	"j.seq, j.operation, j.mark, j.state, j.answers, j.unsure, " \
	"j.attempt, j.budget, j.status, j.token, j.owner, j.created, " \
	"j.changed, j.due, j.lease_until, j.first_sent, j.resend_until, " \
	"j.provider_id, j.name, j.target, j.method, j.path, j.body_crc, j.crc"
#define HPX_SQL_JOB "SELECT " HPX_SQL_DELIVERY ", j.headers, j.body, 1 FROM hapax_job j "
/* Without what may be large, which is the last column's 0. */
#define HPX_SQL_JOB_BRIEF "SELECT " HPX_SQL_DELIVERY ", '', x'', 0 FROM hapax_job j "
#define HPX_SQL_JOB_FILTER \
	"(?2 = 0 OR ?2 = CASE WHEN j.state BETWEEN 1 AND 6 AND NOT EXISTS (SELECT 1 FROM " \
	"hapax_job_unreadable u WHERE u.seq = j.seq) THEN j.state ELSE 4 END) " \
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
	X(LIST_VERSION, "SELECT version FROM hapax_generation_list") \
	X(BUMP_LIST, "UPDATE hapax_generation_list SET version = version + 1") \
	X(GENERATIONS, "SELECT number, class, state, marked, opened, closed, retention, " \
		       "operations, settled, expires, moved, oldest, crc FROM hapax_generation " \
		       "ORDER BY number DESC") \
	X(ADD_GENERATION, "INSERT INTO hapax_generation (class, state, marked, opened, " \
			  "closed, retention, operations, settled, expires, moved, oldest, crc) " \
			  "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)") \
	X(PUT_GENERATION, "UPDATE hapax_generation SET class = ?, state = ?, marked = ?, " \
			  "opened = ?, closed = ?, retention = ?, operations = ?, " \
			  "settled = ?, expires = ?, moved = ?, oldest = ?, crc = ? WHERE number = ?") \
	X(REMOVE_GENERATION, "DELETE FROM hapax_generation WHERE number = ?") \
	X(DAMAGED, "SELECT 1 FROM hapax_damage WHERE accepted = 0") \
	X(PUT_DAMAGE, "INSERT INTO hapax_damage (name, what, found, accepted) " \
		      "VALUES (?, ?, ?, 0) ON CONFLICT (name) DO UPDATE SET " \
		      "accepted = CASE WHEN what = excluded.what THEN accepted ELSE 0 END, " \
		      "what = excluded.what, found = excluded.found") \
	X(ACCEPTED, "SELECT 1 FROM hapax_damage WHERE name = ? AND accepted = 1") \
	X(ACCEPT_DAMAGE, "UPDATE hapax_damage SET accepted = 1 WHERE accepted = 0") \
	X(VIEW, "SELECT sql FROM sqlite_schema WHERE name = 'hapax_operation'") \
	X(FILTER, "SELECT bits, crc FROM hapax_filter WHERE generation = ?") \
	X(HAS_FILTER, "SELECT 1 FROM hapax_filter WHERE generation = ?") \
	X(PUT_FILTER, "INSERT INTO hapax_filter (generation, bits, crc) VALUES (?, ?, ?) " \
		      "ON CONFLICT (generation) DO UPDATE SET bits = excluded.bits, " \
		      "crc = excluded.crc") \
	X(REMOVE_FILTER, "DELETE FROM hapax_filter WHERE generation = ?") \
	X(FILTER_PART, "SELECT ids, crc FROM hapax_filter_part WHERE part = ?") \
	X(PUT_FILTER_PART, "INSERT INTO hapax_filter_part (part, ids, crc) VALUES (?, ?, ?) " \
			   "ON CONFLICT (part) DO UPDATE SET ids = excluded.ids, " \
			   "crc = excluded.crc") \
	X(REMOVE_FILTER_PARTS, "DELETE FROM hapax_filter_part WHERE part >= ?1 << 16 AND " \
			       "part < (?1 + 1) << 16") \
	X(FIND_ASIDE, HPX_SQL_FROM_ASIDE "WHERE o.id = ?1") \
	X(GENERATION_TABLES, "SELECT CAST(substr(name, 17) AS INTEGER) FROM sqlite_schema WHERE " \
			     "type = 'table' AND name GLOB 'hapax_operation_[0-9]*'") \
	X(INSERT_ASIDE, "INSERT INTO hapax_aside (id, generation, number, state, attempt, " \
			"token, mark, fingerprint, recipe, tenant_hash, owner, created, " \
			"changed, expires, retention, tombstone, status, kept, when_lost, advanced, " \
			"last_error, point, text_crc, point_crc, answer_crc, crc, tenant, scope, key, " \
			"method, path, route, headers, body, point_data) VALUES (?, ?, ?, ?, ?, " \
			"?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, " \
			"?, ?, ?, ?, ?, ?, ?)") \
	/* Numbered, so that ?1, the id, is left alone: naming it would rewrite its \
	 * place in the index of ids. */ \
	X(UPDATE_ASIDE, "UPDATE hapax_aside SET generation = ?2, number = ?3, state = ?4, " \
			"attempt = ?5, token = ?6, mark = ?7, fingerprint = ?8, " \
			"recipe = ?9, tenant_hash = ?10, owner = ?11, created = ?12, " \
			"changed = ?13, expires = ?14, retention = ?15, tombstone = ?16, " \
			"status = ?17, kept = ?18, when_lost = ?19, advanced = ?20, last_error = ?21, " \
			"point = ?22, text_crc = ?23, point_crc = ?24, answer_crc = ?25, " \
			"crc = ?26 WHERE seq = ?27 AND ?1 = id") \
	X(KEEP_HISTORY, "INSERT INTO hapax_history (" HPX_SQL_HISTORY_COLUMNS ") SELECT " HPX_SQL_HISTORY_COLUMNS " FROM hapax_aside WHERE seq = ?1") \
	X(HISTORY_RULE, "SELECT retention FROM hapax_history_rule WHERE one = 1") \
	X(PUT_HISTORY_RULE, "UPDATE hapax_history_rule SET retention = ?1 WHERE one = 1") \
	X(REAP_HISTORY, "DELETE FROM hapax_history WHERE seq IN (SELECT seq FROM hapax_history " \
			"WHERE created <= ?1 ORDER BY created LIMIT ?2)") \
	X(HISTORY, "SELECT seq, " HPX_SQL_HISTORY_COLUMNS " FROM hapax_history " \
		   "WHERE created >= ?1 AND created < ?2 ORDER BY created DESC, seq DESC") \
	X(FINISHED_ASIDE, HPX_SQL_FROM_ASIDE "WHERE o.expires IS NOT NULL AND o.state IN (2, 3) AND " \
					     "o.created >= ?1 AND o.created < ?2") \
	X(DESCRIBE_ASIDE, "UPDATE hapax_aside SET tenant = ?, scope = ?, key = ?, " \
			  "method = ?, path = ?, route = ? WHERE seq = ?") \
	X(PUT_ANSWER, "UPDATE hapax_aside SET headers = ?, body = ? WHERE seq = ?") \
	X(PUT_POINT_DATA, "UPDATE hapax_aside SET point_data = ? WHERE seq = ?") \
	X(POINT_DATA, "SELECT point_data, point_crc FROM hapax_aside WHERE seq = ?") \
	X(REMOVE_ASIDE, "DELETE FROM hapax_aside WHERE seq = ?") \
	X(COPIES, "SELECT count(*) FROM hapax_aside WHERE generation = ?1 AND generation > 0") \
	X(HAS_COPY, "SELECT 1 FROM hapax_aside WHERE generation = ?1 AND generation > 0 " \
		    "AND number = ?2") \
	/* The number is chosen before the row is written, because the row's check has it. */ \
	X(NEXT_JOB, "SELECT coalesce(max(seq), 0) + 1 FROM hapax_job") \
	X(PUT_JOB, "INSERT INTO hapax_job (operation, mark, name, target, " \
		   "method, path, headers, body, body_crc, crc, created, changed, due, answers, seq) " \
		   "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11, ?11, ?12, ?13) " \
		   "ON CONFLICT (operation, mark, name) DO NOTHING") \
	X(SAME_JOB, "SELECT 1 FROM hapax_job WHERE operation = ? AND " \
		    "mark = ? AND name = ? AND target = ? AND method = ? AND " \
		    "path = ? AND headers = ? AND body = ?") \
	/* What is delivered when an operation is executed again. */ \
	X(REPLACE_JOB, "UPDATE hapax_job SET target = ?4, method = ?5, " \
		       "path = ?6, headers = ?7, body = ?8, body_crc = ?9 WHERE operation = ?1 " \
		       "AND mark = ?2 AND name = ?3") \
	/* Columns that no move changes stay; only `state` and the columns of \
	 * one index or two are written to more than the row. */ \
	X(UPDATE_JOB, "UPDATE hapax_job SET state = ?2, unsure = ?3, " \
		      "attempt = ?4, budget = ?5, status = ?6, token = ?7, " \
		      "owner = ?8, changed = ?9, due = ?10, lease_until = ?11, " \
		      "first_sent = ?12, resend_until = ?13, provider_id = ?14, crc = ?15 " \
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
	X(JOBS_FINISHED, HPX_SQL_JOB_BRIEF "WHERE j.state IN (3, 6) AND j.changed <= ?1 AND NOT EXISTS " \
					   "(SELECT 1 FROM hapax_aside o WHERE o.id = j.operation " \
					   "AND o.mark = j.mark AND o.state <> 3)") \
	X(PUT_UNREADABLE, "INSERT INTO hapax_job_unreadable (seq) VALUES (?) ON CONFLICT DO NOTHING") \
	X(REMOVE_UNREADABLE, "DELETE FROM hapax_job_unreadable WHERE seq = ?") \
	X(REMOVE_JOB, "DELETE FROM hapax_job WHERE seq = ?") \
	/* How many of six columns are what a job's row has, whatever it says. */ \
	X(JOB_SHAPE, "SELECT (typeof(operation) = 'blob' AND length(operation) = 32) + " \
		     "(typeof(mark) = 'blob' AND length(mark) = 16) + (typeof(method) = 'text') + " \
		     "(typeof(path) = 'text') + (typeof(body_crc) = 'integer') + " \
		     "(typeof(crc) = 'integer') FROM hapax_job WHERE seq = ?") \
	/* For one that cannot be read: an index may not agree with its row. */ \
	X(REINDEX_JOBS, "REINDEX hapax_job") \
	X(REMOVE_JOB_QUESTIONS, "DELETE FROM hapax_reconcile WHERE job = ?1 AND job > 0") \
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
		      "AND job > 0) + (SELECT count(*) FROM hapax_job_unreadable u " \
		      "WHERE NOT EXISTS (SELECT 1 FROM hapax_reconcile r WHERE r.person = 1 " \
		      "AND r.job = u.seq))") \
	X(RECONCILE, "SELECT sent, tries, in_a_row, first_said, ask_at, " \
		     "evidence, person FROM hapax_reconcile WHERE id = ? AND " \
		     "job = ? AND mark = ?") \
	X(PUT_PROVIDER, "INSERT INTO hapax_provider (id, mark, provider_id) VALUES (?1, ?2, ?3) " \
			"ON CONFLICT (id) DO UPDATE SET mark = ?2, provider_id = ?3") \
	X(REMOVE_PROVIDER, "DELETE FROM hapax_provider WHERE id = ?") \
	/* What has such an id is aside. */ \
	X(PROVIDED, "SELECT o.id, o.mark FROM hapax_provider p JOIN hapax_aside o " \
		    "ON o.id = p.id AND o.mark = p.mark WHERE p.provider_id = ?1 LIMIT ?2") \
	X(PUT_ROUTE_KEY, "INSERT INTO hapax_route_key (generation, number, hash, id, mark, amount) " \
			 "VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (generation, number) DO " \
			 "UPDATE SET hash = ?3, id = ?4, mark = ?5, amount = ?6") \
	X(MOVE_ROUTE_KEY, "UPDATE OR REPLACE hapax_route_key SET generation = ?3, number = ?4 " \
			  "WHERE generation = ?1 AND number = ?2") \
	X(REMOVE_ROUTE_KEY, "DELETE FROM hapax_route_key WHERE generation = ?1 AND number = ?2") \
	/* Of a generation that is being removed, but what has a row of hapax_aside. */ \
	X(REAP_ROUTE_KEYS, "DELETE FROM hapax_route_key WHERE generation = ?1 AND number IN " \
			   "(SELECT k.number FROM hapax_route_key k WHERE k.generation = ?1 AND " \
			   "NOT EXISTS (SELECT 1 FROM hapax_aside a WHERE a.generation = ?1 AND a.generation > 0 AND " \
			   "a.number = k.number) LIMIT ?2)") \
	/* What is in a dead generation, or in one that is gone, is only what is aside. */ \
	X(KEYED, "SELECT k.id, k.mark, k.amount FROM hapax_route_key k " \
		 "LEFT JOIN hapax_generation g ON g.number = k.generation WHERE k.hash = ?1 AND " \
		 "(k.generation = 0 OR g.state <> 3 OR EXISTS (SELECT 1 FROM hapax_aside a " \
		 "WHERE a.generation = k.generation AND a.generation > 0 AND a.number = k.number)) LIMIT ?2") \
	X(KEYED_SINCE, "SELECT keyed FROM hapax_lane WHERE name = ?1") \
	X(UNKEYED_ASIDE, "SELECT 1 FROM hapax_aside o WHERE o.route = ?1 AND o.created < ?2 AND " \
			 "NOT EXISTS (SELECT 1 FROM hapax_route_key k WHERE " \
			 "k.generation = o.generation AND k.number = CASE o.generation WHEN 0 " \
			 "THEN o.seq ELSE o.number END) LIMIT 1") \
	X(PUT_LANE, "INSERT INTO hapax_lane AS l (name, settle_after, confirm_after, keyed) " \
		    "VALUES (?1, ?2, ?3, ?4) ON CONFLICT (name) DO UPDATE SET " \
		    "settle_after = ?2, confirm_after = ?3, " \
		    "keyed = CASE WHEN ?4 = 0 OR l.keyed = 0 THEN ?4 ELSE l.keyed END " \
		    "WHERE settle_after <> ?2 OR confirm_after <> ?3 OR (keyed = 0) <> (?4 = 0)") \
	X(LANE, "SELECT settle_after, confirm_after FROM hapax_lane WHERE name = ?") \
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
						 "max(o.changed, 1), 0, 0 FROM hapax_aside o " \
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
			   "evidence = 2 AND id = ?") \
	X(REMOVE_QUESTION, "DELETE FROM hapax_reconcile WHERE job = 0 AND id = ?") \
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
			 "FROM hapax_aside o JOIN hapax_reconcile r ON r.id = o.id " \
			 "AND r.mark = o.mark WHERE o.id = ?1 AND o.state = 4 AND " \
			 "(r.job = 0 OR EXISTS (SELECT 1 FROM hapax_job j " \
			 "WHERE j.seq = r.job AND j.answers = 1 AND j.state = 4))") \
	X(OVERDUE, HPX_SQL_FROM_ASIDE "WHERE o.state = 5 AND o.expires <= ?1") \
	X(PUT_LEASE, "INSERT INTO hapax_lease (token, id, generation, until) " \
		     "VALUES (?1, ?2, ?3, ?4) ON CONFLICT (token, id) DO UPDATE SET " \
		     "generation = ?3, until = max(until, ?4)") \
	X(MOVE_LEASE, "UPDATE hapax_lease SET generation = 0 WHERE token = ? AND id = ?") \
	X(REMOVE_LEASE, "DELETE FROM hapax_lease WHERE token = ? AND id = ?") \
	X(LEASES_DUE, "SELECT token, id FROM hapax_lease WHERE until <= ?1 LIMIT ?2") \
	X(LEASED, "SELECT 1 FROM hapax_lease WHERE generation = ?1 AND generation > 0") \
	X(COUNT_LEASES, "SELECT count(*) FROM hapax_lease WHERE generation = ?1 AND generation > 0") \
	/* Attempts in progress of other servers, or of anybody. */ \
	X(ORPHANED, HPX_SQL_FROM_ASIDE "WHERE o.state = 1 AND o.owner <> ?1 AND " \
				       "(o.owner <> 0 OR ?2) LIMIT ?3") \
	X(EXPIRED, HPX_SQL_FROM_ASIDE "WHERE o.expires IS NOT NULL AND " \
				      "o.expires + iif(o.kept = 2, o.tombstone, 0) <= ?1 " \
				      "AND o.state <> 5") \
	X(PUT_RECIPE, "INSERT INTO hapax_recipe (id, text) VALUES (?, ?) " \
		      "ON CONFLICT (id) DO NOTHING") \
	X(RECIPE, "SELECT text FROM hapax_recipe WHERE id = ?") \
	X(PUT_EVENT, "INSERT INTO hapax_event (id, at, attempt, what, actor, " \
		     "reason, status) VALUES (?, ?, ?, ?, ?, ?, ?)") \
	X(HAS_EVENT, "SELECT 1 FROM hapax_event WHERE id = ? AND what = ? AND at >= ? LIMIT 1") \
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
	/* For people, the newest first; the others among the last so many by number. */ \
	X(LIST_UNKNOWN, HPX_SQL_FROM_ASIDE "WHERE o.state = 4 ORDER BY o.changed DESC LIMIT ?1") \
	X(LIST_FAILED, HPX_SQL_FROM_ASIDE "WHERE o.state = 2 ORDER BY o.changed DESC LIMIT ?1") \
	X(LIST_OTHERS, HPX_SQL_FROM_ASIDE "WHERE o.seq > (SELECT coalesce(max(seq), 0) - ?1 " \
					  "FROM hapax_aside) AND o.state NOT IN (2, 4) " \
					  "ORDER BY o.seq DESC") \
	X(WALK_ASIDE, HPX_SQL_FROM_ASIDE "WHERE o.seq > ?1 ORDER BY o.seq") \
	X(COUNTS, "SELECT (SELECT count(*) FROM hapax_aside WHERE state = 1), " \
		  "(SELECT count(*) FROM hapax_aside WHERE state = 2), " \
		  "(SELECT count(*) FROM hapax_aside WHERE expires IS NOT NULL), " \
		  "(SELECT count(*) FROM hapax_aside WHERE state = 4), " \
		  "(SELECT min(changed) FROM hapax_aside WHERE state = 4), " \
		  "(SELECT count(*) FROM hapax_aside WHERE state = 5)") \
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

/* A pair of tables, as a connection knows it; the columns of hapax_generation. */
enum hpx_generation_state {
	HPX_GENERATION_OPEN = 1,
	HPX_GENERATION_CLOSED = 2,
	HPX_GENERATION_DEAD = 3,
};
struct hpx_sqlite_generation {
	int64_t number;
	int64_t class_ms;
	enum hpx_generation_state state;
	bool marked;
	int64_t opened_ms;
	int64_t closed_ms;
	int64_t retention_ms;
	int64_t operations;
	int64_t settled;
	int64_t expires_ms;
	int64_t moved;     /* rows up to this number count for nothing any more */
	int64_t oldest_ms; /* nothing in it began before */
	bool readable;     /* false: its row's check is wrong */
	int64_t last;      /* the greatest number seen in it; -1: nobody has looked */
	/* The reaper's: all rows up to this number may go; and when to look again, wall. */
	int64_t walked;
	int64_t walk_at_ms;
	sqlite3_stmt *statements[HPX_GENERATION_SQL_COUNT];
};

/* A connection; prepared statements are made when first used. The generations are
 * those of list_version, newest first. */
struct hpx_sqlite_db {
	sqlite3 *handle;
	sqlite3_stmt *statements[HPX_SQL_COUNT];
	int64_t list_version; /* 0: not read */
	struct hpx_sqlite_generation *generations;
	size_t generation_count;
};

struct hpx_sqlite_statement {
	struct hpx_sqlite_db *db;
	sqlite3_stmt *handle;
	int index; /* of the parameter bound last */
	int code;  /* SQLITE_OK as long as all went well */
};

enum hpx_status hpx_sqlite_status(int code);

struct hpx_sqlite_statement hpx_sqlite_statement(struct hpx_sqlite_db *db, enum hpx_sql sql);
struct hpx_sqlite_statement hpx_sqlite_generation_statement(struct hpx_sqlite_db *db,
							    struct hpx_sqlite_generation *generation,
							    enum hpx_generation_sql sql);
/* The text with every # replaced by the number; false where `size` is too small. */
bool hpx_sqlite_number_sql(const char *sql, int64_t number, char *text, size_t size);
const char *hpx_sqlite_sql(enum hpx_sql sql);
const char *hpx_sqlite_generation_sql(enum hpx_generation_sql sql);
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

/* Forgets the generations and their statements. */
void hpx_sqlite_generations_free(struct hpx_sqlite_generation *generations, size_t count);
void hpx_sqlite_db_close(struct hpx_sqlite_db *db);
/* Lets go of a connection that stays the caller's. */
void hpx_sqlite_db_finalize(struct hpx_sqlite_db *db);

#endif
