-- The first schema. Times are milliseconds: created, changed and expires of
-- the wall clock, lease_until of the boot clock. Numbers of states are those
-- of the record (1 in_progress, 2 failed_retryable, 3 completed, 4 unknown).
--
-- The file may be an application's own, with its tables beside these: each of
-- ours says whose it is, and user_version is left to the application.

-- A rowid table with a unique 32-byte BLOB: rows are appended, and only the
-- small index of ids is written at random places.
CREATE TABLE hapax_operation (
	seq INTEGER PRIMARY KEY,
	id BLOB NOT NULL UNIQUE,
	state INTEGER NOT NULL,
	attempt INTEGER NOT NULL,
	token BLOB NOT NULL,
	first BLOB NOT NULL,
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
	route TEXT NOT NULL
) STRICT;

-- Each is as small as the list it serves: the sweeper's, the reaper's, the
-- operator's, and one more so that states can be counted without reading rows.
CREATE INDEX hapax_operation_lease ON hapax_operation (lease_until) WHERE state = 1;
CREATE INDEX hapax_operation_expires ON hapax_operation (expires) WHERE expires IS NOT NULL;
CREATE INDEX hapax_operation_unknown ON hapax_operation (changed) WHERE state = 4;
CREATE INDEX hapax_operation_failed ON hapax_operation (changed) WHERE state = 2;

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

-- Which of these steps were applied: the greatest number counts.
CREATE TABLE hapax_schema_version (
	version INTEGER PRIMARY KEY
) STRICT;
