-- The schema, whole, on one page. A file of an earlier number is refused: nothing
-- was released before this one. What a later release changes is a numbered step
-- of its own beside this file.
--
-- Times are milliseconds: created, changed and expires of the wall clock, until of
-- the boot clock. Numbers of states are those of the record (1 in_progress,
-- 2 failed_retryable, 3 completed, 4 unknown, 5 pending) and of a job (1 queued,
-- 2 sending, 3 done, 4 unknown, 5 dead, 6 discarded).
--
-- The file may be an application's own, with its tables beside these: each of
-- ours says whose it is, and user_version is left to the application.
--
-- The plain way of an operation (reserved, answered) is two rows of a generation:
-- a pair of tables, made by the template at the end of this page, that only grow and
-- that go as a whole when everything in them has expired. Everything else that can
-- become of an operation is a row of hapax_aside, which rules over the plain ones.

-- The generations. state: 1 open (reservations go into it), 2 closed, 3 dead (it is
-- being removed, and look-ups leave it out). class: the retention of its
-- operations, rounded up to a power of two; retention: the longest of them, as far as
-- is known. marked: attempts may be under way in it; settled: up to this number none
-- is, but those in hapax_lease. operations: how many rows, once it is closed;
-- expires: when to look whether all of it has expired; 0 while it is marked. moved: up
-- to this number rows have expired and left behind what was to be left of them (a
-- tombstone in another generation, an entry of hapax_history): they count for nothing
-- any more. oldest: nothing in it began before.
CREATE TABLE hapax_generation (
	number INTEGER PRIMARY KEY AUTOINCREMENT,
	class INTEGER NOT NULL,
	state INTEGER NOT NULL,
	marked INTEGER NOT NULL,
	opened INTEGER NOT NULL,
	closed INTEGER NOT NULL,
	retention INTEGER NOT NULL,
	operations INTEGER NOT NULL,
	settled INTEGER NOT NULL,
	expires INTEGER NOT NULL,
	moved INTEGER NOT NULL,
	oldest INTEGER NOT NULL,
	crc INTEGER NOT NULL
) STRICT;

-- One row: grows with every change of the list above, so that one look tells
-- whether it is still the list that was read.
CREATE TABLE hapax_generation_list (
	one INTEGER PRIMARY KEY CHECK (one = 1),
	version INTEGER NOT NULL
) STRICT;
INSERT INTO hapax_generation_list (one, version) VALUES (1, 1);

-- Which ids a closed generation may have: a Bloom filter of all of them.
CREATE TABLE hapax_filter (
	generation INTEGER PRIMARY KEY,
	bits BLOB NOT NULL,
	crc INTEGER NOT NULL
) STRICT;

-- The same ids exactly: eight bytes of each, in parts by the beginning of the ids.
-- part: 65,536 times the generation, and which of its parts. An id that the filter lets
-- pass and that is in none of these is new, whatever became of the index.
CREATE TABLE hapax_filter_part (
	part INTEGER PRIMARY KEY,
	ids BLOB NOT NULL,
	crc INTEGER NOT NULL
) STRICT;

-- What was found to be damaged in this file, by table; accepted: a person has said
-- that the rest goes on (`hapax repair`). Until then new keys are refused.
CREATE TABLE hapax_damage (
	name TEXT NOT NULL PRIMARY KEY,
	what TEXT NOT NULL,
	found INTEGER NOT NULL,
	accepted INTEGER NOT NULL
) STRICT;

-- Operations that did not go the plain way: failed, unknown, pending, later attempts
-- and their answers, recovery points. generation and number name the plain row under
-- this one, 0 where there is none: whoever removes this row removes that one.
--
-- `token` is the current attempt's right to write; `mark` is the hash of the
-- first attempt's, and with the id the reference that clients get. `when_lost`:
-- what becomes of a lost attempt (0 unknown, 1 resumed, 2 void); `tombstone`: how long
-- a completed one is known after its expiry; `kept`: whether the answer is stored whole,
-- 2 where the row is a tombstone, whose answer went at its expiry; `advanced`:
-- whether the current attempt committed a part of its work; `last_error`: what the last
-- attempt that did not end well came to ('' none: the plain ones have had none);
-- `point`: its last recovery point, with the data saved there. The checks are CRC-32: crc of the
-- record's columns and of the other three, text_crc of the texts for people,
-- point_crc of the point's data, answer_crc of headers and body.
CREATE TABLE hapax_aside (
	seq INTEGER PRIMARY KEY,
	id BLOB NOT NULL UNIQUE,
	generation INTEGER NOT NULL,
	number INTEGER NOT NULL,
	state INTEGER NOT NULL,
	attempt INTEGER NOT NULL,
	token BLOB NOT NULL,
	mark BLOB NOT NULL,
	fingerprint BLOB NOT NULL,
	recipe BLOB NOT NULL,
	tenant_hash BLOB NOT NULL,
	owner INTEGER NOT NULL,
	created INTEGER NOT NULL,
	changed INTEGER NOT NULL,
	expires INTEGER,
	retention INTEGER NOT NULL,
	tombstone INTEGER NOT NULL,
	status INTEGER NOT NULL,
	kept INTEGER NOT NULL,
	when_lost INTEGER NOT NULL,
	advanced INTEGER NOT NULL,
	last_error TEXT NOT NULL,
	point TEXT NOT NULL,
	text_crc INTEGER NOT NULL,
	point_crc INTEGER NOT NULL,
	answer_crc INTEGER NOT NULL,
	crc INTEGER NOT NULL,
	tenant TEXT NOT NULL,
	scope TEXT NOT NULL,
	key TEXT NOT NULL,
	method TEXT NOT NULL,
	path TEXT NOT NULL,
	route TEXT NOT NULL,
	point_data BLOB,
	headers BLOB,
	body BLOB
) STRICT;

-- Each is as small as the list it serves: the sweeper's, the reaper's, the
-- operator's, and one more so that states can be counted without reading rows.
CREATE INDEX hapax_aside_progress ON hapax_aside (owner) WHERE state = 1;
CREATE INDEX hapax_aside_expires ON hapax_aside (expires + iif(kept = 2, tombstone, 0))
	WHERE expires IS NOT NULL;
CREATE INDEX hapax_aside_unknown ON hapax_aside (changed) WHERE state = 4;
CREATE INDEX hapax_aside_failed ON hapax_aside (changed) WHERE state = 2;
CREATE INDEX hapax_aside_pending ON hapax_aside (expires) WHERE state = 5;
CREATE INDEX hapax_aside_copy ON hapax_aside (generation, number) WHERE generation > 0;

-- All operations, for people; with each generation, the keeper makes it anew over that
-- one too. place: plain or aside; lease_until: of the boot clock, of attempts whose lease
-- is in this file; ask_at: when an unknown outcome is asked about next.
CREATE VIEW hapax_operation AS SELECT id, state, attempt, status, created, changed, expires, tenant, scope, key, method, path, route, generation, 'aside' AS place, fingerprint, point, CASE kept WHEN 1 THEN body END AS body, (SELECT l.until FROM hapax_lease l WHERE o.state = 1 AND l.token = o.token AND l.id = o.id) AS lease_until, (SELECT min(q.ask_at) FROM hapax_reconcile q WHERE o.state = 4 AND q.id = o.id AND q.mark = o.mark AND q.person = 0 AND q.ask_at > 0 AND (q.job = 0 OR EXISTS (SELECT 1 FROM hapax_job j WHERE j.seq = q.job AND j.answers = 1 AND j.state = 4))) AS ask_at, last_error FROM hapax_aside o;

-- The same with the columns of the usual table of keys, times as text in UTC. locked_until
-- is NULL where the lease is in the server's memory; reconcile_after where nobody is asked
-- about it, or only a person can tell.
CREATE VIEW hapax_idempotency_keys AS SELECT
	lower(hex(o.id)) AS id, o.tenant, o.key, o.method, o.path,
	lower(hex(o.fingerprint)) AS fingerprint,
	CASE o.state WHEN 1 THEN 'in_progress' WHEN 2 THEN 'failed_retryable'
		WHEN 3 THEN 'completed' WHEN 5 THEN 'pending' ELSE 'unknown' END AS status,
	nullif(o.point, '') AS recovery_point,
	CASE o.state WHEN 3 THEN nullif(o.status, 0) END AS response_code,
	CASE o.state WHEN 3 THEN o.body END AS response_body,
	strftime('%Y-%m-%dT%H:%M:%fZ',
		(o.lease_until + (SELECT c.ahead FROM hapax_clock c)) / 1000.0, 'unixepoch') AS locked_until,
	strftime('%Y-%m-%dT%H:%M:%fZ', o.ask_at / 1000.0, 'unixepoch') AS reconcile_after,
	nullif(o.last_error, '') AS last_error,
	strftime('%Y-%m-%dT%H:%M:%fZ', o.created / 1000.0, 'unixepoch') AS created_at,
	CASE o.state WHEN 3 THEN
		strftime('%Y-%m-%dT%H:%M:%fZ', o.changed / 1000.0, 'unixepoch') END AS completed_at,
	strftime('%Y-%m-%dT%H:%M:%fZ', nullif(o.expires, 0) / 1000.0, 'unixepoch') AS expires_at
FROM hapax_operation o;

-- Leases of attempts that applications began, and renewals by applications of the
-- server's attempts, whose leases are in its memory. A lease counts for the attempt
-- with its token and no other. generation: where the attempt's plain row is; 0 where
-- the attempt is in hapax_aside.
CREATE TABLE hapax_lease (
	token BLOB NOT NULL,
	id BLOB NOT NULL,
	generation INTEGER NOT NULL,
	until INTEGER NOT NULL,
	PRIMARY KEY (token, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX hapax_lease_until ON hapax_lease (until);
CREATE INDEX hapax_lease_generation ON hapax_lease (generation) WHERE generation > 0;

-- What is left of finished operations, for people: what the reaper leaves behind of an
-- operation that it removes, and a key that is used again after its expiry. Nothing here
-- is read to decide anything.
CREATE TABLE hapax_history (
	seq INTEGER PRIMARY KEY,
	id BLOB NOT NULL,
	mark BLOB NOT NULL,
	state INTEGER NOT NULL,
	attempt INTEGER NOT NULL,
	status INTEGER NOT NULL,
	created INTEGER NOT NULL,
	changed INTEGER NOT NULL,
	tenant TEXT NOT NULL,
	key TEXT NOT NULL,
	method TEXT NOT NULL,
	path TEXT NOT NULL,
	route TEXT NOT NULL
) STRICT;
CREATE INDEX hapax_history_created ON hapax_history (created);

-- One row: how long an entry stays, counted from when its operation began; 0: none is
-- written. As the server that was started last was told.
CREATE TABLE hapax_history_rule (
	one INTEGER PRIMARY KEY CHECK (one = 1),
	retention INTEGER NOT NULL
) STRICT;
INSERT INTO hapax_history_rule (one, retention) VALUES (1, 0);

CREATE TABLE hapax_recipe (
	id BLOB NOT NULL PRIMARY KEY,
	text TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What happened to an operation, for people; it outlives the operation.
CREATE TABLE hapax_event (
	seq INTEGER PRIMARY KEY,
	id BLOB NOT NULL,
	at INTEGER NOT NULL,
	attempt INTEGER NOT NULL,
	what TEXT NOT NULL,
	actor TEXT NOT NULL,
	reason TEXT NOT NULL,
	status INTEGER NOT NULL
) STRICT;
CREATE INDEX hapax_event_id ON hapax_event (id);

-- One row: which boot the clocks were compared in, how far the wall clock was
-- ahead of the boot clock, the latest wall time seen, and whether expiry is
-- held because they parted.
CREATE TABLE hapax_clock (
	one INTEGER PRIMARY KEY CHECK (one = 1),
	boot TEXT NOT NULL,
	ahead INTEGER NOT NULL,
	seen INTEGER NOT NULL,
	held INTEGER NOT NULL
) STRICT;

-- Whom this file was served for: where the upstream of each name was last, so
-- that a server can tell of another address, or another name, than before.
CREATE TABLE hapax_upstream (
	name TEXT NOT NULL PRIMARY KEY,
	url TEXT NOT NULL,
	used INTEGER NOT NULL
) STRICT;

-- Which schema this is: the greatest number counts.
CREATE TABLE hapax_schema_version (
	version INTEGER PRIMARY KEY
) STRICT;

-- Deliveries owed to outside services, each named once per operation reference
-- (the operation's id and mark), and where each of them stands. The checks are CRC-32:
-- body_crc of the operation's id, the headers and the body; crc of that check and of all
-- other columns.
CREATE TABLE hapax_job (
	seq INTEGER PRIMARY KEY,
	operation BLOB NOT NULL,
	mark BLOB NOT NULL,
	name TEXT NOT NULL,
	target TEXT NOT NULL,
	method TEXT NOT NULL,
	path TEXT NOT NULL,
	headers TEXT NOT NULL,
	body BLOB NOT NULL,
	created INTEGER NOT NULL,
	state INTEGER NOT NULL DEFAULT 1,
	answers INTEGER NOT NULL DEFAULT 0,
	unsure INTEGER NOT NULL DEFAULT 0,
	attempt INTEGER NOT NULL DEFAULT 0,
	budget INTEGER NOT NULL DEFAULT 0,
	status INTEGER NOT NULL DEFAULT 0,
	token BLOB NOT NULL DEFAULT x'00000000000000000000000000000000',
	owner INTEGER NOT NULL DEFAULT 0,
	changed INTEGER NOT NULL DEFAULT 0,
	due INTEGER NOT NULL DEFAULT 0,
	lease_until INTEGER NOT NULL DEFAULT 0,
	first_sent INTEGER NOT NULL DEFAULT 0,
	resend_until INTEGER NOT NULL DEFAULT 0,
	provider_id TEXT NOT NULL DEFAULT '',
	body_crc INTEGER NOT NULL,
	crc INTEGER NOT NULL,
	UNIQUE (operation, mark, name)
) STRICT;

-- Jobs that could not be read when it was their turn: they count as unknown, are never
-- sent, and are shown to a person. Their rows stay as they are, because a damaged row
-- cannot be written without a look at indexes that may disagree with it.
CREATE TABLE hapax_job_unreadable (
	seq INTEGER PRIMARY KEY
) STRICT;

-- Each is as small as the list it serves: the deliverer's (one per target), the
-- sweeper's, the reconciler's and the operator's, the reaper's, a webhook's.
CREATE INDEX hapax_job_due ON hapax_job (target, due) WHERE state = 1;
CREATE INDEX hapax_job_sending ON hapax_job (lease_until) WHERE state = 2;
CREATE INDEX hapax_job_unknown ON hapax_job (changed) WHERE state = 4;
CREATE INDEX hapax_job_dead ON hapax_job (changed) WHERE state = 5;
CREATE INDEX hapax_job_finished ON hapax_job (state, changed) WHERE state IN (3, 6);
CREATE INDEX hapax_job_provider ON hapax_job (provider_id) WHERE provider_id <> '';

-- The provider's own id of what an operation did, as its application gave it: so that a
-- webhook finds the operation. It goes with the operation's row of hapax_aside, and
-- counts only for the same reference.
CREATE TABLE hapax_provider (
	id BLOB NOT NULL PRIMARY KEY,
	mark BLOB NOT NULL,
	provider_id TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX hapax_provider_provider_id ON hapax_provider (provider_id);

-- Operations of routes that are matched by the client's key, by the hash of upstream, route
-- and key; other routes have no row here. generation and number: the operation's plain row,
-- or 0 and the number of its row of hapax_aside where it never had one. Written with the
-- reservation, and removed with the record. amount: as the request has it, '' none.
CREATE TABLE hapax_route_key (
	generation INTEGER NOT NULL,
	number INTEGER NOT NULL,
	hash BLOB NOT NULL,
	id BLOB NOT NULL,
	mark BLOB NOT NULL,
	amount TEXT NOT NULL,
	PRIMARY KEY (generation, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX hapax_route_key_hash ON hapax_route_key (hash);

-- What the server's configuration says of each lane (see hapax_reconcile), for those
-- who have no configuration: hapax_settle of the library. settle_after and
-- confirm_after are in milliseconds, 0 where none is given. A lane that is configured
-- no more stays: what is unknown of it may still be settled. keyed: from when on every
-- reservation of the route has its row of hapax_route_key; 0: they have none.
CREATE TABLE hapax_lane (
	name TEXT NOT NULL PRIMARY KEY,
	settle_after INTEGER NOT NULL,
	confirm_after INTEGER NOT NULL,
	keyed INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What was asked and said about an outcome that nobody knows: of an operation
-- (job 0) or of one of its jobs. `evidence` is a ruling that came before there
-- was a question (1 applied, 2 declined, 0 none). A question is written with the
-- outcome that is lost, due at once: ask_at is 0 while there is none, sent is 0
-- until somebody has looked at it. The lane is whom to ask: the operation's
-- route, or 'target:' and the name of the job's target; '?' where there is none.
CREATE TABLE hapax_reconcile (
	id BLOB NOT NULL,
	mark BLOB NOT NULL,
	job INTEGER NOT NULL,
	lane TEXT NOT NULL,
	sent INTEGER NOT NULL,
	tries INTEGER NOT NULL,
	in_a_row INTEGER NOT NULL,
	first_said INTEGER NOT NULL,
	ask_at INTEGER NOT NULL,
	evidence INTEGER NOT NULL,
	person INTEGER NOT NULL,
	PRIMARY KEY (id, job)
) STRICT, WITHOUT ROWID;
CREATE INDEX hapax_reconcile_due ON hapax_reconcile (lane, ask_at) WHERE person = 0 AND ask_at > 0;
-- With what it is narrowed by: they are counted without a look at the rows.
CREATE INDEX hapax_reconcile_person ON hapax_reconcile (person, job) WHERE person = 1;
-- Of a job whose row cannot be read, only the number is known.
CREATE INDEX hapax_reconcile_job ON hapax_reconcile (job) WHERE job > 0;

-- The template of a generation; # is its number.
--
-- An operation's first attempt, appended when it is reserved. id is the first half of
-- the operation's id, rest the second; the mark is the hash of the token. crc is the
-- CRC-32 of all columns.
CREATE TABLE hapax_operation_# (
	seq INTEGER PRIMARY KEY,
	id BLOB NOT NULL,
	rest BLOB NOT NULL,
	token BLOB NOT NULL,
	fingerprint BLOB NOT NULL,
	recipe BLOB NOT NULL,
	tenant_hash BLOB NOT NULL,
	owner INTEGER NOT NULL,
	created INTEGER NOT NULL,
	retention INTEGER NOT NULL,
	tombstone INTEGER NOT NULL,
	when_lost INTEGER NOT NULL,
	tenant TEXT NOT NULL,
	scope TEXT NOT NULL,
	key TEXT NOT NULL,
	method TEXT NOT NULL,
	path TEXT NOT NULL,
	route TEXT NOT NULL,
	crc INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX hapax_id_# ON hapax_operation_# (id);

-- Its answer, appended under the same number: without one the attempt is in progress.
-- kept is 2 where the two rows are a tombstone: headers and body are empty.
-- crc is the CRC-32 of the operation's id and token and of all columns.
CREATE TABLE hapax_answer_# (
	seq INTEGER PRIMARY KEY,
	changed INTEGER NOT NULL,
	expires INTEGER NOT NULL,
	status INTEGER NOT NULL,
	kept INTEGER NOT NULL,
	headers BLOB NOT NULL,
	body BLOB NOT NULL,
	crc INTEGER NOT NULL
) STRICT;
