-- The tables, whole, on one page; functions.sql beside it has the functions and
-- triggers. A database of an earlier number is refused: nothing was released before
-- this one. What a later release changes is a numbered step of its own beside this
-- file.
--
-- Times are milliseconds since 1970 of the database's own clock, leases too: it is
-- the one clock that all gateways share. Numbers of states are those of the record
-- (1 in_progress, 2 failed_retryable, 3 completed, 4 unknown, 5 pending) and of a job
-- (1 queued, 2 sending, 3 done, 4 unknown, 5 dead, 6 discarded).
--
-- An operation's id is 32 bytes. Tables are keyed by the first half, as a uuid; the
-- second half, `rest`, stands beside it. A row with the same id and another rest is
-- another operation's, and is never taken for this one.
--
-- Every hot statement reaches its rows by the operation's id alone, and no table
-- points at another with a foreign key (which would lock the row it points at): all
-- of them can be distributed by id.

CREATE SCHEMA IF NOT EXISTS hapax;

-- A row is written twice in its life, by the reservation and by the answer. The
-- primary key is the only index and more than half of each page is left free, so that
-- the second version lies beside the first and touches no index (a HOT update). What
-- never changes stands in front: the log then holds only the rest of the new version.
--
-- `token` is the current attempt's right to write; `mark` is the hash of the first
-- attempt's (hapax.mark), and with the id the reference that clients get.
-- `revision` grows by one with every change of the row. `expires` is 0 where there is
-- no such time. `tombstone`: how long a completed one is known after its expiry; its
-- answer goes when it expires. `when_lost`: what becomes of a lost attempt (0 unknown, 1 resumed,
-- 2 void); `advanced`: whether the current attempt committed a part of its work;
-- `last_error`: what the last attempt that did not end well came to ('' none);
-- `point`: its last recovery point, with the data saved there.
--
-- `answer` is the stored answer: SHA-256 (32 bytes), length of the headers (4), headers,
-- body. The hash is over id, rest and all that follows it: an answer can only be read
-- as that of the operation it was stored for.
--
-- No CHECK: PostgreSQL reads each from its text anew in every statement, which took
-- half of the time that one row took. Whoever reads a row judges it (hapax.is_whole):
-- a row that is not whole counts as unknown, is never reaped, and is a person's to
-- settle.
CREATE TABLE hapax.operation (
	id uuid PRIMARY KEY,
	rest uuid NOT NULL,
	token uuid NOT NULL,
	mark uuid NOT NULL,
	recipe uuid NOT NULL,
	created bigint NOT NULL,
	owner bigint NOT NULL,
	retention bigint NOT NULL,
	tombstone bigint NOT NULL DEFAULT 0,
	fingerprint bytea NOT NULL,
	tenant_hash bytea NOT NULL,
	-- For people.
	tenant text NOT NULL,
	scope text NOT NULL,
	key text NOT NULL,
	method text NOT NULL,
	path text NOT NULL,
	route text NOT NULL,
	-- What changes.
	lease_until bigint NOT NULL,
	expires bigint NOT NULL DEFAULT 0,
	changed bigint NOT NULL,
	attempt bigint NOT NULL,
	revision integer NOT NULL DEFAULT 1,
	status integer NOT NULL DEFAULT 0,
	when_lost smallint NOT NULL DEFAULT 0,
	state smallint NOT NULL,
	kept boolean NOT NULL DEFAULT false,
	advanced boolean NOT NULL DEFAULT false,
	last_error text NOT NULL DEFAULT '',
	point text NOT NULL DEFAULT '',
	point_data bytea,
	answer bytea
) WITH (fillfactor = 40, autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE hapax.operation ALTER COLUMN answer SET STORAGE EXTERNAL;

-- Attempts under way, one row for each batch that began some: when `at`, the earliest
-- end of their leases, has come, the sweeper looks at them. An attempt that goes on
-- then is put into a new row. An id is here as long as its attempt is in progress.
CREATE TABLE hapax.flight (
	at bigint NOT NULL,
	ids uuid[] NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE hapax.flight ALTER COLUMN ids SET STORAGE EXTERNAL;
CREATE INDEX flight_at ON hapax.flight (at);

-- What expires, and what is abandoned, one row for each batch that said so: when `at`,
-- the earliest of those times, has come, the reaper looks at them. An id is here as
-- long as its row has such a time. `written`: when the batch was written, 0 where a row
-- was only put back; by it people find what was completed last, without an index on
-- hapax.operation.
CREATE TABLE hapax.due (
	at bigint NOT NULL,
	ids uuid[] NOT NULL,
	written bigint NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000)::bigint
) WITH (autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE hapax.due ALTER COLUMN ids SET STORAGE EXTERNAL;
CREATE INDEX due_at ON hapax.due (at);
CREATE INDEX due_written ON hapax.due (written) WHERE written > 0;

-- What is left of finished operations, for people: what the reaper leaves behind of an
-- operation that it removes, and a key that is used again after its expiry. Nothing here
-- is read to decide anything.
CREATE TABLE hapax.history (
	seq bigint GENERATED ALWAYS AS IDENTITY,
	id uuid NOT NULL,
	rest uuid NOT NULL,
	mark uuid NOT NULL,
	created bigint NOT NULL,
	changed bigint NOT NULL,
	attempt bigint NOT NULL,
	status integer NOT NULL,
	state smallint NOT NULL,
	tenant text NOT NULL,
	key text NOT NULL,
	method text NOT NULL,
	path text NOT NULL,
	route text NOT NULL,
	PRIMARY KEY (created, seq)
);

-- How long an entry stays, counted from when its operation began; 0: none is written. As
-- the gateway that was started last was told.
CREATE TABLE hapax.history_rule (
	number smallint PRIMARY KEY, -- there is one
	retention bigint NOT NULL
);
INSERT INTO hapax.history_rule VALUES (1, 0);

-- Whatever is neither under way nor completed, for lists and counts: failed_retryable,
-- unknown, pending; and what cannot be read, as unknown. A trigger keeps it.
CREATE TABLE hapax.aside (
	id uuid PRIMARY KEY,
	state smallint NOT NULL,
	changed bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX aside_state ON hapax.aside (state, changed);

-- The look over the whole table that finds what nobody wrote down (somebody changed a
-- row by hand, a page was damaged): when the last one began, and how far this one is.
CREATE TABLE hapax.slow_round (
	number smallint PRIMARY KEY, -- there is one
	began bigint NOT NULL,
	reached uuid -- NULL: none is under way
);
INSERT INTO hapax.slow_round VALUES (1, 0, NULL);

-- Renewals, apart from the operation, in a table that no application locks: a short
-- request never writes here. The later of the two ends counts, as long as the token is
-- the operation's.
CREATE TABLE hapax.lease (
	id uuid PRIMARY KEY,
	token uuid NOT NULL,
	until bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- How a fingerprint was made: UTF-8 text, kept as bytes because a fingerprint must come
-- out the same for ever.
CREATE TABLE hapax.recipe (
	id uuid PRIMARY KEY,
	text bytea NOT NULL
);

-- What happened to an operation, for people; it outlives the operation.
CREATE TABLE hapax.event (
	seq bigint GENERATED ALWAYS AS IDENTITY,
	id uuid NOT NULL,
	rest uuid NOT NULL,
	at bigint NOT NULL,
	attempt bigint NOT NULL,
	what text NOT NULL,
	actor text NOT NULL,
	reason text NOT NULL,
	status integer NOT NULL,
	PRIMARY KEY (id, seq)
);
CREATE INDEX event_at ON hapax.event (at);

-- What people removed or settled, by time: every gateway that keeps answers in memory
-- looks at the last minutes of it a few times a second. As small as that list is; no
-- other event pays for it.
CREATE INDEX event_removal ON hapax.event (at)
	WHERE what IN ('forgotten', 'resolved_applied', 'resolved_not_applied', 'extended');

-- Which schema this is: the greatest number counts. Written by whoever applies it.
CREATE TABLE hapax.schema_version (
	version integer PRIMARY KEY,
	applied timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Deliveries owed to outside services, each named once per operation reference (the
-- operation's id and mark), and where each of them stands.
CREATE TABLE hapax.job (
	id bigint GENERATED ALWAYS AS IDENTITY,
	operation uuid NOT NULL,
	rest uuid NOT NULL,
	mark uuid NOT NULL,
	name text NOT NULL CHECK (length(name) BETWEEN 1 AND 255),
	target text NOT NULL CHECK (length(target) BETWEEN 1 AND 255),
	method text NOT NULL CHECK (method ~ '^[A-Z]{1,32}$'),
	path text NOT NULL CHECK (path ~ '^/[!-~]*$' AND length(path) <= 8192),
	headers text NOT NULL CHECK (octet_length(headers) <= 65536),
	body bytea NOT NULL CHECK (octet_length(body) <= 16777216),
	created bigint NOT NULL,
	state smallint NOT NULL DEFAULT 1 CHECK (state BETWEEN 1 AND 6),
	answers boolean NOT NULL DEFAULT false,
	unsure boolean NOT NULL DEFAULT false,
	attempt bigint NOT NULL DEFAULT 0 CHECK (attempt BETWEEN 0 AND 4294967295),
	budget bigint NOT NULL DEFAULT 0 CHECK (budget BETWEEN 0 AND attempt),
	status integer NOT NULL DEFAULT 0 CHECK (status BETWEEN 0 AND 999),
	token uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
	owner bigint NOT NULL DEFAULT 0,
	changed bigint NOT NULL DEFAULT 0,
	due bigint NOT NULL DEFAULT 0,
	lease_until bigint NOT NULL DEFAULT 0,
	first_sent bigint NOT NULL DEFAULT 0,
	resend_until bigint NOT NULL DEFAULT 0,
	provider_id text NOT NULL DEFAULT '' CHECK (provider_id ~ '^[!-~]{0,127}$'),
	PRIMARY KEY (operation, mark, name)
);

-- Each is as small as the list it serves: the deliverer's (one per target), the
-- sweeper's, the reconciler's and the operator's, the reaper's, a webhook's.
CREATE INDEX job_due ON hapax.job (target, due) WHERE state = 1;
CREATE INDEX job_sending ON hapax.job (lease_until) WHERE state = 2;
CREATE INDEX job_unknown ON hapax.job (changed) WHERE state = 4;
CREATE INDEX job_dead ON hapax.job (changed) WHERE state = 5;
CREATE INDEX job_finished ON hapax.job (changed) WHERE state IN (3, 6);
CREATE INDEX job_provider ON hapax.job (provider_id) WHERE provider_id <> '';
CREATE UNIQUE INDEX job_number ON hapax.job (id);

-- The provider's own id of what an operation did, as its application gave it: so that a
-- webhook finds the operation. It goes with the operation, and counts only for the same
-- reference.
CREATE TABLE hapax.provider (
	id uuid PRIMARY KEY,
	mark uuid NOT NULL,
	provider_id text NOT NULL
);
CREATE INDEX provider_provider_id ON hapax.provider (provider_id);

-- Operations of routes that are matched by the client's key, by the hash of upstream, route
-- and key; other routes have no row here. Written with the reservation, and removed with
-- the operation. amount: as the request has it, '' none.
CREATE TABLE hapax.route_key (
	id uuid PRIMARY KEY,
	mark uuid NOT NULL,
	hash uuid NOT NULL,
	amount text NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX route_key_hash ON hapax.route_key (hash);

-- What the gateways' configuration says of each lane (see reconcile), for those who have
-- no configuration: hapax.settle. settle_after and confirm_after are in milliseconds, 0
-- where none is given. A lane that is configured no more stays: what is unknown of it may
-- still be settled. keyed: from when on every reservation of the route has its row of
-- route_key; 0: they have none.
CREATE TABLE hapax.lane (
	upstream text COLLATE "C" NOT NULL,
	name text COLLATE "C" NOT NULL,
	settle_after bigint NOT NULL,
	confirm_after bigint NOT NULL,
	keyed bigint NOT NULL DEFAULT 0,
	PRIMARY KEY (upstream, name)
);

-- What was asked and said about an outcome that nobody knows: of an operation (job 0)
-- or of one of its jobs. `evidence` is a ruling that came before there was a question
-- (1 applied, 2 declined, 0 none). A question is written with the outcome that is lost,
-- due at once: ask_at is 0 while there is none, sent is 0 until somebody has looked at
-- it. The lane is whom to ask: the operation's route, or 'target:' and the name of the
-- job's target; '?' where there is none. The upstream says whose gateways ask: '' for
-- jobs and what applications began, which are everybody's, else the name that the scope
-- begins with. Whoever looks steps over nobody else's.
CREATE TABLE hapax.reconcile (
	id uuid NOT NULL,
	rest uuid NOT NULL,
	mark uuid NOT NULL,
	job bigint NOT NULL,
	upstream text COLLATE "C" NOT NULL,
	lane text COLLATE "C" NOT NULL,
	sent bigint NOT NULL,
	tries bigint NOT NULL,
	in_a_row bigint NOT NULL,
	first_said bigint NOT NULL,
	ask_at bigint NOT NULL,
	evidence smallint NOT NULL,
	person boolean NOT NULL,
	PRIMARY KEY (id, job)
) WITH (autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX reconcile_due ON hapax.reconcile (upstream, lane, ask_at)
	WHERE NOT person AND ask_at > 0;
CREATE INDEX reconcile_person ON hapax.reconcile (job) WHERE person;
-- Of a job whose row cannot be read, only the number is known.
CREATE INDEX reconcile_job ON hapax.reconcile (job) WHERE job > 0;

-- All operations with the columns of the usual table of keys, for people. It calls no
-- function of ours, so that whoever may read it needs no other right; what a row has is
-- judged as hapax.is_whole does, and a body is shown as it lies there, unchecked.
-- locked_until is the end of the lease; reconcile_after is NULL where nobody is asked
-- about it, or only a person can tell.
CREATE VIEW hapax.idempotency_keys AS SELECT
	translate(o.id::text || o.rest::text, '-', '') AS id,
	o.tenant, o.key, o.method, o.path, encode(o.fingerprint, 'hex') AS fingerprint,
	s.status, nullif(o.point, '') AS recovery_point,
	CASE s.status WHEN 'completed' THEN nullif(o.status, 0) END AS response_code,
	CASE WHEN s.status = 'completed' AND o.kept AND octet_length(o.answer) >= 36
		THEN substr(o.answer, 37 + least(octet_length(o.answer),
			('x' || encode(substr(o.answer, 33, 4), 'hex'))::bit(32)::bigint)::integer)
		END AS response_body,
	CASE s.status WHEN 'in_progress' THEN to_timestamp(greatest(o.lease_until,
		(SELECT l.until FROM hapax.lease l WHERE l.id = o.id AND l.token = o.token))
		/ 1000.0) END AS locked_until,
	CASE s.status WHEN 'unknown' THEN to_timestamp((SELECT min(q.ask_at)
		FROM hapax.reconcile q LEFT JOIN hapax.job j ON j.id = q.job
		WHERE q.id = o.id AND q.mark = o.mark AND NOT q.person AND q.ask_at > 0
		AND (q.job = 0 OR (j.answers AND j.state = 4))) / 1000.0) END AS reconcile_after,
	nullif(o.last_error, '') AS last_error,
	to_timestamp(o.created / 1000.0) AS created_at,
	CASE s.status WHEN 'completed' THEN to_timestamp(o.changed / 1000.0) END AS completed_at,
	to_timestamp(nullif(o.expires, 0) / 1000.0) AS expires_at
FROM hapax.operation o CROSS JOIN LATERAL (SELECT CASE WHEN o.attempt NOT BETWEEN 1 AND 4294967295
	OR octet_length(o.fingerprint) <> 32 OR octet_length(o.tenant_hash) <> 32
	OR o.expires < 0 OR o.retention < 0 OR o.status NOT BETWEEN 0 AND 999
	OR o.when_lost NOT BETWEEN 0 AND 2 OR o.point !~ '^[!-~]{0,63}$' THEN 'unknown'
	ELSE CASE o.state WHEN 1 THEN 'in_progress' WHEN 2 THEN 'failed_retryable'
		WHEN 3 THEN 'completed' WHEN 5 THEN 'pending' ELSE 'unknown' END END AS status) s;
