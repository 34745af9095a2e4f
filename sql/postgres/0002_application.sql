-- What an application that takes part leaves behind: what becomes of a lost
-- attempt (0 unknown, 1 resumed, 2 void), whether the current attempt committed
-- a part of its work, and its last recovery point with the data saved there.

ALTER TABLE hapax.operation
	ADD COLUMN when_lost smallint NOT NULL DEFAULT 0 CHECK (when_lost BETWEEN 0 AND 2),
	ADD COLUMN advanced boolean NOT NULL DEFAULT false,
	ADD COLUMN point text NOT NULL DEFAULT '' CHECK (point ~ '^[!-~]{0,63}$'),
	ADD COLUMN point_data bytea;

-- Deliveries owed to outside services, each named once per operation reference
-- (the operation's id and the token of its first attempt).
CREATE TABLE hapax.job (
	id bigint GENERATED ALWAYS AS IDENTITY,
	operation bytea NOT NULL CHECK (octet_length(operation) = 32),
	first bytea NOT NULL CHECK (octet_length(first) = 16),
	name text NOT NULL CHECK (length(name) BETWEEN 1 AND 255),
	target text NOT NULL CHECK (length(target) BETWEEN 1 AND 255),
	method text NOT NULL CHECK (method ~ '^[A-Z]{1,32}$'),
	path text NOT NULL CHECK (path ~ '^/[!-~]*$' AND length(path) <= 8192),
	headers text NOT NULL CHECK (octet_length(headers) <= 65536),
	body bytea NOT NULL CHECK (octet_length(body) <= 16777216),
	created bigint NOT NULL,
	state text NOT NULL DEFAULT 'queued',
	PRIMARY KEY (operation, first, name)
);
