/* Every statement the driver runs, prepared when a connection is opened. Tables are
 * named with their schema, values come as parameters only, and whatever the gateways
 * run often reaches its rows by the operation's id.
 *
 * An id is two columns, id and rest, in every result and wherever rows are written;
 * rows are looked for by id alone. */
#ifndef HPX_STORE_POSTGRES_STATEMENT_H
#define HPX_STORE_POSTGRES_STATEMENT_H

/* The database's clock, after whatever locks were taken before it is asked. */
#define HPX_PG_SQL_CLOCK "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"

/* A time of that clock, shifted by a parameter: asked once, so that an index can be
 * searched with it. */
#define HPX_PG_SQL_NOW(shift) "(SELECT " HPX_PG_SQL_CLOCK " + " shift "::int8)"

/* The columns of a record, with its renewal; row.c reads them in this order. */
#define HPX_PG_SQL_RECORD \
	"o.id, o.rest, o.token, o.mark, o.recipe, o.created, o.owner, o.retention, " \
	"o.fingerprint, o.tenant_hash, o.lease_until, o.expires, o.changed, o.attempt, " \
	"o.status, o.when_lost, o.state, o.kept, o.advanced, o.last_error, o.point, o.tombstone, " \
	"o.revision, l.token AS renewed, l.until"
#define HPX_PG_SQL_DESCRIPTION "o.tenant, o.scope, o.key, o.method, o.path, o.route"
#define HPX_PG_SQL_FROM " FROM hapax.operation o LEFT JOIN hapax.lease l ON l.id = o.id "

/* A row that cannot be read is shown among the unknowns and never reaped: what
 * hapax.is_whole says, without a call. */
#define HPX_PG_SQL_READABLE \
	"(o.state BETWEEN 1 AND 5 AND o.attempt BETWEEN 1 AND 4294967295 AND " \
	"octet_length(o.fingerprint) = 32 AND octet_length(o.tenant_hash) = 32 AND " \
	"o.expires >= 0 AND o.retention >= 0 AND o.tombstone >= 0 AND o.status BETWEEN 0 AND 999 AND " \
	"o.when_lost BETWEEN 0 AND 2 AND (o.point = '' OR o.point ~ '^[!-~]{1,63}$'))"

/* When nothing of a record need be known any more, as in core (hpx_record_end_ms); and when
 * the reaper has something to do: an answer goes at its expiry, a tombstone at its end. */
#define HPX_PG_SQL_END "(o.expires + CASE WHEN o.state = 3 THEN o.tombstone ELSE 0 END)"
#define HPX_PG_SQL_REAP_AT \
	"(o.expires + CASE WHEN o.state = 3 AND o.answer IS NULL AND NOT o.kept " \
	"THEN o.tombstone ELSE 0 END)"

/* The arrays that row_write.c sends for records, in this order, and their names. */
#define HPX_PG_SQL_ARRAYS \
	"$1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::uuid[], $6::int8[], $7::int8[], " \
	"$8::int8[], $9::bytea[], $10::bytea[], $11::int8[], $12::int8[], $13::int8[], " \
	"$14::int8[], $15::int4[], $16::int2[], $17::int2[], $18::bool[], $19::bool[], $20::text[], " \
	"$21::text[], $22::int8[]"
#define HPX_PG_SQL_NAMES \
	"id, rest, token, mark, recipe, created, owner, retention, fingerprint, tenant_hash, " \
	"lease_until, expires, changed, attempt, status, when_lost, state, kept, advanced, " \
	"last_error, point, tombstone"
#define HPX_PG_SQL_TEXT_ARRAYS(a, b, c, d, e, f) \
	a "::text[], " b "::text[], " c "::text[], " d "::text[], " e "::text[], " f "::text[]"
#define HPX_PG_SQL_TEXT_NAMES "tenant, scope, key, method, path, route"

/* One row of `flight` or `due` for what a statement wrote: its earliest time. */
#define HPX_PG_SQL_ADD(table, time, from) \
	"INSERT INTO hapax." table " (at, ids) SELECT min(" time "), array_agg(id) FROM " from \
	" HAVING count(*) > 0"
/* The same for what goes back into `due`: it is not among the newest. */
#define HPX_PG_SQL_ADD_AGAIN(time, from) \
	"INSERT INTO hapax.due (at, ids, written) SELECT min(" time "), array_agg(id), 0 FROM " from \
	" HAVING count(*) > 0"

/* An INSERT would wait for whoever is removing the row: one that can be seen is left out.
 * Not by EXISTS, of which the planner makes a join over the whole table. */
#define HPX_PG_SQL_NOT_ASIDE(from) \
	"(SELECT a.id FROM hapax.aside a WHERE a.id = " from ".id) IS NULL"

/* The rows of a queue by time that are due: taken, unless somebody else takes them, with
 * the ids of as many as hold `bound` ids together, and at most `limit` rows. `queue` says
 * how many are due, counted up to the limit, and how many are taken. That is judged by
 * their sizes without reading them: arrays are stored uncompressed, 16 bytes an id behind a
 * header of 20 to 24 bytes. It is judged before it is known which rows somebody else holds:
 * so the statement numbers the ids and puts back what is beyond the bound, in rows of that
 * many ids. */
#define HPX_PG_SQL_TAKE(table, now, limit, bound) \
	"queue AS MATERIALIZED (SELECT count(*) AS due, count(*) FILTER (WHERE b.before < " bound "::int8) AS taken " \
	"FROM (SELECT sum(q.size) OVER (ORDER BY q.at ROWS UNBOUNDED PRECEDING) - q.size AS before " \
	"FROM (SELECT at, (pg_column_size(ids) - 20) / 16 AS size FROM hapax." table " WHERE at <= " now "::int8 " \
	"ORDER BY at LIMIT " limit "::int8) q) b), " \
	"taken AS (DELETE FROM hapax." table " WHERE ctid = ANY(ARRAY(SELECT ctid FROM hapax." table \
	" WHERE at <= " now "::int8 ORDER BY at LIMIT (SELECT queue.taken FROM queue) FOR UPDATE SKIP LOCKED)) RETURNING ids), " \
	"x AS MATERIALIZED (SELECT e.id, row_number() OVER () AS n " \
	"FROM (SELECT DISTINCT unnest(ids) AS id FROM taken) e)"
/* Whether more is due: 1, or 0, also where others hold all of it. `rest` is what the
 * statement puts back at once. */
#define HPX_PG_SQL_MORE(limit) \
	"(SELECT count(*) FROM queue WHERE EXISTS (SELECT 1 FROM taken) AND (queue.due > queue.taken " \
	"OR queue.due >= " limit "::int8 OR EXISTS (SELECT 1 FROM rest)))"

/* ---- jobs and questions ----
 *
 * Whoever holds an operation's row holds the question about it (reconcile, job 0) too,
 * and whoever holds a job's row the question about that: nobody ever waits for a row
 * of reconcile. Rows that somebody else has locked are left out, never waited for. */

/* The columns of a job; job_row.c reads them in this order. */
#define HPX_PG_SQL_JOB \
	"j.id, j.operation, j.rest, j.mark, j.state, j.answers, j.unsure, j.attempt, j.budget, " \
	"j.status, j.token, j.owner, j.created, j.changed, j.due, j.lease_until, j.first_sent, " \
	"j.resend_until, j.provider_id, j.name, j.target, j.method, j.path, j.headers"
/* Where a question stands; after the job's columns and its body. */
#define HPX_PG_SQL_QUESTION \
	"q.mark, q.sent, q.tries, q.in_a_row, q.first_said, q.ask_at, q.evidence, q.person"

/* The operations that a look is about: by their own ids ($2), and those whose answer
 * the jobs ($1) bring. */
#define HPX_PG_SQL_JOB_OPERATIONS(answering) \
	"o.id = ANY($2::uuid[] || ARRAY(SELECT a.operation " \
	"FROM hapax.job a WHERE a.id = ANY($1::int8[])" answering "))"

/* Whose questions a gateway looks at: its own upstream's, and everybody's (''). */
#define HPX_PG_SQL_UPSTREAMS(own) \
	"(VALUES (''::text COLLATE \"C\"), " \
	"(nullif(convert_from(" own "::bytea, 'UTF8'), ''))) AS u (name)"

/* What a list of jobs is narrowed by. */
#define HPX_PG_SQL_JOB_LIST(narrow) \
	"SELECT " HPX_PG_SQL_JOB ", j.body FROM hapax.job j WHERE " narrow \
	"($1::int8 < 0 OR j.state = $1::int8) AND ($2::bytea IS NULL OR " \
	"j.target = convert_from($2::bytea, 'UTF8')) AND " \
	"($3::uuid IS NULL OR j.operation = $3::uuid) AND " \
	"($4::bytea IS NULL OR j.provider_id = convert_from($4::bytea, 'UTF8')) AND " \
	"($5::int8 = 0 OR j.id = $5::int8) AND ($6::int8 = 0 OR j.id < $6::int8) " \
	"ORDER BY j.id DESC LIMIT $7::int8"

/* What a list of operations is narrowed by: key (as it is, or its hash: the planner knows
 * the parameter and makes both once), tenant, route, and when it began. */
#define HPX_PG_SQL_WANTED \
	"($2::bytea IS NULL OR o.key IN (convert_from($2::bytea, 'UTF8'), '" HPX_KEY_HASH_PREFIX "' || encode(sha256($2::bytea), 'hex'))) AND " \
	"($3::bytea IS NULL OR o.tenant = convert_from($3::bytea, 'UTF8')) AND " \
	"($4::bytea IS NULL OR o.route = convert_from($4::bytea, 'UTF8')) AND " \
	"o.created >= $5::int8"
/* The last parameter of each list. */
#define HPX_PG_SQL_FAILED_BY(parameter) \
	" AND (" parameter "::bytea IS NULL OR o.last_error = convert_from(" parameter "::bytea, 'UTF8'))"

/* At most $6 operations that are wanted, among the $7 that `source` (ids and a time, the
 * newest first) begins with. Behind each, how many were looked at up to its row of the
 * source; in the last columns how many could be, and the oldest time among them: one row
 * of NULLs before these where nothing is wanted. Operations are reached one by one, by
 * id, and no further than the limit. */
#define HPX_PG_SQL_LOOK(source, state) \
	"WITH d AS MATERIALIZED (SELECT e.ids, e.at, e.total FROM (SELECT s.ids, s.at, " \
	"sum(cardinality(s.ids)) OVER (ORDER BY s.at DESC ROWS UNBOUNDED PRECEDING)::int8 AS total " \
	"FROM (" source " LIMIT $7::int8) s) e WHERE e.total - cardinality(e.ids) < $7::int8) " \
	"SELECT r.*, t.total, t.at FROM (SELECT coalesce(max(d.total), 0)::int8 AS total, " \
	"coalesce(min(d.at), 0) AS at FROM d) t LEFT JOIN LATERAL (SELECT w.*, d.total AS seen " \
	"FROM d CROSS JOIN LATERAL unnest(d.ids) AS x (id) CROSS JOIN LATERAL " \
	"(SELECT " HPX_PG_SQL_RECORD ", " HPX_PG_SQL_DESCRIPTION HPX_PG_SQL_FROM "WHERE o.id = x.id AND " state HPX_PG_SQL_WANTED HPX_PG_SQL_FAILED_BY("$9") " LIMIT 1) w LIMIT $6::int8) r ON true"

/* X(name, who uses it: WRITER or READER, SQL) */
#define HPX_PG_LIST(X) \
	X(BEGIN, WRITER, "BEGIN ISOLATION LEVEL READ COMMITTED") \
	X(COMMIT, WRITER, "COMMIT") \
	X(ROLLBACK, WRITER, "ROLLBACK") \
	X(CLOCK, WRITER, "SELECT " HPX_PG_SQL_CLOCK) \
\
	/* The fast path: a first attempt that nobody knows of, and the end of one that     \
	 * nobody has touched. Times are counted from the database's clock; what came of    \
	 * them is told. An INSERT waits for whoever is changing a row of that id: one that \
	 * can be seen is left out. */ \
	X(RESERVE, WRITER, \
	  "WITH c AS MATERIALIZED (SELECT " HPX_PG_SQL_CLOCK " AS ms), " \
	  "i AS (INSERT INTO hapax.operation AS o (id, rest, token, mark, recipe, created, owner, " \
	  "retention, fingerprint, tenant_hash, " HPX_PG_SQL_TEXT_NAMES ", lease_until, changed, " \
	  "attempt, when_lost, state, tombstone) " \
	  "SELECT n.id, n.rest, n.token, n.mark, n.recipe, (SELECT ms FROM c) + $19::int8, n.owner, " \
	  "n.retention, n.fingerprint, n.tenant_hash, n.tenant, n.scope, n.key, n.method, n.path, " \
	  "n.route, (SELECT ms FROM c) + n.lease_until, (SELECT ms FROM c) + $19::int8, 1, " \
	  "n.when_lost, 1, n.tombstone " \
	  "FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::uuid[], $6::int8[], " \
	  "$7::int8[], $8::bytea[], $9::bytea[], " HPX_PG_SQL_TEXT_ARRAYS("$10", "$11", "$12", "$13", "$14", "$15") ", $16::int8[], " \
														    "$17::int2[], $18::int8[]) AS n (id, rest, token, mark, recipe, owner, retention, fingerprint, " \
														    "tenant_hash, " HPX_PG_SQL_TEXT_NAMES ", lease_until, when_lost, tombstone) " \
														    "WHERE NOT EXISTS (SELECT 1 FROM hapax.operation e WHERE e.id = n.id) " \
														    "ON CONFLICT (id) DO NOTHING RETURNING o.id, o.rest, o.created, o.lease_until), " \
														    "f AS (" HPX_PG_SQL_ADD("flight", "lease_until", "i") ") " \
																					  "SELECT id, rest, created FROM i") \
	/* The rows are locked as their attempts left them, without waiting for anybody,    \
	 * and written where they lie: nobody can move them meanwhile. */ \
	X(COMPLETE, WRITER, \
	  "WITH c AS MATERIALIZED (SELECT " HPX_PG_SQL_CLOCK " AS ms), " \
	  "n AS MATERIALIZED (SELECT o.ctid AS place, g.status, g.kept, g.expires, g.answer " \
	  "FROM unnest($1::uuid[], $2::uuid[], $3::int4[], $4::int4[], $5::bool[], $6::int8[], " \
	  "$7::bytea[]) AS g (id, token, revision, status, kept, expires, answer) " \
	  "JOIN hapax.operation o ON o.id = g.id WHERE o.token = g.token AND o.state = 1 " \
	  "AND o.revision = g.revision AND NOT EXISTS (SELECT 1 FROM hapax.lease l " \
	  "WHERE l.id = g.id) FOR UPDATE OF o SKIP LOCKED), " \
	  "u AS (UPDATE hapax.operation o SET state = 3, " \
	  "changed = (SELECT ms FROM c) + $8::int8, expires = (SELECT ms FROM c) + n.expires, " \
	  "status = n.status, kept = n.kept, revision = o.revision + 1, answer = n.answer " \
	  "FROM n WHERE o.ctid = n.place RETURNING o.id, o.rest, o.changed, o.expires), " \
	  "d AS (" HPX_PG_SQL_ADD("due", "expires", "u") ") " \
							 "SELECT id, rest, changed FROM u") \
\
	/* The slow path. LOCK never waits: a row that somebody else has locked is left out. */ \
	X(LOCK, WRITER, \
	  "SELECT id, rest FROM hapax.operation WHERE id = ANY($1::uuid[]) ORDER BY id " \
	  "FOR UPDATE SKIP LOCKED") \
	X(READ, WRITER, \
	  "SELECT " HPX_PG_SQL_RECORD HPX_PG_SQL_FROM "WHERE o.id = ANY($1::uuid[])") \
	X(ANSWERS, WRITER, \
	  "SELECT id, rest, answer FROM hapax.operation WHERE id = ANY($1::uuid[])") \
	X(INSERT, WRITER, \
	  "WITH i AS (INSERT INTO hapax.operation (" HPX_PG_SQL_NAMES ", answer, " HPX_PG_SQL_TEXT_NAMES ") SELECT * FROM unnest(" HPX_PG_SQL_ARRAYS ", $23::bytea[], " HPX_PG_SQL_TEXT_ARRAYS("$24", "$25", "$26", "$27", "$28", "$29") ") " \
																													 "ON CONFLICT (id) DO NOTHING RETURNING id, rest, state, lease_until, expires, changed), " \
																													 "f AS (" HPX_PG_SQL_ADD("flight", "lease_until", "i WHERE state = 1") "), " \
																																					       "d AS (" HPX_PG_SQL_ADD("due", "expires", "i WHERE expires > 0") "), " \
																																														"a AS (INSERT INTO hapax.aside (id, state, changed) SELECT id, state, changed FROM i " \
																																														"WHERE state NOT IN (1, 3) ON CONFLICT (id) DO UPDATE SET state = excluded.state, " \
																																														"changed = excluded.changed) SELECT id, rest FROM i") \
	/* A trigger does what follows from every other move than the plain one. */ \
	X(UPDATE, WRITER, \
	  "WITH u AS (UPDATE hapax.operation o SET token = n.token, mark = n.mark, " \
	  "recipe = n.recipe, created = n.created, owner = n.owner, retention = n.retention, " \
	  "fingerprint = n.fingerprint, tenant_hash = n.tenant_hash, " \
	  "lease_until = n.lease_until, expires = n.expires, changed = n.changed, " \
	  "attempt = n.attempt, status = n.status, when_lost = n.when_lost, state = n.state, " \
	  "kept = n.kept, advanced = n.advanced, last_error = n.last_error, point = n.point, " \
	  "tombstone = n.tombstone, " \
	  "point_data = CASE n.point WHEN '' THEN NULL ELSE o.point_data END, " \
	  "answer = CASE WHEN n.answers THEN n.answer ELSE o.answer END, " \
	  "revision = o.revision + 1 FROM unnest(" HPX_PG_SQL_ARRAYS ", $23::bytea[], " \
	  "$24::bool[]) AS n (" HPX_PG_SQL_NAMES ", answer, answers) " \
	  "WHERE o.id = n.id AND o.rest = n.rest RETURNING o.id, o.state, o.expires), " \
	  "d AS (" HPX_PG_SQL_ADD("due", "expires", "u WHERE state = 3 AND expires > 0") ") " \
											 "SELECT count(*) FROM u") \
	X(DESCRIBE, WRITER, \
	  "UPDATE hapax.operation o SET tenant = n.tenant, scope = n.scope, key = n.key, " \
	  "method = n.method, path = n.path, route = n.route FROM unnest($1::uuid[], " HPX_PG_SQL_TEXT_ARRAYS("$2", "$3", "$4", "$5", "$6", "$7") ") " \
																		  "AS n (id, " HPX_PG_SQL_TEXT_NAMES ") WHERE o.id = n.id") \
	X(REMOVE, WRITER, "DELETE FROM hapax.operation WHERE id = ANY($1::uuid[])") \
	X(PUT_LEASES, WRITER, \
	  "INSERT INTO hapax.lease (id, token, until) " \
	  "SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::int8[]) " \
	  "ON CONFLICT (id) DO UPDATE SET token = excluded.token, until = excluded.until") \
	/* Only beside the very operation that it was reserved with. */ \
	X(PUT_ROUTE_KEYS, WRITER, \
	  "INSERT INTO hapax.route_key (id, mark, hash, amount) SELECT n.id, n.mark, n.hash, n.amount " \
	  "FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[]) AS n (id, mark, hash, amount) " \
	  "JOIN hapax.operation o ON o.id = n.id AND o.mark = n.mark ORDER BY n.id " \
	  "ON CONFLICT (id) DO UPDATE SET mark = excluded.mark, hash = excluded.hash, " \
	  "amount = excluded.amount") \
	X(REMOVE_LEASES, WRITER, "DELETE FROM hapax.lease WHERE id = ANY($1::uuid[])") \
	X(PUT_EVENTS, WRITER, \
	  "INSERT INTO hapax.event (id, rest, at, attempt, what, actor, reason, status) " \
	  "SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::int8[], $4::int8[], $5::text[], " \
	  "$6::text[], $7::text[], $8::int4[])") \
	/* Something in the log to wait for, where a batch writes nothing: once it is safe, \
	 * so is every commit before it. */ \
	X(MARK, WRITER, "SELECT pg_logical_emit_message(true, 'hapax', '')") \
\
	/* Attempts whose lease may be over, at most $4 of them. What ended meanwhile is left \
	 * out; what is beyond $4, or beyond the bound ($3), is put back. The first row says how \
	 * many rows of flight were taken, and whether more are due. */ \
	X(TAKE_FLIGHT, WRITER, \
	  "WITH " HPX_PG_SQL_TAKE("flight", "$1", "$2", "$3") ", " \
							      "live AS MATERIALIZED (SELECT o.id, o.rest, row_number() OVER () AS n FROM x " \
							      "JOIN hapax.operation o ON o.id = x.id WHERE x.n <= $3::int8 AND o.state NOT IN (2, 3, 4, 5)), " \
							      "rest AS (INSERT INTO hapax.flight (at, ids) SELECT $1::int8, array_agg(r.id) FROM " \
							      "(SELECT x.id, (x.n - 1) / $3::int8 AS part FROM x WHERE x.n > $3::int8 " \
							      "UNION ALL SELECT live.id, 0 FROM live WHERE live.n > $4::int8) r GROUP BY r.part RETURNING 1) " \
							      "SELECT NULL::uuid, NULL::uuid, (SELECT count(*) FROM taken), " HPX_PG_SQL_MORE("$2") " UNION ALL " \
																		    "SELECT live.id, live.rest, 0, 0 FROM live WHERE live.n <= $4::int8") \
	X(PUT_FLIGHT, WRITER, \
	  "INSERT INTO hapax.flight (at, ids) VALUES ($2::int8, $1::uuid[])") \
	/* Of the rows of due that have come: what expired is deleted, or becomes a tombstone,  \
	 * which is due once more; of what is deleted, an entry of the history is left. What    \
	 * has not expired, and what somebody holds, is put back, like whatever is beyond the   \
	 * limit ($2). The first row says how many expired, and whether more is due; the others \
	 * are pending ones whose time is over, each with the job that answers it. */ \
	X(REAP, WRITER, \
	  "WITH " HPX_PG_SQL_TAKE("due", "$1", "$3", "$2") ", " \
							   "seen AS MATERIALIZED (SELECT o.id, o.rest, o.mark, o.state, o.expires, " HPX_PG_SQL_REAP_AT " AS at, " HPX_PG_SQL_READABLE " AS readable FROM x JOIN hapax.operation o ON o.id = x.id " \
							   "WHERE x.n <= $2::int8), " \
							   "held AS MATERIALIZED (SELECT o.id, " HPX_PG_SQL_END " <= $1::int8 AS over " \
							   "FROM hapax.operation o WHERE o.id = ANY(ARRAY(SELECT s.id FROM seen s WHERE s.readable " \
							   "AND s.at BETWEEN 1 AND $1::int8 AND s.state IN (2, 3))) AND " HPX_PG_SQL_REAP_AT " BETWEEN 1 AND $1::int8 AND o.state IN (2, 3) AND " HPX_PG_SQL_READABLE \
							   " FOR UPDATE SKIP LOCKED), " \
							   "gone AS (DELETE FROM hapax.operation WHERE id = ANY(ARRAY(SELECT h.id FROM held h WHERE h.over)) " \
							   "RETURNING id, rest, mark, created, changed, attempt, status, state, tenant, key, method, path, route), " \
							   "buried AS (UPDATE hapax.operation o SET answer = NULL, kept = false, revision = o.revision + 1 " \
							   "WHERE o.id = ANY(ARRAY(SELECT h.id FROM held h WHERE NOT h.over)) " \
							   "RETURNING o.id, " HPX_PG_SQL_END " AS at), " \
							   "told AS (INSERT INTO hapax.history (id, rest, mark, created, changed, attempt, status, state, " \
							   "tenant, key, method, path, route) SELECT g.* FROM gone g CROSS JOIN hapax.history_rule r " \
							   "WHERE r.number = 1 AND r.retention > 0 AND g.created > $1::int8 - r.retention), " \
							   "leases AS (DELETE FROM hapax.lease l USING gone g WHERE l.id = g.id), " \
							   "providers AS (DELETE FROM hapax.provider p USING gone g WHERE p.id = g.id), " \
							   "keys AS (DELETE FROM hapax.route_key k USING gone g WHERE k.id = g.id), " \
							   "questions AS (DELETE FROM hapax.reconcile q USING gone g " \
							   "WHERE q.id = g.id AND q.job = 0), " \
							   "again AS (" HPX_PG_SQL_ADD_AGAIN("greatest(at, $1::int8 + 1000)", \
											     "seen WHERE readable AND expires > 0 AND id NOT IN (SELECT h.id FROM held h)") "), " \
																					    "tombs AS (" HPX_PG_SQL_ADD_AGAIN("at", "buried") "), " \
																											      "rest AS (INSERT INTO hapax.due (at, ids, written) SELECT $1::int8, array_agg(x.id), 0 FROM x " \
																											      "WHERE x.n > $2::int8 GROUP BY (x.n - 1) / $2::int8 RETURNING 1), " \
																											      "odd AS (INSERT INTO hapax.aside (id, state, changed) SELECT s.id, 4, $1::int8 " \
																											      "FROM seen s WHERE NOT s.readable AND " HPX_PG_SQL_NOT_ASIDE("s") " ON CONFLICT (id) DO NOTHING) " \
																																				"SELECT NULL::uuid, NULL::uuid, (SELECT count(*) FROM held), " HPX_PG_SQL_MORE("$3") " " \
																																														     "UNION ALL SELECT s.id, s.rest, j.id, 0 FROM seen s LEFT JOIN hapax.job j " \
																																														     "ON j.operation = s.id AND j.mark = s.mark AND j.answers " \
																																														     "WHERE s.readable AND s.state = 5 AND s.expires BETWEEN 1 AND $1::int8") \
	/* The next part ($2 rows) of the look over the whole table, if one is under way or  \
	 * the last one began a day ago; gateways take turns. What should have been swept or  \
	 * reaped ten minutes ago is written down again, and whatever should be aside is. */ \
	X(LOOK_OVER, WRITER, \
	  "WITH r AS MATERIALIZED (SELECT ctid AS place, reached FROM hapax.slow_round " \
	  "WHERE number = 1 AND (reached IS NOT NULL OR " \
	  "began NOT BETWEEN $1::int8 - 86400000 AND $1::int8) FOR UPDATE SKIP LOCKED), " \
	  "o AS MATERIALIZED (SELECT p.* FROM r CROSS JOIN LATERAL (SELECT o.id, o.state, " \
	  "o.lease_until, " HPX_PG_SQL_REAP_AT " AS at, o.changed, " HPX_PG_SQL_READABLE " AS readable " \
	  "FROM hapax.operation o WHERE o.id > coalesce(r.reached, " \
	  "'00000000-0000-0000-0000-000000000000') ORDER BY o.id LIMIT $2::int8) p), " \
	  "f AS (" HPX_PG_SQL_ADD("flight", "$1::int8", \
				  "o WHERE state = 1 AND lease_until <= $1::int8 - 600000") "), " \
											    "d AS (" HPX_PG_SQL_ADD_AGAIN("$1::int8", \
															  "o WHERE at BETWEEN 1 AND $1::int8 - 600000") "), " \
																					"a AS (INSERT INTO hapax.aside (id, state, changed) " \
																					"SELECT o.id, CASE WHEN o.readable THEN o.state ELSE 4 END, o.changed FROM o " \
																					"WHERE (NOT o.readable OR o.state NOT IN (1, 3)) AND " HPX_PG_SQL_NOT_ASIDE("o") " ON CONFLICT (id) DO NOTHING) " \
																															 "UPDATE hapax.slow_round s SET reached = CASE WHEN (SELECT count(*) FROM o) = $2::int8 " \
																															 "THEN (SELECT id FROM o ORDER BY id DESC LIMIT 1) END, " \
																															 "began = CASE WHEN s.reached IS NULL THEN $1::int8 ELSE s.began END " \
																															 "FROM r WHERE s.ctid = r.place") \
	/* Whoever else would write the same event waits for its turn: LOCK_EVENTS is a       \
	 * statement of its own, so that PUT_EVENT_ONCE sees what was committed before it. */ \
	X(LOCK_EVENTS, WRITER, \
	  "SELECT pg_try_advisory_xact_lock(hashtextextended($1::uuid::text, 0))::int::int8") \
	X(PUT_EVENT_ONCE, WRITER, \
	  "INSERT INTO hapax.event (id, rest, at, attempt, what, actor, reason, status) " \
	  "SELECT $1::uuid, $2::uuid, $3::int8, $4::int8, $5::text, $6::text, $7::text, " \
	  "$8::int8::int4 WHERE NOT EXISTS (SELECT FROM hapax.event WHERE id = $1::uuid AND " \
	  "rest = $2::uuid AND what = $5::text AND at >= $9::int8)") \
	X(REAP_EVENTS, WRITER, \
	  "DELETE FROM hapax.event WHERE ctid = ANY(ARRAY(SELECT ctid FROM hapax.event " \
	  "WHERE at <= $1::int8 ORDER BY at LIMIT $2::int8 FOR UPDATE SKIP LOCKED))") \
	X(PUT_HISTORY_RULE, WRITER, \
	  "UPDATE hapax.history_rule SET retention = $1::int8 WHERE number = 1 AND retention <> $1::int8") \
	X(KEEP_HISTORY, WRITER, "SELECT hapax.keep_history($1::uuid[], " HPX_PG_SQL_CLOCK ")") \
	X(REAP_HISTORY, WRITER, \
	  "DELETE FROM hapax.history WHERE ctid = ANY(ARRAY(SELECT h.ctid FROM hapax.history h " \
	  "WHERE h.created <= (SELECT CASE WHEN retention > 0 THEN $1::int8 - retention END " \
	  "FROM hapax.history_rule WHERE number = 1) ORDER BY h.created LIMIT $2::int8 FOR UPDATE SKIP LOCKED))") \
	X(PUT_RECIPE, WRITER, \
	  "INSERT INTO hapax.recipe (id, text) VALUES ($1::uuid, $2::bytea) " \
	  "ON CONFLICT (id) DO NOTHING") \
\
	/* An application's calls. READ_POINT needs no lock: it looks at one row. */ \
	X(ADVANCE, WRITER, "SELECT hapax.advance($1::text, $2::text, $3::bytea)") \
	X(ENQUEUE, WRITER, \
	  "SELECT hapax.enqueue($1::text, $2::text, $3::text, $4::text, $5::text, $6::text, " \
	  "$7::bytea)") \
	X(PROVIDER_ID, WRITER, "SELECT hapax.provider_id($1::text, $2::text)") \
	X(SETTLE, WRITER, \
	  "SELECT hapax.settle($1::text, $2::text, $3::int8::int4, $4::text, $5::bytea, " \
	  "$6::text)") \
	/* What is there already is not touched: an upsert would lock its row, and a start \
	 * would wait for a standby that may be gone. */ \
	X(PUT_LANE, WRITER, \
	  "INSERT INTO hapax.lane AS l (upstream, name, settle_after, confirm_after, keyed) " \
	  "SELECT w.upstream, w.name, $3::int8, $4::int8, " \
	  "CASE WHEN $5::int8 = 0 THEN 0 ELSE " HPX_PG_SQL_NOW("$6") " + $5::int8 END " \
								     "FROM (SELECT convert_from($1::bytea, 'UTF8') AS upstream, " \
								     "convert_from($2::bytea, 'UTF8') AS name) w " \
								     "WHERE NOT EXISTS (SELECT FROM hapax.lane k WHERE k.upstream = w.upstream AND " \
								     "k.name = w.name AND k.settle_after = $3::int8 AND k.confirm_after = $4::int8 AND " \
								     "(k.keyed = 0) = ($5::int8 = 0)) " \
								     "ON CONFLICT (upstream, name) DO UPDATE SET " \
								     "settle_after = excluded.settle_after, confirm_after = excluded.confirm_after, " \
								     "keyed = CASE WHEN excluded.keyed = 0 OR l.keyed = 0 THEN excluded.keyed ELSE l.keyed END") \
	X(READ_POINT, WRITER, \
	  "SELECT point, point_data FROM hapax.operation " \
	  "WHERE id = $1::uuid AND rest = $2::uuid AND token = $3::uuid") \
\
	/* Jobs. A look: the operation's row first, then the job's. */ \
	X(LOCK_OPERATIONS, WRITER, \
	  "SELECT o.id, o.rest FROM hapax.operation o WHERE " HPX_PG_SQL_JOB_OPERATIONS(" AND a.answers") " ORDER BY o.id FOR UPDATE SKIP LOCKED") \
	X(LOCK_JOBS, WRITER, \
	  "SELECT id FROM hapax.job WHERE id = ANY($1::int8[]) ORDER BY id " \
	  "FOR UPDATE SKIP LOCKED") \
	X(READ_JOBS, WRITER, \
	  "SELECT " HPX_PG_SQL_JOB ", CASE WHEN $2::int8 = 1 THEN j.body ELSE '' END, " HPX_PG_SQL_QUESTION " FROM hapax.job j LEFT JOIN hapax.reconcile q " \
	  "ON q.id = j.operation AND q.job = j.id WHERE j.id = ANY($1::int8[])") \
	X(READ_OPERATIONS, WRITER, \
	  "SELECT " HPX_PG_SQL_RECORD ", " HPX_PG_SQL_DESCRIPTION ", " HPX_PG_SQL_QUESTION \
		  HPX_PG_SQL_FROM "LEFT JOIN hapax.reconcile q ON q.id = o.id AND q.job = 0 " \
	  "AND q.mark = o.mark WHERE " HPX_PG_SQL_JOB_OPERATIONS("")) \
	X(ANSWERING, WRITER, \
	  "SELECT j.id FROM hapax.operation o JOIN hapax.job j ON j.operation = o.id AND " \
	  "j.mark = o.mark AND j.answers WHERE o.id = $1::uuid AND o.state <> 3 " \
	  "ORDER BY j.id LIMIT 1") \
	/* The heads of their operations' queues that are due within a window, so many per  \
	 * target. */ \
	X(CLAIM, WRITER, \
	  "SELECT " HPX_PG_SQL_JOB ", j.body FROM unnest($1::text[], $2::int8[]) " \
	  "AS c (target, room) CROSS JOIN LATERAL (SELECT * FROM hapax.job d " \
	  "WHERE d.state = 1 AND d.target = c.target AND d.due > " HPX_PG_SQL_NOW("$3") " AND " \
											"d.due <= " HPX_PG_SQL_NOW("$4") " AND NOT EXISTS (SELECT 1 FROM hapax.job e " \
															 "WHERE e.operation = d.operation AND e.mark = d.mark AND e.id < d.id " \
															 "AND e.state NOT IN (3, 6)) ORDER BY d.due LIMIT c.room FOR UPDATE SKIP LOCKED) j") \
	/* What this very claim took, where its commit was not heard of. */ \
	X(CLAIMED, WRITER, \
	  "SELECT " HPX_PG_SQL_JOB ", j.body FROM hapax.job j WHERE j.state = 2 " \
	  "AND j.lease_until > " HPX_PG_SQL_NOW("$2") " AND j.token = $1::uuid") \
	X(LOST_JOBS, WRITER, \
	  "SELECT id FROM hapax.job WHERE state = 2 AND lease_until <= " HPX_PG_SQL_NOW("$1") " ORDER BY lease_until LIMIT $2::int8") \
	/* Of several operations; without a lock. */ \
	X(ANSWERING_ALL, WRITER, \
	  "SELECT o.id, o.rest, min(j.id) FROM hapax.operation o JOIN hapax.job j " \
	  "ON j.operation = o.id AND j.mark = o.mark AND j.answers " \
	  "WHERE o.id = ANY($1::uuid[]) AND o.state <> 3 GROUP BY o.id, o.rest") \
	/* Questions that are due, and about nothing that is unknown. */ \
	X(END_QUESTIONS, WRITER, \
	  "DELETE FROM hapax.reconcile WHERE ctid = ANY(ARRAY(SELECT q.ctid " \
	  "FROM unnest($1::uuid[], $2::int8[]) AS n (id, job) " \
	  "JOIN hapax.reconcile q ON q.id = n.id AND q.job = n.job " \
	  "WHERE NOT q.person AND q.ask_at > 0 AND CASE q.job " \
	  "WHEN 0 THEN (SELECT o.state FROM hapax.operation o " \
	  "WHERE o.id = q.id AND o.mark = q.mark) " \
	  "ELSE (SELECT j.state FROM hapax.job j WHERE j.id = q.job " \
	  "AND j.operation = q.id AND j.mark = q.mark) END " \
	  "IS DISTINCT FROM 4 FOR UPDATE OF q SKIP LOCKED))") \
	/* Only beside the very operation that it was accepted with: one that another        \
	 * gateway inserted first has a job of its own. What is there already moves as a      \
	 * requeued job does. */ \
	X(PUT_JOBS, WRITER, \
	  "INSERT INTO hapax.job AS j (operation, rest, mark, name, target, method, path, " \
	  "headers, body, created, changed, due, answers) SELECT n.operation, o.rest, n.mark, " \
	  "n.name, n.target, n.method, n.path, n.headers, n.body, n.at, n.at, n.at, true " \
	  "FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], " \
	  "$7::text[], $8::bytea[], $9::int8[]) AS n (operation, mark, name, target, method, " \
	  "path, headers, body, at) JOIN hapax.operation o ON o.id = n.operation " \
	  "AND o.mark = n.mark ORDER BY n.operation " \
	  "ON CONFLICT (operation, mark, name) DO UPDATE SET target = excluded.target, " \
	  "method = excluded.method, path = excluded.path, headers = excluded.headers, " \
	  "body = excluded.body, state = 1, unsure = false, budget = j.attempt, " \
	  "token = '00000000-0000-0000-0000-000000000000', changed = excluded.changed, " \
	  "due = excluded.due WHERE j.state IN (4, 5, 6)") \
	X(UPDATE_JOBS, WRITER, \
	  "UPDATE hapax.job j SET state = n.state, unsure = n.unsure, attempt = n.attempt, " \
	  "budget = n.budget, status = n.status, token = n.token, owner = n.owner, " \
	  "changed = n.changed, due = n.due, lease_until = n.lease_until, " \
	  "first_sent = n.first_sent, resend_until = n.resend_until, " \
	  "provider_id = n.provider_id FROM unnest($1::int8[], $2::int2[], $3::bool[], " \
	  "$4::int8[], $5::int8[], $6::int4[], $7::uuid[], $8::int8[], $9::int8[], $10::int8[], " \
	  "$11::int8[], $12::int8[], $13::int8[], $14::text[]) AS n (id, state, unsure, attempt, " \
	  "budget, status, token, owner, changed, due, lease_until, first_sent, resend_until, " \
	  "provider_id) WHERE j.id = n.id") \
	X(REMOVE_JOBS, WRITER, \
	  "WITH gone AS (DELETE FROM hapax.job WHERE id = ANY($1::int8[]) RETURNING id) " \
	  "DELETE FROM hapax.reconcile q USING gone g WHERE q.job = g.id AND q.job > 0") \
	X(PUT_QUESTIONS, WRITER, \
	  "INSERT INTO hapax.reconcile (id, rest, job, mark, sent, tries, in_a_row, first_said, " \
	  "ask_at, evidence, person, upstream, lane) SELECT n.*, '', '?' " \
	  "FROM unnest($1::uuid[], $2::uuid[], $3::int8[], $4::uuid[], $5::int8[], $6::int8[], " \
	  "$7::int8[], $8::int8[], $9::int8[], $10::int2[], $11::bool[]) AS n " \
	  "ON CONFLICT (id, job) DO UPDATE SET rest = excluded.rest, mark = excluded.mark, " \
	  "sent = excluded.sent, tries = excluded.tries, in_a_row = excluded.in_a_row, " \
	  "first_said = excluded.first_said, ask_at = excluded.ask_at, " \
	  "evidence = excluded.evidence, person = excluded.person") \
	X(REMOVE_QUESTIONS, WRITER, \
	  "WITH p AS (DELETE FROM hapax.provider WHERE id = ANY($1::uuid[])), " \
	  "k AS (DELETE FROM hapax.route_key WHERE id = ANY($1::uuid[])) " \
	  "DELETE FROM hapax.reconcile WHERE id = ANY($1::uuid[]) AND job = 0") \
	/* A job's name is taken for as long as another attempt of its operation may owe it  \
	 * again. */ \
	X(REAP_JOBS, WRITER, \
	  "WITH gone AS (DELETE FROM hapax.job WHERE id = ANY(ARRAY(SELECT j.id " \
	  "FROM hapax.job j WHERE j.state IN (3, 6) AND j.changed <= $1::int8 AND " \
	  "NOT EXISTS (SELECT 1 FROM hapax.operation o WHERE o.id = j.operation " \
	  "AND o.mark = j.mark AND o.state <> 3) ORDER BY j.changed LIMIT $2::int8 " \
	  "FOR UPDATE SKIP LOCKED)) RETURNING operation, id) " \
	  "DELETE FROM hapax.reconcile q USING gone g WHERE q.id = g.operation AND q.job = g.id") \
\
	/* Readers. REPLAYS: of the answers, at most 4 MiB, or the first one, however large  \
	 * it is (octet_length does not fetch it). */ \
	X(REPLAYS, READER, \
	  "SELECT s.*, CASE WHEN total <= 4194304 OR total = bytes THEN p.answer END, " HPX_PG_SQL_CLOCK \
	  " FROM (SELECT " HPX_PG_SQL_RECORD ", octet_length(o.answer) AS bytes, " \
	  "sum(octet_length(o.answer)) OVER (ROWS UNBOUNDED PRECEDING) AS total" HPX_PG_SQL_FROM \
	  "WHERE o.id = ANY($1::uuid[])) s JOIN hapax.operation p ON p.id = s.id") \
	X(FIND, READER, \
	  "SELECT " HPX_PG_SQL_RECORD ", " HPX_PG_SQL_DESCRIPTION ", o.answer" HPX_PG_SQL_FROM \
	  "WHERE o.id = $1::uuid AND o.rest = $2::uuid") \
	/* Reaped ones by their time; those that are there by when they are due, the latest    \
	 * first. In one statement, which sees one moment: an operation is a row, or an entry. \
	 * The first row says how long entries stay, and whether all that is due was looked at. */ \
	X(HISTORY, READER, \
	  "WITH d AS MATERIALIZED (SELECT ids FROM hapax.due WHERE at >= $1::int8 " \
	  "ORDER BY at DESC LIMIT $3::int8), " \
	  "x AS MATERIALIZED (SELECT DISTINCT e.id FROM (SELECT unnest(ids) AS id FROM d " \
	  "LIMIT $3::int8) e) " \
	  "SELECT NULL::uuid, NULL::uuid, NULL::uuid, (SELECT retention FROM hapax.history_rule WHERE number = 1), " \
	  "(SELECT count(*) FROM (SELECT unnest(ids) FROM d LIMIT $3::int8) l), 0::int8, 0::int8, 0, " \
	  "0::int2, '', '', '', '', '' " \
	  "UNION ALL (SELECT o.id, o.rest, o.mark, o.created, o.changed, o.expires, o.attempt, o.status, " \
	  "o.state, o.tenant, o.key, o.method, o.path, o.route FROM x JOIN hapax.operation o " \
	  "ON o.id = x.id WHERE o.state IN (2, 3) AND o.created >= $1::int8 AND o.created < $2::int8 " \
	  "AND o.expires > 0 AND " HPX_PG_SQL_READABLE ") " \
	  "UNION ALL (SELECT h.id, h.rest, h.mark, h.created, h.changed, 0::int8, h.attempt, h.status, " \
	  "h.state, h.tenant, h.key, h.method, h.path, h.route FROM hapax.history h " \
	  "WHERE h.created >= $1::int8 AND h.created < $2::int8 " \
	  "ORDER BY h.created DESC, h.seq DESC LIMIT $3::int8 + 1)") \
	X(RECIPE, READER, "SELECT text FROM hapax.recipe WHERE id = $1::uuid") \
	X(EVENTS, READER, \
	  "SELECT at, attempt, what, actor, reason, status FROM hapax.event " \
	  "WHERE id = $1::uuid AND rest = $2::uuid ORDER BY seq") \
	/* For people, the newest first: what is aside by the index of its state, what was   \
	 * completed and what is under way by the queues by time that have it. */ \
	X(LIST_ASIDE, READER, \
	  HPX_PG_SQL_LOOK("SELECT ARRAY[id] AS ids, changed AS at FROM hapax.aside " \
			  "WHERE state = $1::int8 AND changed >= $8::int8 ORDER BY changed DESC", \
			  "")) \
	X(LIST_COMPLETED, READER, \
	  HPX_PG_SQL_LOOK("SELECT ids, written AS at FROM hapax.due " \
			  "WHERE written > 0 AND written >= $8::int8 ORDER BY written DESC", \
			  "o.state = $1::int8 AND ")) \
	X(LIST_IN_PROGRESS, READER, \
	  HPX_PG_SQL_LOOK("SELECT ids, at FROM hapax.flight " \
			  "WHERE at >= $8::int8 ORDER BY at DESC", \
			  "o.state = $1::int8 AND ")) \
	/* The next rows by id, and the last of them: for whoever must see all. */ \
	X(WALK, READER, \
	  "WITH p AS MATERIALIZED (SELECT " HPX_PG_SQL_RECORD ", " HPX_PG_SQL_DESCRIPTION \
	  " FROM hapax.operation o LEFT JOIN LATERAL (SELECT e.token, e.until FROM hapax.lease e " \
	  "WHERE e.id = o.id LIMIT 1) l ON true " \
	  "WHERE o.id > $6::uuid ORDER BY o.id LIMIT $7::int8) " \
	  "SELECT o.*, t.n, t.last FROM (SELECT (SELECT count(*) FROM p) AS n, " \
	  "(SELECT id FROM p ORDER BY id DESC LIMIT 1) AS last) t " \
	  "LEFT JOIN p o ON ($1::int8 < 0 OR CASE WHEN " HPX_PG_SQL_READABLE " THEN o.state ELSE 4 END = $1::int8) AND " HPX_PG_SQL_WANTED HPX_PG_SQL_FAILED_BY("$8")) \
	/* What is aside; how many rows there are, by the statistics; and what is under way  \
	 * among the last batches. Of a small table (2 MiB) the last two are counted. */ \
	X(COUNTS, READER, \
	  "SELECT (SELECT count(*) FROM hapax.aside WHERE state = 2), " \
	  "(SELECT count(*) FROM hapax.aside WHERE state = 4), " \
	  "(SELECT count(*) FROM hapax.aside WHERE state = 5), " \
	  "(SELECT min(changed) FROM hapax.aside WHERE state = 4), " \
	  "CASE WHEN small.is THEN (SELECT count(*) FROM hapax.operation WHERE state = 1) " \
	  "ELSE (SELECT count(DISTINCT o.id) FROM (SELECT ids FROM hapax.flight " \
	  "ORDER BY at DESC LIMIT 256) f CROSS JOIN LATERAL unnest(f.ids) AS x (id) " \
	  "JOIN hapax.operation o ON o.id = x.id WHERE o.state = 1) END, " \
	  "CASE WHEN small.is THEN (SELECT count(*) FROM hapax.operation) " \
	  "ELSE coalesce(nullif(pg_stat_get_live_tuples('hapax.operation'::regclass), 0), " \
	  "(SELECT greatest(reltuples, 0)::bigint FROM pg_class " \
	  "WHERE oid = 'hapax.operation'::regclass)) END, " \
	  "pg_stat_get_tuples_updated('hapax.operation'::regclass), " \
	  "pg_stat_get_tuples_hot_updated('hapax.operation'::regclass) " \
	  "FROM (SELECT pg_relation_size('hapax.operation') < 2097152 AS is) small") \
	X(WATCH, READER, \
	  "SELECT id, rest FROM hapax.operation WHERE id = ANY($1::uuid[]) AND state IN (1, 5)") \
	/* $1: the time of the last query, $2: how far each looks back. The time is given     \
	 * where there is no event, too. */ \
	X(REMOVALS, READER, \
	  "SELECT " HPX_PG_SQL_CLOCK ", e.seq, e.id, e.rest FROM (VALUES (1)) one " \
	  "LEFT JOIN hapax.event e ON e.what IN (" HPX_SQL_REMOVAL_EVENTS ") AND e.at >= " \
	  "(SELECT least($1::int8, " HPX_PG_SQL_CLOCK ")) - $2::int8 " \
	  "ORDER BY e.seq LIMIT $3::int8") \
	X(PROVIDED, READER, \
	  "SELECT o.id, o.rest, o.mark FROM hapax.provider p JOIN hapax.operation o " \
	  "ON o.id = p.id AND o.mark = p.mark WHERE p.provider_id = " \
	  "convert_from($1::bytea, 'UTF8') COLLATE \"default\" LIMIT $2::int8") \
	X(KEYED, READER, \
	  "SELECT o.id, o.rest, k.mark, convert_to(k.amount, 'UTF8') FROM hapax.route_key k " \
	  "JOIN hapax.operation o ON o.id = k.id WHERE k.hash = $1::uuid LIMIT $2::int8") \
	X(KEYED_SINCE, READER, \
	  "SELECT keyed FROM hapax.lane WHERE upstream = convert_from($1::bytea, 'UTF8') " \
	  "COLLATE \"C\" AND name = convert_from($2::bytea, 'UTF8') COLLATE \"C\"") \
	/* A large table (64 MiB) is not searched before the route's retention ($4) is over. The  \
	 * scope begins with the upstream's name and a space. */ \
	X(UNKEYED, READER, \
	  "SELECT CASE WHEN pg_relation_size('hapax.operation') > 67108864 AND " HPX_PG_SQL_NOW("$5") " < $3::int8 + $4::int8 THEN true ELSE EXISTS (SELECT 1 " \
												      "FROM hapax.operation o WHERE o.created < $3::int8 AND " \
												      "o.route = convert_from($2::bytea, 'UTF8') COLLATE \"default\" AND " \
												      "position(convert_from($1::bytea, 'UTF8') || ' ' IN o.scope) = 1 AND " \
												      "NOT EXISTS (SELECT 1 FROM hapax.route_key k WHERE k.id = o.id)) END") \
	X(LIST_JOBS, READER, HPX_PG_SQL_JOB_LIST("")) \
	X(LIST_JOBS_BY_NUMBER, READER, HPX_PG_SQL_JOB_LIST("j.id = $5::int8 AND ")) \
	X(LIST_JOBS_BY_OPERATION, READER, HPX_PG_SQL_JOB_LIST("j.operation = $3::uuid AND ")) \
	X(LIST_JOBS_BY_PROVIDER, READER, \
	  HPX_PG_SQL_JOB_LIST("j.provider_id <> '' AND j.provider_id = " \
			      "convert_from($4::bytea, 'UTF8') COLLATE \"default\" AND ")) \
	/* Of an operation that is delivered later, its job's question. */ \
	X(NEXT_QUESTION, READER, \
	  "SELECT CASE WHEN q.sent > 0 THEN q.ask_at ELSE 0 END, q.person " \
	  "FROM hapax.operation o LEFT JOIN LATERAL (SELECT r.ask_at, " \
	  "r.sent, r.person FROM hapax.reconcile r LEFT JOIN hapax.job j " \
	  "ON j.id = r.job WHERE r.id = o.id AND r.mark = o.mark AND " \
	  "(r.job = 0 OR (j.answers AND j.state = 4)) ORDER BY r.job DESC LIMIT 1) q " \
	  "ON true WHERE o.id = $1::uuid AND o.state = 4") \
	X(COUNT_JOBS, READER, \
	  "SELECT (SELECT count(*) FROM hapax.job WHERE state = 1), " \
	  "(SELECT count(*) FROM hapax.job WHERE state = 2), " \
	  "(SELECT count(*) FROM hapax.job WHERE state IN (3, 6) AND state = 3), " \
	  "(SELECT count(*) FROM hapax.job WHERE state = 4), " \
	  "(SELECT count(*) FROM hapax.job WHERE state = 5), " \
	  "(SELECT count(*) FROM hapax.job WHERE state IN (3, 6) AND state = 6), " \
	  "(SELECT min(due) FROM hapax.job WHERE state = 1), " \
	  "(SELECT min(changed) FROM hapax.job WHERE state = 4), " /* A question leaves with the outcome that it is about. */ \
	  "(SELECT count(*) FROM hapax.reconcile WHERE person AND job = 0) + " \
	  "(SELECT count(*) FROM hapax.reconcile q JOIN hapax.job j " \
	  "ON j.id = q.job WHERE q.person AND q.job > 0 AND j.answers), " \
	  "(SELECT count(*) FROM hapax.reconcile WHERE person AND job > 0)") \
	/* Of this upstream ($1) and of nobody's in particular, one lane after the other,    \
	 * each with its first question: as many steps as there are lanes, whatever other    \
	 * services have in the same table. */ \
	X(LANES, READER, \
	  "WITH RECURSIVE lanes AS (SELECT u.name, n.lane, n.ask_at FROM " HPX_PG_SQL_UPSTREAMS("$1") " CROSS JOIN LATERAL " \
												      "(SELECT r.lane, r.ask_at FROM hapax.reconcile r " \
												      "WHERE NOT r.person AND r.ask_at > 0 AND r.upstream = u.name " \
												      "AND r.lane > '' ORDER BY r.lane, r.ask_at LIMIT 1) n " \
												      "UNION ALL SELECT l.name, n.lane, n.ask_at FROM lanes l " \
												      "CROSS JOIN LATERAL (SELECT r.lane, r.ask_at " \
												      "FROM hapax.reconcile r WHERE NOT r.person AND r.ask_at > 0 " \
												      "AND r.upstream = l.name AND r.lane > l.lane " \
												      "ORDER BY r.lane, r.ask_at LIMIT 1) n) " \
												      "SELECT convert_to(lane, 'UTF8'), min(ask_at) FROM lanes " \
												      "GROUP BY lane ORDER BY lane") \
	/* $2: how the clock is shifted, $3: nothing before this is looked at, $5: the        \
	 * upstream's name. */ \
	X(QUESTIONS_DUE, READER, \
	  "SELECT d.id, d.rest, d.job, d.evidence, d.ask_at, d.mark FROM " HPX_PG_SQL_UPSTREAMS("$5") " CROSS JOIN LATERAL " \
												      "(SELECT q.id, q.rest, q.job, q.evidence, q.ask_at, q.mark " \
												      "FROM hapax.reconcile q WHERE NOT q.person AND q.ask_at > 0 " \
												      "AND q.upstream = u.name AND " \
												      "q.lane = convert_from($1::bytea, 'UTF8') COLLATE \"C\" AND " \
												      "q.ask_at <= " HPX_PG_SQL_NOW("$2") " AND " \
																	  "q.ask_at >= $3::int8 ORDER BY q.ask_at LIMIT $4::int8) d " \
																	  "ORDER BY d.ask_at LIMIT $4::int8")

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
