-- The first schema. Times are milliseconds: created, changed and expires of
-- the wall clock, lease_until of the boot clock. Numbers of states are those
-- of the record (1 in_progress, 2 failed_retryable, 3 completed, 4 unknown).

-- A rowid table with a unique 32-byte BLOB: rows are appended, and only the
-- small index of ids is written at random places.
CREATE TABLE operation (
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
CREATE INDEX operation_lease ON operation (lease_until) WHERE state = 1;
CREATE INDEX operation_expires ON operation (expires) WHERE expires IS NOT NULL;
CREATE INDEX operation_unknown ON operation (changed) WHERE state = 4;
CREATE INDEX operation_failed ON operation (changed) WHERE state = 2;

-- The stored answer. The check is the CRC-32 of the operation's id, the length
-- of the headers, the headers and the body.
CREATE TABLE response (
	seq INTEGER PRIMARY KEY REFERENCES operation (seq),
	headers BLOB NOT NULL,
	body BLOB NOT NULL,
	crc INTEGER NOT NULL
) STRICT;

-- Renewals, apart from the operation: a short request never writes here. The
-- later of the two ends counts, as long as the token is the operation's.
CREATE TABLE lease (
	seq INTEGER PRIMARY KEY REFERENCES operation (seq),
	token BLOB NOT NULL,
	until INTEGER NOT NULL
) STRICT;

CREATE TABLE recipe (
	id BLOB NOT NULL PRIMARY KEY,
	text TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What happened to an operation, for people; it outlives the operation.
CREATE TABLE event (
	seq INTEGER PRIMARY KEY,
	id BLOB NOT NULL,
	at INTEGER NOT NULL,
	attempt INTEGER NOT NULL,
	what TEXT NOT NULL,
	actor TEXT NOT NULL,
	reason TEXT NOT NULL,
	status INTEGER NOT NULL
) STRICT;
CREATE INDEX event_id ON event (id);

-- One row: which boot the clocks were compared in, how far the wall clock was
-- ahead of the boot clock, the latest wall time seen, and whether expiry is
-- held because they parted.
CREATE TABLE clock (
	one INTEGER PRIMARY KEY CHECK (one = 1),
	boot TEXT NOT NULL,
	ahead INTEGER NOT NULL,
	seen INTEGER NOT NULL,
	held INTEGER NOT NULL
) STRICT;
