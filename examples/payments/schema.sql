-- The shop's own tables, the same for SQLite and PostgreSQL. They stand in the
-- database that holds hapax's tables, because they are written in the same
-- transactions.

CREATE TABLE IF NOT EXISTS customer (
	merchant text NOT NULL,
	name text NOT NULL,
	PRIMARY KEY (merchant, name)
);

-- operation is unique: the last safety net. Even if everything else were wrong,
-- an operation has one payment.
CREATE TABLE IF NOT EXISTS payment (
	id text PRIMARY KEY,
	operation text NOT NULL UNIQUE,
	merchant text NOT NULL,
	customer text NOT NULL,
	amount bigint NOT NULL CHECK (amount > 0),
	currency text NOT NULL,
	state text NOT NULL,
	screening text NOT NULL,
	authorisation text UNIQUE,
	capture text UNIQUE,
	FOREIGN KEY (merchant, customer) REFERENCES customer (merchant, name)
);

-- Two rows for each payment, whose sum is 0.
CREATE TABLE IF NOT EXISTS ledger (
	payment text NOT NULL REFERENCES payment (id),
	account text NOT NULL,
	amount bigint NOT NULL,
	PRIMARY KEY (payment, account)
);
