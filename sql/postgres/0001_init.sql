-- The first schema. Times are milliseconds since 1970 of the database's own
-- clock, leases too: it is the one clock that all gateways share. Numbers of
-- states are those of the record (1 in_progress, 2 failed_retryable,
-- 3 completed, 4 unknown).
--
-- Every hot statement reaches its rows by the operation's id alone, and no
-- table points at another with a foreign key (which would lock the row it
-- points at): all of them can be distributed by id.

CREATE SCHEMA IF NOT EXISTS hapax;

-- A row is written twice in its life, by the reservation and by the answer:
-- half of each page is left free, so that the second version lies beside the
-- first.
CREATE TABLE hapax.operation (
	id bytea PRIMARY KEY CHECK (octet_length(id) = 32),
	state smallint NOT NULL CHECK (state BETWEEN 1 AND 4),
	attempt bigint NOT NULL CHECK (attempt BETWEEN 1 AND 4294967295),
	token bytea NOT NULL CHECK (octet_length(token) = 16),
	first bytea NOT NULL CHECK (octet_length(first) = 16),
	fingerprint bytea NOT NULL CHECK (octet_length(fingerprint) = 32),
	recipe bytea NOT NULL CHECK (octet_length(recipe) = 16),
	tenant_hash bytea NOT NULL CHECK (octet_length(tenant_hash) = 32),
	owner bigint NOT NULL,
	created bigint NOT NULL,
	changed bigint NOT NULL,
	expires bigint CHECK (expires > 0),
	retention bigint NOT NULL CHECK (retention >= 0),
	lease_until bigint NOT NULL,
	status integer NOT NULL CHECK (status BETWEEN 0 AND 999),
	kept boolean NOT NULL,
	-- For people.
	tenant text NOT NULL,
	scope text NOT NULL,
	key text NOT NULL,
	method text NOT NULL,
	path text NOT NULL,
	route text NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- Each is as small as the list it serves: the sweeper's, the reaper's, the
-- operator's two.
CREATE INDEX operation_lease ON hapax.operation (lease_until) WHERE state = 1;
CREATE INDEX operation_expires ON hapax.operation (expires) WHERE expires IS NOT NULL;
CREATE INDEX operation_unknown ON hapax.operation (changed) WHERE state = 4;
CREATE INDEX operation_failed ON hapax.operation (changed) WHERE state = 2;

-- The stored answer. The digest is the SHA-256 of the operation's id, the
-- length of the headers (int8send), the headers and the body: an answer can
-- only be read as that of the operation it was stored for.
CREATE TABLE hapax.response (
	id bytea PRIMARY KEY,
	headers bytea NOT NULL,
	body bytea NOT NULL,
	digest bytea NOT NULL CHECK (octet_length(digest) = 32)
);

-- Renewals, apart from the operation, in a table that no application locks: a
-- short request never writes here. The later of the two ends counts, as long
-- as the token is the operation's.
CREATE TABLE hapax.lease (
	id bytea PRIMARY KEY,
	token bytea NOT NULL CHECK (octet_length(token) = 16),
	until bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- How a fingerprint was made: UTF-8 text, kept as bytes because a fingerprint
-- must come out the same for ever.
CREATE TABLE hapax.recipe (
	id bytea PRIMARY KEY CHECK (octet_length(id) = 16),
	text bytea NOT NULL
);

-- What happened to an operation, for people; it outlives the operation.
CREATE TABLE hapax.event (
	seq bigint GENERATED ALWAYS AS IDENTITY,
	id bytea NOT NULL,
	at bigint NOT NULL,
	attempt bigint NOT NULL,
	what text NOT NULL,
	actor text NOT NULL,
	reason text NOT NULL,
	status integer NOT NULL,
	PRIMARY KEY (id, seq)
);
CREATE INDEX event_at ON hapax.event (at);

-- Which of these steps were applied; written by whoever applies one.
CREATE TABLE hapax.schema_version (
	version integer PRIMARY KEY,
	applied timestamptz NOT NULL DEFAULT clock_timestamp()
);
