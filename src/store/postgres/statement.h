/* Every statement the driver runs, prepared when a connection is opened. Tables
 * are named with their schema, values come as parameters only, and whatever
 * the gateways run often reaches its rows by the operation's id. */
#ifndef HPX_STORE_POSTGRES_STATEMENT_H
#define HPX_STORE_POSTGRES_STATEMENT_H

#include "store/postgres/job_statement.h"

/* The database's clock, after whatever locks were taken before it is asked. */
#define HPX_PG_SQL_CLOCK "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"

/* The transaction's own mark in the rows that it locks (xmax) or writes (xmin). */
#define HPX_PG_SQL_OWN "(SELECT pg_current_xact_id()::xid)"

/* The columns of a record, with its renewal; row.c reads them in this order. */
#define HPX_PG_SQL_RECORD \
	"o.id, o.state, o.attempt, o.token, o.mark, o.fingerprint, " \
	"o.recipe, o.tenant_hash, o.owner, o.created, o.changed, o.expires, " \
	"o.retention, o.lease_until, o.status, o.kept, o.when_lost, " \
	"o.advanced, o.point, l.token, l.until"
#define HPX_PG_SQL_DESCRIPTION "o.tenant, o.scope, o.key, o.method, o.path, o.route"
#define HPX_PG_SQL_FROM \
	" FROM hapax.operation o LEFT JOIN hapax.lease l ON l.id = o.id "

/* A row that cannot be read is shown among the unknowns and never reaped. No
 * CHECK keeps such a row out, since every statement would pay for it. */
#define HPX_PG_SQL_READABLE \
	"(o.state BETWEEN 1 AND 5 AND octet_length(o.token) = 16 AND " \
	"octet_length(o.mark) = 16 AND octet_length(o.fingerprint) = 32 " \
	"AND octet_length(o.recipe) = 16 AND " \
	"octet_length(o.tenant_hash) = 32 AND " \
	"o.attempt BETWEEN 1 AND 4294967295 AND o.retention >= 0 AND " \
	"o.status BETWEEN 0 AND 999 AND o.when_lost BETWEEN 0 AND 2 AND " \
	"(o.point = '' OR o.point ~ '^[!-~]{1,63}$'))"

/* The arrays that row_write.c sends for records, in this order. */
#define HPX_PG_SQL_ARRAYS \
	"$1::bytea[], $2::int2[], $3::int8[], $4::bytea[], $5::bytea[], " \
	"$6::bytea[], $7::bytea[], $8::bytea[], $9::int8[], $10::int8[], " \
	"$11::int8[], $12::int8[], $13::int8[], $14::int8[], $15::int4[], " \
	"$16::bool[], $17::int2[], $18::bool[], $19::text[]"
#define HPX_PG_SQL_NAMES \
	"id, state, attempt, token, mark, fingerprint, recipe, " \
	"tenant_hash, owner, created, changed, expires, retention, " \
	"lease_until, status, kept, when_lost, advanced, point"
#define HPX_PG_SQL_TEXT_ARRAYS(a, b, c, d, e, f) \
	a "::text[], " b "::text[], " c "::text[], " d "::text[], " e \
	  "::text[], " f "::text[]"
#define HPX_PG_SQL_TEXT_NAMES "tenant, scope, key, method, path, route"

/* Of the answers that come with their rows: at most 4 MiB, or the first one,
 * however large it is. */
#define HPX_PG_SQL_ANSWER_BYTES "octet_length(r.headers) + octet_length(r.body)"
#define HPX_PG_SQL_FITS "total <= 4194304 OR total = bytes"

/* X(name, who uses it: WRITER or READER, SQL) */
#define HPX_PG_LIST(X) \
	X(BEGIN, WRITER, "BEGIN ISOLATION LEVEL READ COMMITTED") \
	X(COMMIT, WRITER, "COMMIT") \
	X(ROLLBACK, WRITER, "ROLLBACK") \
	X(CLOCK, WRITER, "SELECT " HPX_PG_SQL_CLOCK) \
	/* Never waits: a row that somebody else has locked is left out. */ \
	X(LOCK, WRITER, "SELECT id FROM hapax.operation " \
			"WHERE id = ANY($1::bytea[]) ORDER BY id " \
			"FOR UPDATE SKIP LOCKED") \
	X(READ, WRITER, "SELECT " HPX_PG_SQL_RECORD HPX_PG_SQL_FROM "WHERE o.id = ANY($1::bytea[])") \
	X(ANSWERS, WRITER, "SELECT id, headers, body, digest " \
			   "FROM hapax.response WHERE id = ANY($1::bytea[])") \
	X(INSERT, WRITER, "INSERT INTO hapax.operation (" HPX_PG_SQL_NAMES ", " HPX_PG_SQL_TEXT_NAMES ") SELECT * FROM unnest(" HPX_PG_SQL_ARRAYS ", " HPX_PG_SQL_TEXT_ARRAYS("$20", "$21", "$22", "$23", "$24", "$25") ") ON CONFLICT (id) DO NOTHING RETURNING id") \
	/* The fast path: a first attempt that nobody knows of, and the end   \
	 * of one that nobody has touched. Times are counted from the         \
	 * database's clock; what came of them is told. An INSERT waits for   \
	 * whoever is changing a row of that id: one that can be seen is left \
	 * out, and comes back as it is, with its answer, as long as the      \
	 * answers are not too many bytes (octet_length does not fetch them). \
	 * What has no token is only looked for. */ \
	X(INSERT_ABSENT, WRITER, "WITH c AS MATERIALIZED (SELECT " HPX_PG_SQL_CLOCK " AS ms), s (" HPX_PG_SQL_NAMES ", renewed, " \
				 "until, headers, body, digest, bytes, total) AS MATERIALIZED " \
				 "(SELECT " HPX_PG_SQL_RECORD ", r.headers, r.body, r.digest, " HPX_PG_SQL_ANSWER_BYTES ", sum(" HPX_PG_SQL_ANSWER_BYTES ") " \
				 "OVER (ROWS UNBOUNDED PRECEDING)" HPX_PG_SQL_FROM "LEFT JOIN hapax.response r ON r.id = o.id AND o.state = 3 " \
				 "WHERE o.id = ANY($1::bytea[])), " \
				 "i AS (INSERT INTO hapax.operation AS o " \
				 "(id, state, attempt, token, mark, fingerprint, recipe, " \
				 "tenant_hash, owner, created, changed, retention, " \
				 "lease_until, status, kept, when_lost, " HPX_PG_SQL_TEXT_NAMES ") SELECT n.id, 1, 1, n.token, " \
				 "n.mark, n.fingerprint, n.recipe, n.tenant_hash, n.owner, " \
				 "(SELECT ms FROM c) + $17::int8, " \
				 "(SELECT ms FROM c) + $17::int8, n.retention, " \
				 "(SELECT ms FROM c) + n.lease_until, 0, false, n.when_lost, " \
				 "n.tenant, n.scope, n.key, n.method, n.path, n.route " \
				 "FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], " \
				 "$4::bytea[], $5::bytea[], $6::bytea[], $7::int8[], " \
				 "$8::int8[], $9::int8[], $10::int2[], " HPX_PG_SQL_TEXT_ARRAYS("$11", "$12", "$13", "$14", "$15", "$16") ") AS n (id, token, mark, fingerprint, recipe, tenant_hash, " \
																	  "owner, retention, lease_until, when_lost, " HPX_PG_SQL_TEXT_NAMES ") WHERE n.token IS NOT NULL AND n.id NOT IN " \
																	  "(SELECT s.id FROM s) " \
																	  "ON CONFLICT (id) DO NOTHING RETURNING o.id, o.created) " \
																	  "SELECT " HPX_PG_SQL_NAMES ", renewed, until, " \
																	  "(SELECT ms FROM c) + $17::int8, false, " \
																	  "CASE WHEN " HPX_PG_SQL_FITS " THEN headers END, " \
																	  "CASE WHEN " HPX_PG_SQL_FITS " THEN body END, digest FROM s " \
																	  "UNION ALL SELECT id, NULL, NULL, NULL, NULL, NULL, NULL, " \
																	  "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, " \
																	  "NULL, NULL, NULL, NULL, created, true, NULL, NULL, NULL " \
																	  "FROM i") \
	/* Behind LOCK: the rows that it got carry this transaction's mark,   \
	 * and nobody waits for one that it left out. (state + 0, because the \
	 * index of what is in progress is not the way to a row by its id,    \
	 * and looks like it while the table is empty.) */ \
	X(COMPLETE_BELIEVED, WRITER, "WITH c AS MATERIALIZED (SELECT " HPX_PG_SQL_CLOCK " AS ms) UPDATE hapax.operation o SET " \
				     "state = 3, changed = (SELECT ms FROM c) + $6::int8, " \
				     "expires = (SELECT ms FROM c) + n.expires, " \
				     "status = n.status, kept = n.kept FROM unnest($1::bytea[], " \
				     "$2::bytea[], $3::int4[], $4::bool[], $5::int8[]) " \
				     "AS n (id, token, status, kept, expires) WHERE o.id = n.id " \
				     "AND o.xmax = " HPX_PG_SQL_OWN " AND o.token = n.token " \
				     "AND o.state + 0 = 1 AND o.attempt = 1 AND NOT o.advanced " \
				     "AND o.point = '' AND NOT EXISTS (SELECT 1 FROM hapax.lease l " \
				     "WHERE l.id = n.id) RETURNING o.id, o.changed") \
	X(ANSWER_BELIEVED, WRITER, "INSERT INTO hapax.response (id, " \
				   "headers, body, digest) SELECT n.id, n.headers, n.body, " \
				   "n.digest FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], " \
				   "$4::bytea[]) AS n (id, headers, body, digest) " \
				   "JOIN hapax.operation o ON o.id = n.id " \
				   "AND o.xmin = " HPX_PG_SQL_OWN " AND o.state = 3 " \
				   "ON CONFLICT (id) DO UPDATE SET headers = excluded.headers, " \
				   "body = excluded.body, digest = excluded.digest") \
	X(UPDATE, WRITER, "UPDATE hapax.operation o SET state = n.state, " \
			  "attempt = n.attempt, token = n.token, mark = n.mark, " \
			  "fingerprint = n.fingerprint, recipe = n.recipe, " \
			  "tenant_hash = n.tenant_hash, owner = n.owner, " \
			  "created = n.created, changed = n.changed, " \
			  "expires = n.expires, retention = n.retention, " \
			  "lease_until = n.lease_until, status = n.status, " \
			  "kept = n.kept, when_lost = n.when_lost, " \
			  "advanced = n.advanced, point = n.point, point_data = CASE " \
			  "n.point WHEN '' THEN NULL ELSE o.point_data END " \
			  "FROM unnest(" HPX_PG_SQL_ARRAYS ") " \
			  "AS n (" HPX_PG_SQL_NAMES ") WHERE o.id = n.id") \
	X(DESCRIBE, WRITER, "UPDATE hapax.operation o SET " \
			    "tenant = n.tenant, scope = n.scope, key = n.key, " \
			    "method = n.method, path = n.path, route = n.route " \
			    "FROM unnest($1::bytea[], " HPX_PG_SQL_TEXT_ARRAYS("$2", "$3", "$4", "$5", "$6", "$7") ") AS n (id, " HPX_PG_SQL_TEXT_NAMES ") WHERE o.id = n.id") \
	X(REMOVE, WRITER, "DELETE FROM hapax.operation " \
			  "WHERE id = ANY($1::bytea[])") \
	X(PUT_ANSWERS, WRITER, "INSERT INTO hapax.response (id, headers, " \
			       "body, digest) SELECT * FROM unnest($1::bytea[], " \
			       "$2::bytea[], $3::bytea[], $4::bytea[]) " \
			       "ON CONFLICT (id) DO UPDATE SET headers = excluded.headers, " \
			       "body = excluded.body, digest = excluded.digest") \
	X(REMOVE_ANSWERS, WRITER, "DELETE FROM hapax.response " \
				  "WHERE id = ANY($1::bytea[])") \
	X(PUT_LEASES, WRITER, "INSERT INTO hapax.lease (id, token, until) " \
			      "SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::int8[]) " \
			      "ON CONFLICT (id) DO UPDATE SET token = excluded.token, " \
			      "until = excluded.until") \
	X(REMOVE_LEASES, WRITER, "DELETE FROM hapax.lease " \
				 "WHERE id = ANY($1::bytea[])") \
	X(PUT_EVENTS, WRITER, "INSERT INTO hapax.event (id, at, attempt, " \
			      "what, actor, reason, status) SELECT * FROM " \
			      "unnest($1::bytea[], $2::int8[], $3::int8[], $4::text[], " \
			      "$5::text[], $6::text[], $7::int4[])") \
	/* Something in the log to wait for, where a batch writes nothing:    \
	 * once it is safe, so is every commit before it. */ \
	X(MARK, WRITER, "SELECT pg_logical_emit_message(true, 'hapax', '')") \
	X(LOST, WRITER, "SELECT o.id FROM hapax.operation o " \
			"WHERE o.state = 1 AND o.lease_until <= $1::int8 AND " \
			"NOT EXISTS (SELECT 1 FROM hapax.lease l WHERE l.id = o.id " \
			"AND l.token = o.token AND l.until > $1::int8) " \
			"ORDER BY o.lease_until LIMIT $2::int8 " \
			"FOR UPDATE OF o SKIP LOCKED") \
	X(REAP, WRITER, "WITH gone AS (DELETE FROM hapax.operation " \
			"WHERE id = ANY(ARRAY(SELECT o.id FROM hapax.operation o " \
			"WHERE o.expires <= $1::int8 AND o.state IN (2, 3) AND " HPX_PG_SQL_READABLE " ORDER BY o.expires LIMIT $2::int8 " \
			"FOR UPDATE SKIP LOCKED)) " \
			"RETURNING id), answers AS (DELETE FROM hapax.response r " \
			"USING gone g WHERE r.id = g.id), leases AS (DELETE FROM " \
			"hapax.lease l USING gone g WHERE l.id = g.id), " \
			"questions AS (DELETE FROM hapax.reconcile q USING gone g " \
			"WHERE q.id = g.id AND q.job = 0) " \
			"SELECT count(*) FROM gone") \
	X(REAP_EVENTS, WRITER, "DELETE FROM hapax.event WHERE ctid = " \
			       "ANY(ARRAY(SELECT ctid FROM hapax.event " \
			       "WHERE at <= $1::int8 ORDER BY at LIMIT $2::int8 " \
			       "FOR UPDATE SKIP LOCKED))") \
	X(PUT_RECIPE, WRITER, "INSERT INTO hapax.recipe (id, text) " \
			      "VALUES ($1::bytea, $2::bytea) ON CONFLICT (id) DO NOTHING") \
	/* An application's calls. READ_POINT needs no lock: it looks at one row. */ \
	X(ADVANCE, WRITER, "SELECT hapax.advance($1::text, $2::text, " \
			   "$3::bytea)") \
	X(ENQUEUE, WRITER, "SELECT hapax.enqueue($1::text, $2::text, " \
			   "$3::text, $4::text, $5::text, $6::text, $7::bytea)") \
	X(READ_POINT, WRITER, "SELECT point, point_data FROM hapax.operation " \
			      "WHERE id = $1::bytea AND token = $2::bytea") \
	X(FIND, READER, "SELECT " HPX_PG_SQL_RECORD ", " HPX_PG_SQL_DESCRIPTION ", " \
			"r.id, r.headers, r.body, r.digest" HPX_PG_SQL_FROM "LEFT JOIN hapax.response r ON r.id = o.id " \
			"WHERE o.id = $1::bytea") \
	X(RECIPE, READER, "SELECT text FROM hapax.recipe " \
			  "WHERE id = $1::bytea") \
	X(EVENTS, READER, "SELECT at, attempt, what, actor, reason, status " \
			  "FROM hapax.event WHERE id = $1::bytea ORDER BY seq") \
	X(LIST, READER, "SELECT " HPX_PG_SQL_RECORD ", " HPX_PG_SQL_DESCRIPTION HPX_PG_SQL_FROM "WHERE ($1::int8 < 0 OR o.state = $1::int8 " \
			"OR ($1::int8 = 4 AND NOT " HPX_PG_SQL_READABLE ")) " \
			"AND ($2::bytea IS NULL OR " \
			"o.key = convert_from($2::bytea, 'UTF8')) " \
			"AND ($3::int8 = 0 OR o.changed < $3::int8) " \
			"ORDER BY o.changed DESC, o.created DESC LIMIT $4::int8") \
	X(COUNTS, READER, "SELECT " \
			  "(SELECT count(*) FROM hapax.operation WHERE state = 1), " \
			  "(SELECT count(*) FROM hapax.operation WHERE state = 2), " \
			  "(SELECT count(*) FROM hapax.operation " \
			  "WHERE expires IS NOT NULL), " \
			  "(SELECT count(*) FROM hapax.operation WHERE state = 4), " \
			  "(SELECT min(changed) FROM hapax.operation WHERE state = 4), " \
			  "(SELECT count(*) FROM hapax.operation WHERE state = 5)") \
	X(WATCH, READER, "SELECT id FROM hapax.operation " \
			 "WHERE id = ANY($1::bytea[]) AND state IN (1, 5)") \
	/* $1: the time of the last query, $2: how far each looks back.    \
	 * The time is given where there is no event, too. */ \
	X(REMOVALS, READER, "SELECT " HPX_PG_SQL_CLOCK ", e.seq, e.id " \
			    "FROM (VALUES (1)) one LEFT JOIN hapax.event e ON " \
			    "e.what IN (" HPX_SQL_REMOVAL_EVENTS ") AND e.at >= " \
			    "(SELECT least($1::int8, " HPX_PG_SQL_CLOCK ")) - $2::int8 " \
			    "ORDER BY e.seq LIMIT $3::int8") \
	HPX_PG_JOB_LIST(X)

enum hpx_pg_role { HPX_PG_WRITER,
		   HPX_PG_READER };

enum hpx_pg_statement {
#define X(name, role, sql) HPX_PG_##name,
	HPX_PG_LIST(X)
#undef X
		HPX_PG_STATEMENT_COUNT
};

/* The SQL of a statement, for tests that look at its plan. */
const char *hpx_pg_sql(enum hpx_pg_statement statement);

#endif
