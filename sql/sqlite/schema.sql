-- The schema, whole, on one page. A file of an earlier number is refused: nothing
-- was released before this one. What a later release changes is a numbered step
-- of its own beside this file.
--
-- Times are milliseconds: created, changed and expires of the wall clock,
-- lease_until of the boot clock. Numbers of states are those of the record
-- (1 in_progress, 2 failed_retryable, 3 completed, 4 unknown, 5 pending) and of
-- a job (1 queued, 2 sending, 3 done, 4 unknown, 5 dead, 6 discarded).
--
-- The file may be an application's own, with its tables beside these: each of
-- ours says whose it is, and user_version is left to the application.

-- A rowid table with a unique 32-byte BLOB: rows are appended, and only the
-- small index of ids is written at random places.
--
-- `token` is the current attempt's right to write; `mark` is the hash of the
-- first attempt's, and with the id the reference that clients get. `when_lost`:
-- what becomes of a lost attempt (0 unknown, 1 resumed, 2 void); `advanced`:
-- whether the current attempt committed a part of its work; `point`: its last
-- recovery point, with the data saved there.
CREATE TABLE hapax_operation (
	seq INTEGER PRIMARY KEY,
	id BLOB NOT NULL UNIQUE,
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
	lease_until INTEGER NOT NULL,
	status INTEGER NOT NULL,
	kept INTEGER NOT NULL,
	-- For people.
	tenant TEXT NOT NULL,
	scope TEXT NOT NULL,
	key TEXT NOT NULL,
	method TEXT NOT NULL,
	path TEXT NOT NULL,
	route TEXT NOT NULL,
	-- What an application that takes part leaves behind.
	when_lost INTEGER NOT NULL DEFAULT 0,
	advanced INTEGER NOT NULL DEFAULT 0,
	point TEXT NOT NULL DEFAULT '',
	point_data BLOB
) STRICT;

-- Each is as small as the list it serves: the sweeper's, the reaper's, the
-- operator's, and one more so that states can be counted without reading rows.
CREATE INDEX hapax_operation_lease ON hapax_operation (lease_until) WHERE state = 1;
CREATE INDEX hapax_operation_expires ON hapax_operation (expires) WHERE expires IS NOT NULL;
CREATE INDEX hapax_operation_unknown ON hapax_operation (changed) WHERE state = 4;
CREATE INDEX hapax_operation_failed ON hapax_operation (changed) WHERE state = 2;
CREATE INDEX hapax_operation_pending ON hapax_operation (expires) WHERE state = 5;

-- The stored answer. The check is the CRC-32 of the operation's id, the length
-- of the headers, the headers and the body.
CREATE TABLE hapax_response (
	seq INTEGER PRIMARY KEY REFERENCES hapax_operation (seq),
	headers BLOB NOT NULL,
	body BLOB NOT NULL,
	crc INTEGER NOT NULL
) STRICT;

-- Renewals, apart from the operation: a short request never writes here. The
-- later of the two ends counts, as long as the token is the operation's.
CREATE TABLE hapax_lease (
	seq INTEGER PRIMARY KEY REFERENCES hapax_operation (seq),
	token BLOB NOT NULL,
	until INTEGER NOT NULL
) STRICT;

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
-- (the operation's id and mark), and where each of them stands.
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
	UNIQUE (operation, mark, name)
) STRICT;

-- Each is as small as the list it serves: the deliverer's (one per target), the
-- sweeper's, the reconciler's and the operator's, the reaper's, a webhook's.
CREATE INDEX hapax_job_due ON hapax_job (target, due) WHERE state = 1;
CREATE INDEX hapax_job_sending ON hapax_job (lease_until) WHERE state = 2;
CREATE INDEX hapax_job_unknown ON hapax_job (changed) WHERE state = 4;
CREATE INDEX hapax_job_dead ON hapax_job (changed) WHERE state = 5;
CREATE INDEX hapax_job_finished ON hapax_job (state, changed) WHERE state IN (3, 6);
CREATE INDEX hapax_job_provider ON hapax_job (provider_id) WHERE provider_id <> '';

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
