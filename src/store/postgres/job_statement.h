/* The statements of the outbox. Whoever holds an operation's row holds the
 * question about it (reconcile, job 0) too, and whoever holds a job's row the
 * question about that: nobody ever waits for a row of reconcile. Rows that
 * somebody else has locked are left out, never waited for. */
#ifndef HPX_STORE_POSTGRES_JOB_STATEMENT_H
#define HPX_STORE_POSTGRES_JOB_STATEMENT_H

/* The columns of a job; job_row.c reads them in this order. */
#define HPX_PG_SQL_JOB \
	"j.id, j.operation, j.mark, j.state, j.answers, j.unsure, " \
	"j.attempt, j.budget, j.status, j.token, j.owner, j.created, " \
	"j.changed, j.due, j.lease_until, j.first_sent, j.resend_until, " \
	"j.provider_id, j.name, j.target, j.method, j.path, j.headers"
/* Where a question stands; after the job's columns and its body. */
#define HPX_PG_SQL_QUESTION \
	"q.mark, q.sent, q.tries, q.in_a_row, q.first_said, q.ask_at, " \
	"q.evidence, q.person"

/* A time of the database's clock, shifted by a parameter: asked once, so that
 * an index can be searched with it. */
#define HPX_PG_SQL_NOW(shift) "(SELECT " HPX_PG_SQL_CLOCK " + " shift "::int8)"

/* The operations that a look is about: by their own ids ($2), and those whose
 * answer the jobs ($1) bring. */
#define HPX_PG_SQL_JOB_OPERATIONS(answering) \
	"o.id = ANY($2::bytea[] || ARRAY(SELECT a.operation " \
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
	"($3::bytea IS NULL OR j.operation = $3::bytea) AND " \
	"($4::bytea IS NULL OR j.provider_id = " \
	"convert_from($4::bytea, 'UTF8')) AND " \
	"($5::int8 = 0 OR j.id = $5::int8) AND " \
	"($6::int8 = 0 OR j.id < $6::int8) " \
	"ORDER BY j.id DESC LIMIT $7::int8"

/* X(name, who uses it: WRITER or READER, SQL) */
#define HPX_PG_JOB_LIST(X) \
	/* A look: the operation's row first, then the job's. */ \
	X(LOCK_OPERATIONS, WRITER, "SELECT o.id FROM hapax.operation o WHERE " HPX_PG_SQL_JOB_OPERATIONS(" AND a.answers") " ORDER BY o.id FOR UPDATE SKIP LOCKED") \
	X(LOCK_JOBS, WRITER, "SELECT id FROM hapax.job " \
			     "WHERE id = ANY($1::int8[]) ORDER BY id " \
			     "FOR UPDATE SKIP LOCKED") \
	X(READ_JOBS, WRITER, "SELECT " HPX_PG_SQL_JOB ", CASE WHEN $2::int8 = 1 " \
			     "THEN j.body ELSE '' END, " HPX_PG_SQL_QUESTION " FROM hapax.job j LEFT JOIN hapax.reconcile q " \
			     "ON q.id = j.operation AND q.job = j.id " \
			     "WHERE j.id = ANY($1::int8[])") \
	X(READ_OPERATIONS, WRITER, "SELECT " HPX_PG_SQL_RECORD ", " HPX_PG_SQL_DESCRIPTION ", " HPX_PG_SQL_QUESTION HPX_PG_SQL_FROM "LEFT JOIN hapax.reconcile q " \
				   "ON q.id = o.id AND q.job = 0 AND q.mark = o.mark WHERE " HPX_PG_SQL_JOB_OPERATIONS("")) \
	X(ANSWERING, WRITER, "SELECT j.id FROM hapax.operation o " \
			     "JOIN hapax.job j ON j.operation = o.id AND " \
			     "j.mark = o.mark AND j.answers " \
			     "WHERE o.id = $1::bytea AND o.state <> 3 " \
			     "ORDER BY j.id LIMIT 1") \
	/* The heads of their operations' queues that are due within a        \
	 * window, so many per target. */ \
	X(CLAIM, WRITER, "SELECT " HPX_PG_SQL_JOB ", j.body FROM " \
			 "unnest($1::text[], $2::int8[]) AS c (target, room) " \
			 "CROSS JOIN LATERAL (SELECT * FROM hapax.job d " \
			 "WHERE d.state = 1 AND d.target = c.target AND " \
			 "d.due > " HPX_PG_SQL_NOW("$3") " AND " \
							 "d.due <= " HPX_PG_SQL_NOW("$4") " AND NOT EXISTS " \
											  "(SELECT 1 FROM hapax.job e WHERE e.operation = d.operation " \
											  "AND e.mark = d.mark AND e.id < d.id " \
											  "AND e.state NOT IN (3, 6)) ORDER BY d.due LIMIT c.room " \
											  "FOR UPDATE SKIP LOCKED) j") \
	/* What this very claim took, where its commit was not heard of. */ \
	X(CLAIMED, WRITER, "SELECT " HPX_PG_SQL_JOB ", j.body " \
			   "FROM hapax.job j WHERE j.state = 2 AND j.lease_until > " HPX_PG_SQL_NOW("$2") " AND j.token = $1::bytea") \
	X(LOST_JOBS, WRITER, "SELECT id FROM hapax.job WHERE state = 2 AND " \
			     "lease_until <= " HPX_PG_SQL_NOW("$1") " ORDER BY lease_until LIMIT $2::int8") \
	/* Of several operations; without a lock. */ \
	X(ANSWERING_ALL, WRITER, "SELECT o.id, min(j.id) " \
				 "FROM hapax.operation o JOIN hapax.job j " \
				 "ON j.operation = o.id AND j.mark = o.mark AND j.answers " \
				 "WHERE o.id = ANY($1::bytea[]) AND o.state <> 3 " \
				 "GROUP BY o.id") \
	/* Questions that are due, and about nothing that is unknown. */ \
	X(END_QUESTIONS, WRITER, "DELETE FROM hapax.reconcile WHERE " \
				 "ctid = ANY(ARRAY(SELECT q.ctid " \
				 "FROM unnest($1::bytea[], $2::int8[]) AS n (id, job) " \
				 "JOIN hapax.reconcile q ON q.id = n.id AND q.job = n.job " \
				 "WHERE NOT q.person AND q.ask_at > 0 AND CASE q.job " \
				 "WHEN 0 THEN (SELECT o.state FROM hapax.operation o " \
				 "WHERE o.id = q.id AND o.mark = q.mark) " \
				 "ELSE (SELECT j.state FROM hapax.job j WHERE j.id = q.job " \
				 "AND j.operation = q.id AND j.mark = q.mark) END " \
				 "IS DISTINCT FROM 4 FOR UPDATE OF q SKIP LOCKED))") \
	X(OVERDUE, WRITER, "SELECT o.id, j.id FROM hapax.operation o " \
			   "LEFT JOIN hapax.job j ON j.operation = o.id " \
			   "AND j.mark = o.mark AND j.answers WHERE o.state = 5 AND " \
			   "o.expires <= " HPX_PG_SQL_NOW("$1") " ORDER BY o.expires LIMIT $2::int8") \
	/* Only beside the very operation that it was accepted with: one that \
	 * another gateway inserted first has a job of its own. What is there \
	 * already moves as a requeued job does. */ \
	X(PUT_JOBS, WRITER, "INSERT INTO hapax.job AS j (operation, mark, " \
			    "name, target, method, path, headers, body, created, " \
			    "changed, due, answers) SELECT n.operation, n.mark, n.name, " \
			    "n.target, n.method, n.path, n.headers, n.body, n.at, n.at, " \
			    "n.at, true FROM unnest($1::bytea[], $2::bytea[], $3::text[], " \
			    "$4::text[], $5::text[], $6::text[], $7::text[], " \
			    "$8::bytea[], $9::int8[]) AS n (operation, mark, name, " \
			    "target, method, path, headers, body, at) " \
			    "JOIN hapax.operation o ON o.id = n.operation " \
			    "AND o.mark = n.mark ORDER BY n.operation " \
			    "ON CONFLICT (operation, mark, name) DO UPDATE SET " \
			    "target = excluded.target, method = excluded.method, " \
			    "path = excluded.path, headers = excluded.headers, " \
			    "body = excluded.body, " \
			    "state = 1, unsure = false, budget = j.attempt, " \
			    "token = '\\x00000000000000000000000000000000', " \
			    "changed = excluded.changed, due = excluded.due " \
			    "WHERE j.state IN (4, 5, 6)") \
	X(UPDATE_JOBS, WRITER, "UPDATE hapax.job j SET state = n.state, " \
			       "unsure = n.unsure, attempt = n.attempt, budget = n.budget, " \
			       "status = n.status, token = n.token, owner = n.owner, " \
			       "changed = n.changed, due = n.due, " \
			       "lease_until = n.lease_until, first_sent = n.first_sent, " \
			       "resend_until = n.resend_until, " \
			       "provider_id = n.provider_id FROM unnest($1::int8[], " \
			       "$2::int2[], $3::bool[], $4::int8[], $5::int8[], $6::int4[], " \
			       "$7::bytea[], $8::int8[], $9::int8[], $10::int8[], " \
			       "$11::int8[], $12::int8[], $13::int8[], $14::text[]) AS n " \
			       "(id, state, unsure, attempt, budget, status, token, owner, " \
			       "changed, due, lease_until, first_sent, resend_until, " \
			       "provider_id) WHERE j.id = n.id") \
	X(PUT_QUESTIONS, WRITER, "INSERT INTO hapax.reconcile (id, job, " \
				 "mark, sent, tries, in_a_row, first_said, ask_at, evidence, " \
				 "person, upstream, lane) SELECT n.*, '', '?' " \
				 "FROM unnest($1::bytea[], $2::int8[], " \
				 "$3::bytea[], $4::int8[], $5::int8[], $6::int8[], $7::int8[], " \
				 "$8::int8[], $9::int2[], $10::bool[]) AS n " \
				 "ON CONFLICT (id, job) DO UPDATE SET mark = excluded.mark, " \
				 "sent = excluded.sent, tries = excluded.tries, " \
				 "in_a_row = excluded.in_a_row, " \
				 "first_said = excluded.first_said, " \
				 "ask_at = excluded.ask_at, evidence = excluded.evidence, " \
				 "person = excluded.person") \
	X(REMOVE_QUESTIONS, WRITER, "DELETE FROM hapax.reconcile " \
				    "WHERE id = ANY($1::bytea[]) AND job = 0") \
	/* A job's name is taken for as long as another attempt of its        \
	 * operation may owe it again. */ \
	X(REAP_JOBS, WRITER, "WITH gone AS (DELETE FROM hapax.job " \
			     "WHERE id = ANY(ARRAY(SELECT j.id FROM hapax.job j " \
			     "WHERE j.state IN (3, 6) AND j.changed <= $1::int8 AND " \
			     "NOT EXISTS (SELECT 1 FROM hapax.operation o " \
			     "WHERE o.id = j.operation AND o.mark = j.mark AND " \
			     "o.state <> 3) ORDER BY j.changed LIMIT $2::int8 " \
			     "FOR UPDATE SKIP LOCKED)) RETURNING operation, id) " \
			     "DELETE FROM hapax.reconcile q USING gone g " \
			     "WHERE q.id = g.operation AND q.job = g.id") \
	X(LIST_JOBS, READER, HPX_PG_SQL_JOB_LIST("")) \
	X(LIST_JOBS_BY_NUMBER, READER, HPX_PG_SQL_JOB_LIST("j.id = $5::int8 AND ")) \
	X(LIST_JOBS_BY_OPERATION, READER, HPX_PG_SQL_JOB_LIST("j.operation = $3::bytea AND ")) \
	X(LIST_JOBS_BY_PROVIDER, READER, HPX_PG_SQL_JOB_LIST("j.provider_id <> '' AND j.provider_id = " \
							     "convert_from($4::bytea, 'UTF8') COLLATE \"default\" AND ")) \
	/* Of an operation that is delivered later, its job's question. */ \
	X(NEXT_QUESTION, READER, "SELECT CASE WHEN q.sent > 0 " \
				 "THEN q.ask_at ELSE 0 END, q.person " \
				 "FROM hapax.operation o LEFT JOIN LATERAL (SELECT r.ask_at, " \
				 "r.sent, r.person FROM hapax.reconcile r LEFT JOIN hapax.job j " \
				 "ON j.id = r.job WHERE r.id = o.id AND r.mark = o.mark AND " \
				 "(r.job = 0 OR (j.answers AND j.state = 4)) " \
				 "ORDER BY r.job DESC LIMIT 1) q " \
				 "ON true WHERE o.id = $1::bytea AND o.state = 4") \
	X(COUNT_JOBS, READER, "SELECT " \
			      "(SELECT count(*) FROM hapax.job WHERE state = 1), " \
			      "(SELECT count(*) FROM hapax.job WHERE state = 2), " \
			      "(SELECT count(*) FROM hapax.job WHERE state IN (3, 6) " \
			      "AND state = 3), " \
			      "(SELECT count(*) FROM hapax.job WHERE state = 4), " \
			      "(SELECT count(*) FROM hapax.job WHERE state = 5), " \
			      "(SELECT count(*) FROM hapax.job WHERE state IN (3, 6) " \
			      "AND state = 6), " \
			      "(SELECT min(due) FROM hapax.job WHERE state = 1), " \
			      "(SELECT min(changed) FROM hapax.job WHERE state = 4), " /* A question leaves with the outcome that it is about. */ \
			      "(SELECT count(*) FROM hapax.reconcile WHERE person " \
			      "AND job = 0) + " \
			      "(SELECT count(*) FROM hapax.reconcile q JOIN hapax.job j " \
			      "ON j.id = q.job WHERE q.person AND q.job > 0 AND " \
			      "j.answers), " \
			      "(SELECT count(*) FROM hapax.reconcile WHERE person " \
			      "AND job > 0)") \
	/* Of this upstream ($1) and of nobody's in particular, one lane after  \
	 * the other, each with its first question: as many steps as there are \
	 * lanes, whatever other services have in the same table. */ \
	X(LANES, READER, "WITH RECURSIVE lanes AS (SELECT u.name, n.lane, " \
			 "n.ask_at FROM " HPX_PG_SQL_UPSTREAMS("$1") " CROSS JOIN LATERAL " \
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
	/* $2: how the clock is shifted, $3: nothing before this is looked at,  \
	 * $5: the upstream's name. */ \
	X(QUESTIONS_DUE, READER, "SELECT d.id, d.job, d.evidence, d.ask_at, " \
				 "d.mark FROM " HPX_PG_SQL_UPSTREAMS("$5") " CROSS JOIN LATERAL " \
									   "(SELECT q.id, q.job, q.evidence, q.ask_at, q.mark " \
									   "FROM hapax.reconcile q WHERE NOT q.person AND q.ask_at > 0 " \
									   "AND q.upstream = u.name AND " \
									   "q.lane = convert_from($1::bytea, 'UTF8') COLLATE \"C\" AND " \
									   "q.ask_at <= " HPX_PG_SQL_NOW("$2") " AND " \
													       "q.ask_at >= $3::int8 ORDER BY q.ask_at LIMIT $4::int8) d " \
													       "ORDER BY d.ask_at LIMIT $4::int8")

#endif
