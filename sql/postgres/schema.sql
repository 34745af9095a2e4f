-- The schema, whole, on one page. A database of an earlier number is refused:
-- nothing was released before this one. What a later release changes is a
-- numbered step of its own beside this file.
--
-- Times are milliseconds since 1970 of the database's own clock, leases too: it
-- is the one clock that all gateways share. Numbers of states are those of the
-- record (1 in_progress, 2 failed_retryable, 3 completed, 4 unknown, 5 pending)
-- and of a job (1 queued, 2 sending, 3 done, 4 unknown, 5 dead, 6 discarded).
--
-- Every hot statement reaches its rows by the operation's id alone, and no
-- table points at another with a foreign key (which would lock the row it
-- points at): all of them can be distributed by id.

CREATE SCHEMA IF NOT EXISTS hapax;

-- A row is written twice in its life, by the reservation and by the answer:
-- half of each page is left free, so that the second version lies beside the
-- first.
--
-- `token` is the current attempt's right to write; `mark` is the hash of the
-- first attempt's (hapax.mark), and with the id the reference that clients get.
-- `when_lost`: what becomes of a lost attempt (0 unknown, 1 resumed, 2 void);
-- `advanced`: whether the current attempt committed a part of its work; `point`:
-- its last recovery point, with the data saved there.
--
-- The tables that every request writes have no CHECK: PostgreSQL reads each from
-- its text anew in every statement, which took half of the time that one row
-- took. Whoever reads a row judges it (hapax.is_whole): one that is not whole
-- counts as unknown, is never reaped, and is a person's to settle.
CREATE TABLE hapax.operation (
	id bytea PRIMARY KEY,
	state smallint NOT NULL,
	attempt bigint NOT NULL,
	token bytea NOT NULL,
	mark bytea NOT NULL,
	fingerprint bytea NOT NULL,
	recipe bytea NOT NULL,
	tenant_hash bytea NOT NULL,
	owner bigint NOT NULL,
	created bigint NOT NULL,
	changed bigint NOT NULL,
	expires bigint,
	retention bigint NOT NULL,
	lease_until bigint NOT NULL,
	status integer NOT NULL,
	kept boolean NOT NULL,
	-- For people.
	tenant text NOT NULL,
	scope text NOT NULL,
	key text NOT NULL,
	method text NOT NULL,
	path text NOT NULL,
	route text NOT NULL,
	-- What an application that takes part leaves behind.
	when_lost smallint NOT NULL DEFAULT 0,
	advanced boolean NOT NULL DEFAULT false,
	point text NOT NULL DEFAULT '',
	point_data bytea
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- Each is as small as the list it serves: the sweeper's, the reaper's, the
-- operator's two, the abandoned ones'.
CREATE INDEX operation_lease ON hapax.operation (lease_until) WHERE state = 1;
CREATE INDEX operation_expires ON hapax.operation (expires) WHERE expires IS NOT NULL;
CREATE INDEX operation_unknown ON hapax.operation (changed) WHERE state = 4;
CREATE INDEX operation_failed ON hapax.operation (changed) WHERE state = 2;
CREATE INDEX operation_pending ON hapax.operation (expires) WHERE state = 5;

-- The stored answer. The digest is the SHA-256 of the operation's id, the
-- length of the headers (int8send), the headers and the body: an answer can
-- only be read as that of the operation it was stored for.
CREATE TABLE hapax.response (
	id bytea PRIMARY KEY,
	headers bytea NOT NULL,
	body bytea NOT NULL,
	digest bytea NOT NULL
);

-- Renewals, apart from the operation, in a table that no application locks: a
-- short request never writes here. The later of the two ends counts, as long
-- as the token is the operation's.
CREATE TABLE hapax.lease (
	id bytea PRIMARY KEY,
	token bytea NOT NULL,
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

-- What people removed or settled, by time: every gateway that keeps answers in
-- memory looks at the last minutes of it a few times a second. As small as that
-- list is; no other event pays for it.
CREATE INDEX event_removal ON hapax.event (at)
	WHERE what IN ('forgotten', 'resolved_applied', 'resolved_not_applied');

-- Which schema this is: the greatest number counts. Written by whoever applies it.
CREATE TABLE hapax.schema_version (
	version integer PRIMARY KEY,
	applied timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Deliveries owed to outside services, each named once per operation reference
-- (the operation's id and mark), and where each of them stands.
CREATE TABLE hapax.job (
	id bigint GENERATED ALWAYS AS IDENTITY,
	operation bytea NOT NULL CHECK (octet_length(operation) = 32),
	mark bytea NOT NULL CHECK (octet_length(mark) = 16),
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
	token bytea NOT NULL DEFAULT '\x00000000000000000000000000000000'
		CHECK (octet_length(token) = 16),
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

-- What was asked and said about an outcome that nobody knows: of an operation
-- (job 0) or of one of its jobs. `evidence` is a ruling that came before there
-- was a question (1 applied, 2 declined, 0 none). A question is written with the
-- outcome that is lost, due at once: ask_at is 0 while there is none, sent is 0
-- until somebody has looked at it. The lane is whom to ask: the operation's
-- route, or 'target:' and the name of the job's target; '?' where there is none.
-- The upstream says whose gateways ask: '' for jobs and what applications began,
-- which are everybody's, else the name that the scope begins with. Whoever looks
-- steps over nobody else's.
CREATE TABLE hapax.reconcile (
	id bytea NOT NULL CHECK (octet_length(id) = 32),
	mark bytea NOT NULL CHECK (octet_length(mark) = 16),
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

-- Unknown from now on: a question is due. What was said before belongs to the
-- same reference only.
CREATE FUNCTION hapax.begin_question(id bytea, mark bytea, job bigint, upstream text, lane text,
		changed bigint) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
	INSERT INTO hapax.reconcile AS r (id, mark, job, upstream, lane, sent, tries, in_a_row,
			first_said, ask_at, evidence, person)
		VALUES (begin_question.id, begin_question.mark, begin_question.job,
			begin_question.upstream, begin_question.lane, 0, 0, 0, 0,
			greatest(begin_question.changed, 1), 0, false)
		ON CONFLICT (id, job) DO UPDATE SET
			evidence = CASE WHEN r.mark = excluded.mark THEN r.evidence ELSE 0 END,
			mark = excluded.mark, upstream = excluded.upstream,
			lane = excluded.lane, sent = 0, tries = 0, in_a_row = 0,
			first_said = 0, ask_at = excluded.ask_at, person = false
$$;

-- The same of an operation, unless its job is on its way or lost: then the job
-- tells. No upstream's name has a space, and every scope that a gateway makes
-- begins with the name and, unless that is all, a space.
CREATE FUNCTION hapax.begin_question(named bytea) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
	SELECT hapax.begin_question(o.id, o.mark, 0,
			CASE WHEN o.route IN ('', 'application') THEN ''
				ELSE split_part(o.scope, ' ', 1) END,
			coalesce(nullif(o.route, ''), '?'), o.changed)
		FROM hapax.operation o
		WHERE o.id = named AND o.state = 4 AND NOT EXISTS (SELECT 1 FROM hapax.job j
			WHERE j.operation = o.id AND j.mark = o.mark AND j.answers
			AND j.state IN (1, 2, 4))
$$;

-- Whoever loses an outcome, or settles it, by whatever way: a question begins, or
-- is over; one that is unknown once more is asked about from the beginning. With
-- the owner's rights: a server's role needs none on functions.
CREATE FUNCTION hapax.question_of_operation() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF NEW.state = 4 THEN
		PERFORM hapax.begin_question(NEW.id);
	ELSE
		DELETE FROM hapax.reconcile WHERE id = OLD.id AND job = 0;
	END IF;
	RETURN NULL;
END $$;
CREATE TRIGGER question AFTER UPDATE OF state ON hapax.operation
	FOR EACH ROW WHEN ((OLD.state = 4) <> (NEW.state = 4))
	EXECUTE FUNCTION hapax.question_of_operation();

-- That it was declined was said of an attempt, and says nothing of the next one.
CREATE FUNCTION hapax.tried_again() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	DELETE FROM hapax.reconcile WHERE id = OLD.id AND job = 0 AND evidence = 2;
	RETURN NULL;
END $$;
CREATE TRIGGER tried_again AFTER UPDATE OF attempt ON hapax.operation
	FOR EACH ROW WHEN (OLD.attempt <> NEW.attempt)
	EXECUTE FUNCTION hapax.tried_again();

-- A job that is lost is asked about. Of one that ended, what was said before
-- anybody asked is over too. One that ends leaves the question to its operation,
-- if that is unknown, and one that goes out again takes it back.
CREATE FUNCTION hapax.question_of_job() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	spoke boolean := OLD.state IN (1, 2, 4);
	speaks boolean := NEW.state IN (1, 2, 4);
BEGIN
	IF NEW.state = 4 THEN
		PERFORM hapax.begin_question(NEW.operation, NEW.mark, NEW.id, '',
			'target:' || NEW.target, NEW.changed);
	ELSIF OLD.state = 4 OR NEW.state IN (3, 6) THEN
		DELETE FROM hapax.reconcile WHERE id = OLD.operation AND job = OLD.id;
	END IF;
	IF NEW.answers AND speaks AND NOT spoke THEN
		DELETE FROM hapax.reconcile WHERE id = NEW.operation AND job = 0
			AND mark = NEW.mark AND NOT person AND ask_at > 0;
	ELSIF NEW.answers AND spoke AND NOT speaks THEN
		PERFORM hapax.begin_question(o.id) FROM hapax.operation o
			WHERE o.id = NEW.operation AND o.mark = NEW.mark AND o.state = 4;
	END IF;
	RETURN NULL;
END $$;
CREATE TRIGGER question AFTER UPDATE OF state ON hapax.job
	FOR EACH ROW WHEN (OLD.state <> NEW.state AND
		(OLD.state >= 3 OR NEW.state >= 3))
	EXECUTE FUNCTION hapax.question_of_job();

-- What an application calls inside its own transaction, with the value of the
-- Hapax-Lease header: its rows, the answer and the jobs it owes commit together
-- or not at all. Each function locks the operation's row first, matches on the
-- lease token, and asks for the time only then. The moves are those of the
-- record in C, and are tested against it. Errors of their own:
--
--   HX001  the lease is not (any more) the operation's
--   HX002  the operation is not in a state that allows this
--   HX003  a job of this name was enqueued with other content
--   HX004  the lease is malformed
--
-- They run with the rights of their owner, so that a role needs no right on
-- any table to call them. No application ever locks a row of hapax.lease.

CREATE FUNCTION hapax.clock_ms() RETURNS bigint
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
	SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint
$$;

-- A commit that a crash undoes would make the answer a lie: whatever the
-- session was set to, this transaction waits at least for the disk (and for
-- the synchronous standby, where there is one).
CREATE FUNCTION hapax.make_durable() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
		PERFORM set_config('synchronous_commit', 'on', true);
	END IF;
END $$;

-- What stands in a reference instead of the first attempt's token: nobody gets
-- from the one to the other. The same hash as in C.
CREATE FUNCTION hapax.mark(token bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT substr(sha256(convert_to('hapax.mark:', 'UTF8') || token), 1, 16)
$$;

-- Whether the row is one that hapax wrote.
CREATE FUNCTION hapax.is_whole(o hapax.operation) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT octet_length(o.id) = 32 AND o.state BETWEEN 1 AND 5
		AND o.attempt BETWEEN 1 AND 4294967295
		AND octet_length(o.token) = 16 AND octet_length(o.mark) = 16
		AND octet_length(o.fingerprint) = 32 AND octet_length(o.recipe) = 16
		AND octet_length(o.tenant_hash) = 32 AND coalesce(o.expires, 1) > 0
		AND o.retention >= 0 AND o.status BETWEEN 0 AND 999
		AND o.when_lost BETWEEN 0 AND 2 AND o.point ~ '^[!-~]{0,63}$'
$$;

-- The operation whose lease this is, locked until the transaction ends.
CREATE FUNCTION hapax.hold(lease text) RETURNS hapax.operation
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	o hapax.operation;
	given bytea;
BEGIN
	IF lease IS NULL OR lease !~ '^[0-9a-f]{64}[.][0-9a-f]{32}$' THEN
		RAISE EXCEPTION 'this is not a lease: pass the value of the Hapax-Lease header as it came'
			USING ERRCODE = 'HX004';
	END IF;
	PERFORM hapax.make_durable();
	given := decode(substr(lease, 66), 'hex');
	SELECT * INTO o FROM hapax.operation WHERE id = decode(substr(lease, 1, 64), 'hex') FOR UPDATE;
	IF NOT FOUND OR o.token <> given OR given = decode(repeat('00', 16), 'hex') THEN
		RAISE EXCEPTION 'the lease is lost: this attempt may write nothing any more'
			USING ERRCODE = 'HX001',
			HINT = 'Roll back. A retry of the request has, or gets, a lease of its own.';
	END IF;
	IF NOT hapax.is_whole(o) THEN
		RAISE EXCEPTION 'the operation''s row cannot be read: a person has to settle it'
			USING ERRCODE = 'data_corrupted';
	END IF;
	RETURN o;
END $$;

CREATE FUNCTION hapax.refuse(o hapax.operation, what text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RAISE EXCEPTION '% is refused: the operation is %', what,
		(ARRAY['in_progress', 'failed_retryable', 'completed', 'unknown', 'pending'])[o.state]
		USING ERRCODE = 'HX002';
END $$;

CREATE FUNCTION hapax.note(o hapax.operation, at bigint, what text, reason text, status integer)
RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
	INSERT INTO hapax.event (id, at, attempt, what, actor, reason, status)
	VALUES (o.id, at, o.attempt, what, 'application', reason, status)
$$;

-- Header lines as they are stored and replayed: "Name: value", each with CR LF.
-- What belongs to one delivery, or is hapax's to say, is left out; what cannot
-- stand in an answer is an error.
CREATE FUNCTION hapax.kept_headers(headers text) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	line text;
	kept text := '';
BEGIN
	FOREACH line IN ARRAY string_to_array(replace(coalesce(headers, ''), E'\r\n', E'\n'), E'\n') LOOP
		CONTINUE WHEN line = '';
		IF line !~ '^[!#$%&''*+.^_`|~0-9A-Za-z-]+:[^\x01-\x08\x0a-\x1f\x7f]*$' THEN
			RAISE EXCEPTION 'headers must be lines of the form "Name: value"'
				USING ERRCODE = 'invalid_parameter_value';
		END IF;
		CONTINUE WHEN lower(split_part(line, ':', 1)) ~
			'^(connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|content-length|set-cookie|date|age|via|alt-svc|clear-site-data|authentication-info|ratelimit|ratelimit-.*|server-timing|idempotent-replayed|idempotency-expires|hapax[-_].*)$';
		kept := kept || split_part(line, ':', 1) || ': ' ||
			btrim(substr(line, position(':' IN line) + 1), E' \t') || E'\r\n';
	END LOOP;
	IF octet_length(kept) > 65536 THEN
		RAISE EXCEPTION 'the headers are too large: at most 64 KiB are kept'
			USING ERRCODE = 'program_limit_exceeded';
	END IF;
	RETURN convert_to(kept, 'UTF8');
END $$;

-- The answer to the request, now and for every retry; once it is committed, it
-- is the truth, whatever HTTP said. The same attempt again changes nothing.
CREATE FUNCTION hapax.complete(lease text, status integer, headers text, body bytea) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	o hapax.operation := hapax.hold(complete.lease);
	now_ms bigint := hapax.clock_ms();
	head bytea := hapax.kept_headers(complete.headers);
	content bytea := coalesce(complete.body, '');
	code integer := complete.status;
BEGIN
	IF code IS NULL OR code NOT BETWEEN 200 AND 599 THEN
		RAISE EXCEPTION 'the status of an answer is 200 to 599'
			USING ERRCODE = 'invalid_parameter_value';
	END IF;
	IF octet_length(content) > 16777216 THEN
		RAISE EXCEPTION 'the body is too large: at most 16 MiB are kept'
			USING ERRCODE = 'program_limit_exceeded';
	END IF;
	IF o.state = 3 THEN
		RETURN;
	END IF;
	UPDATE hapax.operation SET state = 3, changed = now_ms, status = code, kept = true,
		expires = greatest(coalesce(o.expires, 0), now_ms + o.retention)
		WHERE id = o.id;
	INSERT INTO hapax.response (id, headers, body, digest)
		VALUES (o.id, head, content,
			sha256(o.id || int8send(octet_length(head)) || head || content))
		ON CONFLICT (id) DO UPDATE SET headers = excluded.headers, body = excluded.body,
			digest = excluded.digest;
	IF o.attempt > 1 OR o.state <> 1 THEN
		PERFORM hapax.note(o, now_ms, 'completed', '', code);
	END IF;
END $$;

-- A phase is done, and `data` is what the next one needs: an attempt that comes
-- after a crash is told, and goes on from there.
CREATE FUNCTION hapax.advance(lease text, point text, data bytea) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	o hapax.operation := hapax.hold(advance.lease);
	reached text := advance.point;
BEGIN
	IF reached IS NULL OR reached !~ '^[!-~]{1,63}$' THEN
		RAISE EXCEPTION 'the name of a recovery point is 1 to 63 visible ASCII characters'
			USING ERRCODE = 'invalid_parameter_value';
	END IF;
	IF octet_length(advance.data) > 1048576 THEN
		RAISE EXCEPTION 'the data of a recovery point is too large: at most 1 MiB'
			USING ERRCODE = 'program_limit_exceeded';
	END IF;
	IF o.state NOT IN (1, 4) THEN
		PERFORM hapax.refuse(o, 'advance');
	END IF;
	UPDATE hapax.operation SET advanced = true, point = reached, point_data = advance.data
		WHERE id = o.id;
	PERFORM hapax.note(o, hapax.clock_ms(), 'advanced', reached, 0);
END $$;

-- Where an earlier attempt got to; both are NULL where there is no such point.
CREATE FUNCTION hapax.recovery(lease text, OUT point text, OUT data bytea)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	o hapax.operation := hapax.hold(recovery.lease);
BEGIN
	IF o.point <> '' THEN
		point := o.point;
		data := o.point_data;
	END IF;
END $$;

-- Nothing happened: a retry may run at once. After a part was committed, that
-- is not true any more, and a person has to look, unless the route resumes.
CREATE FUNCTION hapax.not_executed(lease text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	o hapax.operation := hapax.hold(not_executed.lease);
	now_ms bigint := hapax.clock_ms();
BEGIN
	IF o.state NOT IN (1, 4) THEN
		PERFORM hapax.refuse(o, 'not_executed');
	END IF;
	IF o.advanced AND o.when_lost = 0 THEN
		IF o.state = 4 THEN
			RETURN;
		END IF;
		UPDATE hapax.operation SET state = 4, changed = now_ms WHERE id = o.id;
	ELSE
		UPDATE hapax.operation SET state = 2, changed = now_ms,
			token = decode(repeat('00', 16), 'hex'),
			expires = greatest(coalesce(o.expires, 0), now_ms + o.retention)
			WHERE id = o.id;
	END IF;
	PERFORM hapax.note(o, now_ms, 'not_executed', '', o.status);
END $$;

-- The lines of a stored answer as text. What the gateway kept is bytes; HTTP
-- says that those which are not UTF-8 are ISO 8859-1.
CREATE FUNCTION hapax.header_text(headers bytea) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RETURN convert_from(headers, 'UTF8');
EXCEPTION
	WHEN character_not_in_repertoire OR untranslatable_character THEN
		RETURN convert_from(headers, 'LATIN1');
END $$;

-- A delivery owed to an outside service. The name is the job's own within its
-- operation, over all attempts: the same again is no second job.
CREATE FUNCTION hapax.enqueue(lease text, name text, target text, method text, path text,
	headers text, body bytea) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	o hapax.operation := hapax.hold(enqueue.lease);
	head text := convert_from(hapax.kept_headers(enqueue.headers), 'UTF8');
	content bytea := coalesce(enqueue.body, '');
	now_ms bigint := hapax.clock_ms();
	inserted bigint;
BEGIN
	IF o.state NOT IN (1, 4) THEN
		PERFORM hapax.refuse(o, 'enqueue');
	END IF;
	INSERT INTO hapax.job AS j (operation, mark, name, target, method, path, headers, body,
			created, changed, due)
		VALUES (o.id, o.mark, enqueue.name, enqueue.target, enqueue.method, enqueue.path,
			head, content, now_ms, now_ms, now_ms)
		ON CONFLICT DO NOTHING RETURNING j.id INTO inserted;
	IF inserted IS NULL AND NOT EXISTS (
		SELECT 1 FROM hapax.job j WHERE j.operation = o.id AND j.mark = o.mark
			AND j.name = enqueue.name AND j.target = enqueue.target
			AND j.method = enqueue.method AND j.path = enqueue.path
			AND j.headers = head AND j.body = content) THEN
		RAISE EXCEPTION 'a job of this name was enqueued with other content'
			USING ERRCODE = 'HX003',
			HINT = 'A job''s name is unique within its operation. Take another name for another job.';
	END IF;
	UPDATE hapax.operation SET advanced = true WHERE id = o.id;
END $$;

-- Reserves the key, or tells what became of it. `verdict`: created and retried
-- (execute, with this lease, after `point` where there is one), replay (status,
-- headers and body are the answer; not `kept`: the status alone is known),
-- in_progress (a pending one too), unknown, mismatch (the key was used with
-- another fingerprint).
--
-- `operation` is the reference, which gives no right to write; `lease` does.
--
-- `on_lost`: what becomes of the attempt if its lease runs out. unknown: nobody
-- can tell; resume: it runs again, after its recovery point; repeat: all it
-- does commits with complete, so it has, or nothing happened.
--
-- `token`: 16 random bytes of the caller's. Asked again with the same, an
-- attempt that is under way is this very reservation.
CREATE FUNCTION hapax.begin(tenant text, scope text, key text, fingerprint bytea,
	lease_ms bigint, retention_ms bigint, on_lost text DEFAULT 'repeat',
	token bytea DEFAULT NULL, OUT verdict text, OUT lease text, OUT attempt integer,
	OUT status integer, OUT headers text, OUT body bytea, OUT operation text,
	OUT point text, OUT data bytea, OUT kept boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	tenant_bytes bytea := convert_to(tenant, 'UTF8');
	scope_bytes bytea := convert_to(scope, 'UTF8');
	key_bytes bytea := convert_to(key, 'UTF8');
	void bytea := decode(repeat('00', 16), 'hex');
	made bytea := coalesce(begin.token,
		substr(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 1, 16));
	lost integer := array_position(ARRAY['unknown', 'resume', 'repeat'], begin.on_lost) - 1;
	-- A hundred years: sums of times stay far from the end of their range.
	time_max bigint := 3155760000000;
	made_mark bytea := hapax.mark(made);
	named bytea;
	now_ms bigint;
	o hapax.operation;
	answer hapax.response;
BEGIN
	IF tenant IS NULL OR scope IS NULL OR key IS NULL OR length(key) NOT BETWEEN 1 AND 255
			OR fingerprint IS NULL OR octet_length(fingerprint) <> 32
			OR lease_ms IS NULL OR lease_ms NOT BETWEEN 1 AND time_max
			OR retention_ms IS NULL OR retention_ms NOT BETWEEN 1 AND time_max THEN
		RAISE EXCEPTION 'begin needs a tenant, a scope, a key of 1 to 255 characters, a fingerprint of 32 bytes, and times in milliseconds above 0'
			USING ERRCODE = 'invalid_parameter_value';
	END IF;
	IF lost IS NULL THEN
		RAISE EXCEPTION 'on_lost is unknown, resume or repeat'
			USING ERRCODE = 'invalid_parameter_value';
	END IF;
	IF octet_length(made) <> 16 OR made = void THEN
		RAISE EXCEPTION 'a token is 16 random bytes'
			USING ERRCODE = 'invalid_parameter_value';
	END IF;
	PERFORM hapax.make_durable();
	named := sha256(int8send(octet_length(tenant_bytes)) || tenant_bytes ||
		int8send(octet_length(scope_bytes)) || scope_bytes ||
		int8send(octet_length(key_bytes)) || key_bytes);
	now_ms := hapax.clock_ms();
	INSERT INTO hapax.operation AS n (id, state, attempt, token, mark, fingerprint, recipe,
			tenant_hash, owner, created, changed, retention, lease_until, status, kept,
			tenant, scope, key, method, path, route, when_lost)
		VALUES (named, 1, 1, made, made_mark, begin.fingerprint, void, sha256(tenant_bytes), 0,
			now_ms, now_ms, begin.retention_ms, now_ms + begin.lease_ms, 0, false,
			begin.tenant, begin.scope, begin.key, '', '', 'application', lost)
		ON CONFLICT DO NOTHING RETURNING n.attempt INTO attempt;
	IF FOUND THEN
		verdict := 'created';
		lease := encode(named, 'hex') || '.' || encode(made, 'hex');
		operation := encode(named, 'hex') || '.' || encode(made_mark, 'hex');
		RETURN;
	END IF;
	SELECT * INTO o FROM hapax.operation f WHERE f.id = named FOR UPDATE;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'the operation came or went meanwhile: try the transaction again'
			USING ERRCODE = 'serialization_failure';
	END IF;
	now_ms := hapax.clock_ms();
	attempt := o.attempt;
	IF NOT hapax.is_whole(o) THEN
		verdict := 'unknown';
		RETURN;
	END IF;
	operation := encode(named, 'hex') || '.' || encode(o.mark, 'hex');
	IF o.state <> 5 AND o.expires <= now_ms THEN
		verdict := 'created';
	ELSIF o.state = 1 AND o.token = made THEN
		verdict := CASE WHEN o.attempt > 1 THEN 'retried' ELSE 'created' END;
		lease := encode(named, 'hex') || '.' || encode(made, 'hex');
		point := nullif(o.point, '');
		data := CASE WHEN o.point <> '' THEN o.point_data END;
		RETURN;
	ELSIF o.fingerprint <> begin.fingerprint THEN
		verdict := 'mismatch';
	ELSIF o.state = 3 THEN
		-- An answer that is not whole is nobody's.
		SELECT * INTO answer FROM hapax.response r WHERE r.id = o.id;
		IF (CASE WHEN FOUND THEN answer.digest = sha256(o.id ||
				int8send(octet_length(answer.headers)) || answer.headers || answer.body)
				ELSE NOT o.kept END) THEN
			verdict := 'replay';
			status := o.status;
			kept := o.kept;
			headers := hapax.header_text(answer.headers);
			body := answer.body;
		ELSE
			verdict := 'unknown';
		END IF;
	ELSIF o.state = 4 THEN
		verdict := 'unknown';
	ELSIF o.state = 5 THEN
		verdict := 'in_progress';
	ELSIF o.state = 1 AND (o.lease_until > now_ms OR EXISTS (SELECT 1 FROM hapax.lease l
			WHERE l.id = o.id AND l.token = o.token AND l.until > now_ms)) THEN
		verdict := 'in_progress';
	ELSIF o.state = 1 AND o.when_lost = 0 THEN
		UPDATE hapax.operation u SET state = 4, changed = now_ms WHERE u.id = o.id;
		PERFORM hapax.note(o, now_ms, 'lease_lost', 'the lease ran out', o.status);
		verdict := 'unknown';
	ELSE
		verdict := 'retried';
	END IF;
	IF verdict NOT IN ('created', 'retried') THEN
		RETURN;
	END IF;
	lease := encode(named, 'hex') || '.' || encode(made, 'hex');
	IF verdict = 'created' THEN
		attempt := 1;
		operation := encode(named, 'hex') || '.' || encode(made_mark, 'hex');
		DELETE FROM hapax.response r WHERE r.id = o.id;
	ELSE
		attempt := o.attempt + 1;
		point := nullif(o.point, '');
		data := CASE WHEN o.point <> '' THEN o.point_data END;
	END IF;
	UPDATE hapax.operation u SET state = 1, attempt = begin.attempt, token = made,
		mark = CASE verdict WHEN 'created' THEN made_mark ELSE o.mark END,
		created = CASE verdict WHEN 'created' THEN now_ms ELSE o.created END,
		fingerprint = begin.fingerprint, recipe = void, owner = 0, changed = now_ms,
		expires = NULL, retention = begin.retention_ms,
		lease_until = now_ms + begin.lease_ms,
		status = 0, kept = false, when_lost = lost, advanced = false,
		point = coalesce(begin.point, ''), point_data = begin.data
		WHERE u.id = o.id;
	o.attempt := attempt;
	PERFORM hapax.note(o, now_ms, 'reserved', CASE WHEN verdict = 'created'
			THEN 'the key had expired and is used again'
			WHEN o.state = 1 THEN 'the lease ran out' ELSE '' END, 0);
END $$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA hapax FROM PUBLIC;

-- A role that may call these and nothing else, for applications to be members
-- of. Where this role may not make it, an administrator does, and grants it the
-- same (docs/reference/sql.md).
DO $$
BEGIN
	IF NOT EXISTS (SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = 'hapax_application') THEN
		CREATE ROLE hapax_application NOLOGIN;
	END IF;
EXCEPTION
	WHEN insufficient_privilege OR duplicate_object OR unique_violation THEN
		NULL;
END $$;

DO $$
BEGIN
	IF EXISTS (SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = 'hapax_application') THEN
		GRANT USAGE ON SCHEMA hapax TO hapax_application;
		GRANT EXECUTE ON FUNCTION
			hapax.complete(text, integer, text, bytea),
			hapax.advance(text, text, bytea),
			hapax.recovery(text),
			hapax.not_executed(text),
			hapax.enqueue(text, text, text, text, text, text, bytea),
			hapax.begin(text, text, text, bytea, bigint, bigint, text, bytea)
			TO hapax_application;
	END IF;
END $$;
