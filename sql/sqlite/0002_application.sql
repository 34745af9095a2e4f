-- What an application that takes part leaves behind: what becomes of a lost
-- attempt (0 unknown, 1 resumed, 2 void), whether the current attempt committed
-- a part of its work, and its last recovery point with the data saved there.

ALTER TABLE hapax_operation ADD COLUMN when_lost INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hapax_operation ADD COLUMN advanced INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hapax_operation ADD COLUMN point TEXT NOT NULL DEFAULT '';
ALTER TABLE hapax_operation ADD COLUMN point_data BLOB;

-- Deliveries owed to outside services, each named once per operation reference
-- (the operation's id and the token of its first attempt).
CREATE TABLE hapax_job (
	seq INTEGER PRIMARY KEY,
	operation BLOB NOT NULL,
	first BLOB NOT NULL,
	name TEXT NOT NULL,
	target TEXT NOT NULL,
	method TEXT NOT NULL,
	path TEXT NOT NULL,
	headers TEXT NOT NULL,
	body BLOB NOT NULL,
	created INTEGER NOT NULL,
	state TEXT NOT NULL DEFAULT 'queued',
	UNIQUE (operation, first, name)
) STRICT;
