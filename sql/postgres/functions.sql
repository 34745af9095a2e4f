-- The functions and triggers, whole, on one page. Every migration replaces all of them.
--
-- Triggers and the functions for applications run with the rights of their owner: a
-- gateway's role needs rights on tables only, an application's role needs none on any
-- table.

CREATE OR REPLACE FUNCTION hapax.clock_ms() RETURNS bigint
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
	SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint
$$;

-- A commit that a crash undoes would make the answer a lie: whatever the session was
-- set to, this transaction waits at least for the disk (and for the synchronous standby,
-- where there is one).
CREATE OR REPLACE FUNCTION hapax.make_durable() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
		PERFORM set_config('synchronous_commit', 'on', true);
	END IF;
END $$;

-- What stands in a reference instead of the first attempt's token: nobody gets from the
-- one to the other. The same hash as in C.
CREATE OR REPLACE FUNCTION hapax.mark(token uuid) RETURNS uuid
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT encode(substr(sha256(convert_to('hapax.mark:', 'UTF8') || uuid_send(token)), 1, 16),
		'hex')::uuid
$$;

-- Half of an id, a token or a mark as they are written in references and leases.
CREATE OR REPLACE FUNCTION hapax.hex(half uuid) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT encode(uuid_send(half), 'hex')
$$;

-- Whether the row is one that hapax wrote.
CREATE OR REPLACE FUNCTION hapax.is_whole(o hapax.operation) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT o.state BETWEEN 1 AND 5 AND o.attempt BETWEEN 1 AND 4294967295
		AND octet_length(o.fingerprint) = 32 AND octet_length(o.tenant_hash) = 32
		AND o.expires >= 0 AND o.retention >= 0 AND o.tombstone >= 0 AND o.status BETWEEN 0 AND 999
		AND o.when_lost BETWEEN 0 AND 2 AND o.point ~ '^[!-~]{0,63}$'
$$;

-- ---- questions about outcomes that nobody knows ----

-- Unknown from now on: a question is due. What was said before belongs to the same
-- reference only.
CREATE OR REPLACE FUNCTION hapax.begin_question(id uuid, rest uuid, mark uuid, job bigint,
		upstream text, lane text, changed bigint) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
	INSERT INTO hapax.reconcile AS r (id, rest, mark, job, upstream, lane, sent, tries, in_a_row,
			first_said, ask_at, evidence, person)
		VALUES (begin_question.id, begin_question.rest, begin_question.mark,
			begin_question.job, begin_question.upstream, begin_question.lane, 0, 0, 0, 0,
			greatest(begin_question.changed, 1), 0, false)
		ON CONFLICT (id, job) DO UPDATE SET
			evidence = CASE WHEN r.mark = excluded.mark THEN r.evidence ELSE 0 END,
			rest = excluded.rest, mark = excluded.mark, upstream = excluded.upstream,
			lane = excluded.lane, sent = 0, tries = 0, in_a_row = 0,
			first_said = 0, ask_at = excluded.ask_at, person = false
$$;

-- The same of an operation, unless its job is on its way or lost: then the job tells. No
-- upstream's name has a space, and every scope that a gateway makes begins with the name
-- and, unless that is all, a space.
CREATE OR REPLACE FUNCTION hapax.begin_question(named uuid) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
	SELECT hapax.begin_question(o.id, o.rest, o.mark, 0,
			CASE WHEN o.route IN ('', 'application') THEN ''
				ELSE split_part(o.scope, ' ', 1) END,
			coalesce(nullif(o.route, ''), '?'), o.changed)
		FROM hapax.operation o
		WHERE o.id = named AND o.state = 4 AND NOT EXISTS (SELECT 1 FROM hapax.job j
			WHERE j.operation = o.id AND j.mark = o.mark AND j.answers
			AND j.state IN (1, 2, 4))
$$;

-- ---- triggers ----

-- Every change of an operation but the plain one, from in progress to completed, which
-- writes its own row of `due`. Whoever makes the change, by whatever way:
--  - what is failed, unknown, pending or not readable is aside; nothing else is;
--  - an attempt in progress is in flight, a time to expire is in due;
--  - a question begins when an outcome is lost, and is over when it is known; one that
--    is unknown once more is asked about from the beginning;
--  - that an attempt was declined says nothing of the next one.
CREATE OR REPLACE FUNCTION hapax.operation_moved() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	whole boolean := hapax.is_whole(NEW);
BEGIN
	IF NOT whole OR NEW.state NOT IN (1, 3) THEN
		INSERT INTO hapax.aside AS a (id, state, changed)
			VALUES (NEW.id, CASE WHEN whole THEN NEW.state ELSE 4 END, NEW.changed)
			ON CONFLICT (id) DO UPDATE SET state = excluded.state, changed = excluded.changed
			WHERE a.state <> excluded.state OR a.changed <> excluded.changed;
	ELSE
		DELETE FROM hapax.aside WHERE id = NEW.id;
	END IF;
	IF NEW.state = 1 AND (OLD.state <> 1 OR OLD.lease_until <> NEW.lease_until) THEN
		INSERT INTO hapax.flight (at, ids) VALUES (NEW.lease_until, ARRAY[NEW.id]);
	END IF;
	IF NEW.expires > 0 AND (OLD.expires <> NEW.expires OR OLD.state <> NEW.state) THEN
		INSERT INTO hapax.due (at, ids) VALUES (NEW.expires, ARRAY[NEW.id]);
	END IF;
	IF NEW.state = 4 AND OLD.state <> 4 THEN
		PERFORM hapax.begin_question(NEW.id);
	ELSIF (OLD.state = 4 AND NEW.state <> 4) OR (OLD.state = 2 AND NEW.state = 3) THEN
		DELETE FROM hapax.reconcile WHERE id = OLD.id AND job = 0;
	ELSIF OLD.attempt <> NEW.attempt THEN
		DELETE FROM hapax.reconcile WHERE id = OLD.id AND job = 0 AND evidence = 2;
	END IF;
	RETURN NULL;
END $$;
-- Nor does one that becomes a tombstone change anything but its answer.
CREATE OR REPLACE TRIGGER moved AFTER UPDATE ON hapax.operation
	FOR EACH ROW WHEN ((OLD.state <> 1 OR NEW.state <> 3) AND NOT (OLD.state = 3
		AND NEW.state = 3 AND OLD.expires = NEW.expires AND NEW.answer IS NULL
		AND (OLD.answer IS NOT NULL OR OLD.kept)))
	EXECUTE FUNCTION hapax.operation_moved();

CREATE OR REPLACE FUNCTION hapax.operation_removed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	DELETE FROM hapax.aside WHERE id = OLD.id;
	RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER removed AFTER DELETE ON hapax.operation
	FOR EACH ROW WHEN (OLD.state <> 3)
	EXECUTE FUNCTION hapax.operation_removed();

-- A job that is lost is asked about. Of one that ended, what was said before anybody
-- asked is over too. One that ends leaves the question to its operation, if that is
-- unknown, and one that goes out again takes it back.
CREATE OR REPLACE FUNCTION hapax.job_moved() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	spoke boolean := OLD.state IN (1, 2, 4);
	speaks boolean := NEW.state IN (1, 2, 4);
BEGIN
	IF NEW.state = 4 THEN
		PERFORM hapax.begin_question(NEW.operation, NEW.rest, NEW.mark, NEW.id, '',
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
CREATE OR REPLACE TRIGGER moved AFTER UPDATE OF state ON hapax.job
	FOR EACH ROW WHEN (OLD.state <> NEW.state AND (OLD.state >= 3 OR NEW.state >= 3))
	EXECUTE FUNCTION hapax.job_moved();

-- ---- for applications ----

-- What an application calls inside its own transaction, with the value of the
-- Hapax-Lease header: its rows, the answer and the jobs it owes commit together or not
-- at all. Each function locks the operation's row first, matches on the lease token, and
-- asks for the time only then. The moves are those of the record in C, and are tested
-- against it. Errors of their own:
--
--   HX001  the lease is not (any more) the operation's
--   HX002  the operation is not in a state that allows this
--   HX003  a job of this name was enqueued with other content
--   HX004  the lease is malformed
--
-- No application ever locks a row of hapax.lease.

-- The operation whose lease this is, locked until the transaction ends.
CREATE OR REPLACE FUNCTION hapax.hold(lease text) RETURNS hapax.operation
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	o hapax.operation;
	given uuid;
BEGIN
	IF lease IS NULL OR lease !~ '^[0-9a-f]{64}[.][0-9a-f]{32}$' THEN
		RAISE EXCEPTION 'this is not a lease: pass the value of the Hapax-Lease header as it came'
			USING ERRCODE = 'HX004';
	END IF;
	PERFORM hapax.make_durable();
	given := substr(lease, 66)::uuid;
	SELECT * INTO o FROM hapax.operation f WHERE f.id = substr(lease, 1, 32)::uuid FOR UPDATE;
	IF NOT FOUND OR o.rest <> substr(lease, 33, 32)::uuid OR o.token <> given
			OR given = '00000000-0000-0000-0000-000000000000' THEN
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

CREATE OR REPLACE FUNCTION hapax.refuse(o hapax.operation, what text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RAISE EXCEPTION '% is refused: the operation is %', what,
		(ARRAY['in_progress', 'failed_retryable', 'completed', 'unknown', 'pending'])[o.state]
		USING ERRCODE = 'HX002';
END $$;

CREATE OR REPLACE FUNCTION hapax.note(o hapax.operation, at bigint, what text, reason text,
	status integer) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
	INSERT INTO hapax.event (id, rest, at, attempt, what, actor, reason, status)
	VALUES (o.id, o.rest, at, o.attempt, what, 'application', reason, status)
$$;

-- Header lines as they are stored and replayed: "Name: value", each with CR LF. What
-- belongs to one delivery, or is hapax's to say, is left out; what cannot stand in an
-- answer is an error.
CREATE OR REPLACE FUNCTION hapax.kept_headers(headers text) RETURNS bytea
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
			'^(connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|content-length|set-cookie|date|age|via|alt-svc|clear-site-data|authentication-info|ratelimit|ratelimit-.*|server-timing|idempotent-replayed|idempotent-reconstructed|idempotency-expires|hapax[-_].*)$';
		kept := kept || split_part(line, ':', 1) || ': ' ||
			btrim(substr(line, position(':' IN line) + 1), E' \t') || E'\r\n';
	END LOOP;
	IF octet_length(kept) > 65536 THEN
		RAISE EXCEPTION 'the headers are too large: at most 64 KiB are kept'
			USING ERRCODE = 'program_limit_exceeded';
	END IF;
	RETURN convert_to(kept, 'UTF8');
END $$;

-- An answer as it is stored, and its parts; NULLs where it is not the operation's.
CREATE OR REPLACE FUNCTION hapax.pack_answer(id uuid, rest uuid, headers bytea, body bytea)
RETURNS bytea
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT sha256(uuid_send(id) || uuid_send(rest) || int4send(octet_length(headers)) ||
		headers || body) || int4send(octet_length(headers)) || headers || body
$$;

CREATE OR REPLACE FUNCTION hapax.unpack_answer(o hapax.operation, OUT headers bytea, OUT body bytea)
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	len integer;
BEGIN
	IF o.answer IS NULL OR octet_length(o.answer) < 36 OR substr(o.answer, 1, 32) <>
			sha256(uuid_send(o.id) || uuid_send(o.rest) || substr(o.answer, 33)) THEN
		RETURN;
	END IF;
	len := ('x' || encode(substr(o.answer, 33, 4), 'hex'))::bit(32)::integer;
	IF len NOT BETWEEN 0 AND octet_length(o.answer) - 36 THEN
		RETURN;
	END IF;
	headers := substr(o.answer, 37, len);
	body := substr(o.answer, 37 + len);
END $$;

-- The answer to the request, now and for every retry; once it is committed, it is the
-- truth, whatever HTTP said. The same attempt again changes nothing. `retention_ms`: the
-- answer is kept at least so long; never shorter than the route says.
CREATE OR REPLACE FUNCTION hapax.complete(lease text, status integer, headers text, body bytea,
	retention_ms bigint DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	o hapax.operation := hapax.hold(complete.lease);
	now_ms bigint := hapax.clock_ms();
	head bytea := hapax.kept_headers(complete.headers);
	content bytea := coalesce(complete.body, '');
	code integer := complete.status;
	ends bigint := greatest(o.expires, now_ms + o.retention, now_ms + complete.retention_ms);
BEGIN
	IF complete.retention_ms NOT BETWEEN 0 AND 3155760000000 THEN
		RAISE EXCEPTION 'retention_ms is 0 to a hundred years'
			USING ERRCODE = 'invalid_parameter_value';
	END IF;
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
	UPDATE hapax.operation u SET state = 3, changed = now_ms, status = code, kept = true,
		expires = ends, revision = u.revision + 1,
		answer = hapax.pack_answer(o.id, o.rest, head, content)
		WHERE u.id = o.id;
	INSERT INTO hapax.due (at, ids) VALUES (ends, ARRAY[o.id]);
	IF o.attempt > 1 OR o.state <> 1 THEN
		PERFORM hapax.note(o, now_ms, 'completed', '', code);
	END IF;
END $$;

-- A phase is done, and `data` is what the next one needs: an attempt that comes after a
-- crash is told, and goes on from there.
CREATE OR REPLACE FUNCTION hapax.advance(lease text, point text, data bytea) RETURNS void
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
	UPDATE hapax.operation u SET advanced = true, point = reached, point_data = advance.data,
		revision = u.revision + 1
		WHERE u.id = o.id;
	PERFORM hapax.note(o, hapax.clock_ms(), 'advanced', reached, 0);
END $$;

-- Where an earlier attempt got to; both are NULL where there is no such point.
CREATE OR REPLACE FUNCTION hapax.recovery(lease text, OUT point text, OUT data bytea)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	o hapax.operation := hapax.hold(recovery.lease);
BEGIN
	IF o.point <> '' THEN
		point := o.point;
		data := o.point_data;
	END IF;
END $$;

-- Nothing happened: a retry may run at once. After a part was committed, that is not
-- true any more, and a person has to look, unless the route resumes.
CREATE OR REPLACE FUNCTION hapax.not_executed(lease text) RETURNS void
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
		UPDATE hapax.operation u SET state = 4, changed = now_ms,
			last_error = 'not_executed', revision = u.revision + 1
			WHERE u.id = o.id;
	ELSE
		UPDATE hapax.operation u SET state = 2, changed = now_ms,
			last_error = 'not_executed',
			token = '00000000-0000-0000-0000-000000000000',
			expires = greatest(o.expires, now_ms + o.retention), revision = u.revision + 1
			WHERE u.id = o.id;
	END IF;
	PERFORM hapax.note(o, now_ms, 'not_executed', '', o.status);
END $$;

-- The provider has seen the request, and calls it by this id: a webhook that names the id
-- is about this operation. The last one counts. Like a phase that is done, it makes "not
-- executed" untrue.
CREATE OR REPLACE FUNCTION hapax.provider_id(lease text, provider_id text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	o hapax.operation := hapax.hold(provider_id.lease);
	given text := provider_id.provider_id;
BEGIN
	IF given IS NULL OR given !~ '^[!-~]{1,127}$' THEN
		RAISE EXCEPTION 'a provider''s id is 1 to 127 visible ASCII characters'
			USING ERRCODE = 'invalid_parameter_value';
	END IF;
	IF o.state NOT IN (1, 4) THEN
		PERFORM hapax.refuse(o, 'provider_id');
	END IF;
	INSERT INTO hapax.provider AS p (id, mark, provider_id) VALUES (o.id, o.mark, given)
		ON CONFLICT (id) DO UPDATE SET mark = excluded.mark,
			provider_id = excluded.provider_id;
	UPDATE hapax.operation u SET advanced = true, revision = u.revision + 1 WHERE u.id = o.id;
	PERFORM hapax.note(o, hapax.clock_ms(), 'provider_id', given, 0);
END $$;

-- The attempt goes on for so long from now; never for shorter than before. Others see it
-- when this transaction has committed, so it is called in one of its own, while the work
-- is under way. Written to the operation's row, which the caller holds in any case.
CREATE OR REPLACE FUNCTION hapax.renew(lease text, lease_ms bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	o hapax.operation := hapax.hold(renew.lease);
BEGIN
	IF renew.lease_ms IS NULL OR renew.lease_ms NOT BETWEEN 1 AND 3600000 THEN
		RAISE EXCEPTION 'a lease is renewed for 1 ms to an hour'
			USING ERRCODE = 'invalid_parameter_value';
	END IF;
	IF o.state <> 1 THEN
		PERFORM hapax.refuse(o, 'renew');
	END IF;
	UPDATE hapax.operation u SET
		lease_until = greatest(u.lease_until, hapax.clock_ms() + renew.lease_ms),
		revision = u.revision + 1
		WHERE u.id = o.id;
END $$;

-- An external effect was asked for and no answer came: the attempt becomes what its
-- on_lost says, without waiting for the lease to run out. The same again changes nothing.
CREATE OR REPLACE FUNCTION hapax.mark_unknown(lease text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	o hapax.operation := hapax.hold(mark_unknown.lease);
	now_ms bigint := hapax.clock_ms();
BEGIN
	IF o.state NOT IN (1, 4, 5) THEN
		PERFORM hapax.refuse(o, 'mark_unknown');
	END IF;
	IF o.state = 4 THEN
		RETURN;
	END IF;
	IF o.state = 5 OR o.when_lost = 0 THEN
		UPDATE hapax.operation u SET state = 4, changed = now_ms, expires = 0,
			last_error = 'outcome_unknown', revision = u.revision + 1
			WHERE u.id = o.id;
	ELSE
		UPDATE hapax.operation u SET state = 2, changed = now_ms,
			last_error = 'outcome_unknown',
			token = '00000000-0000-0000-0000-000000000000',
			expires = greatest(o.expires, now_ms + o.retention), revision = u.revision + 1
			WHERE u.id = o.id;
	END IF;
	PERFORM hapax.note(o, now_ms, 'outcome_lost', '', o.status);
END $$;

-- The lines of a stored answer as text. What the gateway kept is bytes; HTTP says that
-- those which are not UTF-8 are ISO 8859-1. The gateway's own last line, which says from
-- which trace the answer comes, is no part of the answer.
CREATE OR REPLACE FUNCTION hapax.header_text(headers bytea) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	lines text;
BEGIN
	BEGIN
		lines := convert_from(headers, 'UTF8');
	EXCEPTION
		WHEN character_not_in_repertoire OR untranslatable_character THEN
			lines := convert_from(headers, 'LATIN1');
	END;
	RETURN regexp_replace(lines, E'(^|\n)Hapax-Trace: [0-9a-f-]{55}\r\n$', '\1');
END $$;

-- A delivery owed to an outside service. The name is the job's own within its operation,
-- over all attempts: the same again is no second job.
CREATE OR REPLACE FUNCTION hapax.enqueue(lease text, name text, target text, method text,
	path text, headers text, body bytea) RETURNS void
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
	INSERT INTO hapax.job AS j (operation, rest, mark, name, target, method, path, headers,
			body, created, changed, due)
		VALUES (o.id, o.rest, o.mark, enqueue.name, enqueue.target, enqueue.method,
			enqueue.path, head, content, now_ms, now_ms, now_ms)
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
	UPDATE hapax.operation u SET advanced = true, revision = u.revision + 1 WHERE u.id = o.id;
END $$;

-- An entry for each of these, which are about to be used again or forgotten; none where none
-- is to be written.
CREATE OR REPLACE FUNCTION hapax.keep_history(ids uuid[], now_ms bigint) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
	INSERT INTO hapax.history (id, rest, mark, created, changed, attempt, status, state, tenant,
			key, method, path, route)
		SELECT o.id, o.rest, o.mark, o.created, o.changed, o.attempt, o.status, o.state,
			o.tenant, o.key, o.method, o.path, o.route
		FROM hapax.operation o CROSS JOIN hapax.history_rule r
		WHERE o.id = ANY(ids) AND o.state IN (2, 3) AND r.number = 1 AND r.retention > 0
			AND o.created > now_ms - r.retention
$$;

-- Reserves the key, or tells what became of it. `verdict`: created and retried
-- (execute, with this lease, after `point` where there is one), replay (status, headers
-- and body are the answer; not `kept`: the status alone is known), in_progress (a
-- pending one too), unknown, mismatch (the key was used with another fingerprint).
--
-- `operation` is the reference, which gives no right to write; `lease` does.
--
-- `on_lost`: what becomes of the attempt if its lease runs out. unknown: nobody can
-- tell; resume: it runs again, after its recovery point; repeat: all it does commits
-- with complete, so it has, or nothing happened.
--
-- `token`: 16 random bytes of the caller's. Asked again with the same, an attempt that
-- is under way is this very reservation.
CREATE OR REPLACE FUNCTION hapax.begin(tenant text, scope text, key text, fingerprint bytea,
	lease_ms bigint, retention_ms bigint, on_lost text DEFAULT 'repeat',
	token bytea DEFAULT NULL, OUT verdict text, OUT lease text, OUT attempt integer,
	OUT status integer, OUT headers text, OUT body bytea, OUT operation text,
	OUT point text, OUT data bytea, OUT kept boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	tenant_bytes bytea := convert_to(tenant, 'UTF8');
	scope_bytes bytea := convert_to(scope, 'UTF8');
	key_bytes bytea := convert_to(key, 'UTF8');
	void uuid := '00000000-0000-0000-0000-000000000000';
	-- Of a record that was restored from a provider's export: its request is not known.
	no_request uuid := 'ffffffff-ffff-ffff-ffff-ffffffffffff';
	given bytea := coalesce(begin.token,
		substr(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 1, 16));
	lost integer := array_position(ARRAY['unknown', 'resume', 'repeat'], begin.on_lost) - 1;
	-- A hundred years: sums of times stay far from the end of their range.
	time_max bigint := 3155760000000;
	made uuid;
	made_mark uuid;
	hash bytea;
	named uuid;
	named_rest uuid;
	now_ms bigint;
	o hapax.operation;
	stored record;
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
	IF octet_length(given) <> 16 OR given = uuid_send(void) THEN
		RAISE EXCEPTION 'a token is 16 random bytes'
			USING ERRCODE = 'invalid_parameter_value';
	END IF;
	PERFORM hapax.make_durable();
	made := encode(given, 'hex')::uuid;
	made_mark := hapax.mark(made);
	hash := sha256(int8send(octet_length(tenant_bytes)) || tenant_bytes ||
		int8send(octet_length(scope_bytes)) || scope_bytes ||
		int8send(octet_length(key_bytes)) || key_bytes);
	named := encode(substr(hash, 1, 16), 'hex')::uuid;
	named_rest := encode(substr(hash, 17), 'hex')::uuid;
	now_ms := hapax.clock_ms();
	INSERT INTO hapax.operation AS n (id, rest, token, mark, recipe, created, owner, retention,
			fingerprint, tenant_hash, tenant, scope, key, method, path, route,
			lease_until, changed, attempt, when_lost, state)
		VALUES (named, named_rest, made, made_mark, void, now_ms, 0, begin.retention_ms,
			begin.fingerprint, sha256(tenant_bytes), begin.tenant, begin.scope, begin.key,
			'', '', 'application', now_ms + begin.lease_ms, now_ms, 1, lost, 1)
		ON CONFLICT DO NOTHING RETURNING n.attempt INTO attempt;
	IF FOUND THEN
		INSERT INTO hapax.flight (at, ids) VALUES (now_ms + begin.lease_ms, ARRAY[named]);
		verdict := 'created';
		lease := encode(hash, 'hex') || '.' || hapax.hex(made);
		operation := encode(hash, 'hex') || '.' || hapax.hex(made_mark);
		RETURN;
	END IF;
	SELECT * INTO o FROM hapax.operation f WHERE f.id = named FOR UPDATE;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'the operation came or went meanwhile: try the transaction again'
			USING ERRCODE = 'serialization_failure';
	END IF;
	now_ms := hapax.clock_ms();
	attempt := o.attempt;
	operation := encode(hash, 'hex') || '.' || hapax.hex(o.mark);
	IF o.rest <> named_rest THEN
		verdict := 'mismatch';
		RETURN;
	END IF;
	IF NOT hapax.is_whole(o) THEN
		operation := NULL;
		verdict := 'unknown';
		RETURN;
	END IF;
	IF o.state <> 5 AND o.expires BETWEEN 1 AND now_ms THEN
		verdict := 'created';
	ELSIF o.state = 1 AND o.token = made THEN
		verdict := CASE WHEN o.attempt > 1 THEN 'retried' ELSE 'created' END;
		lease := encode(hash, 'hex') || '.' || hapax.hex(made);
		point := nullif(o.point, '');
		data := CASE WHEN o.point <> '' THEN o.point_data END;
		RETURN;
	ELSIF o.fingerprint <> begin.fingerprint
			AND (o.recipe <> no_request OR o.state <> 3 OR o.kept) THEN
		verdict := 'mismatch';
	ELSIF o.state = 3 THEN
		-- An answer that is not whole is nobody's.
		stored := hapax.unpack_answer(o);
		IF (CASE WHEN o.answer IS NULL THEN NOT o.kept ELSE stored.body IS NOT NULL END) THEN
			verdict := 'replay';
			status := o.status;
			kept := o.kept;
			headers := hapax.header_text(stored.headers);
			body := stored.body;
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
		UPDATE hapax.operation u SET state = 4, changed = now_ms, last_error = 'lease_lost',
			revision = u.revision + 1 WHERE u.id = o.id;
		PERFORM hapax.note(o, now_ms, 'lease_lost', 'the lease ran out', o.status);
		verdict := 'unknown';
	ELSE
		verdict := 'retried';
	END IF;
	IF verdict NOT IN ('created', 'retried') THEN
		RETURN;
	END IF;
	lease := encode(hash, 'hex') || '.' || hapax.hex(made);
	IF verdict = 'created' THEN
		PERFORM hapax.keep_history(ARRAY[o.id], now_ms);
		attempt := 1;
		operation := encode(hash, 'hex') || '.' || hapax.hex(made_mark);
	ELSE
		attempt := o.attempt + 1;
		point := nullif(o.point, '');
		data := CASE WHEN o.point <> '' THEN o.point_data END;
	END IF;
	UPDATE hapax.operation u SET state = 1, attempt = begin.attempt, token = made,
		mark = CASE verdict WHEN 'created' THEN made_mark ELSE o.mark END,
		created = CASE verdict WHEN 'created' THEN now_ms ELSE o.created END,
		fingerprint = begin.fingerprint, recipe = void, owner = 0, changed = now_ms,
		expires = 0, retention = begin.retention_ms, tombstone = 0,
		lease_until = now_ms + begin.lease_ms, revision = u.revision + 1,
		status = 0, kept = false, when_lost = lost, advanced = false,
		last_error = CASE WHEN verdict = 'created' THEN '' WHEN o.state = 1 THEN 'lease_lost'
			ELSE o.last_error END,
		point = coalesce(begin.point, ''), point_data = begin.data,
		answer = CASE verdict WHEN 'created' THEN NULL ELSE u.answer END
		WHERE u.id = o.id;
	o.attempt := attempt;
	PERFORM hapax.note(o, now_ms, 'reserved', CASE WHEN verdict = 'created' AND o.state = 3
			THEN 'executed again: the key''s operation had happened and expired'
			WHEN verdict = 'created' THEN 'the key had expired and is used again'
			WHEN o.state = 1 THEN 'the lease ran out' ELSE '' END, 0);
END $$;

-- ---- for a team's own pipeline ----

-- What somebody outside hapax found out about an outcome that nobody knows. The rules are
-- those of a probe or a webhook (core/reconcile.h), and are tested against them: applied
-- and declined settle at once; not applied only when it was said twice in a row, both
-- after settle_after, and confirm_after apart; nothing overrides completed. settle_after
-- is the route's, or the target's, as a gateway made it known in hapax.lane.
--
-- Errors of its own, besides HX004 for a reference that is none:
--
--   HX005  there is no operation of this reference (any more)
--   HX006  settle_after is not known, and not_applied cannot be judged without it

CREATE OR REPLACE FUNCTION hapax.settle_event(o hapax.operation, at bigint, attempt bigint,
	what text, reason text, status integer) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
	INSERT INTO hapax.event (id, rest, at, attempt, what, actor, reason, status)
	VALUES (o.id, o.rest, at, attempt, what, 'settler', reason, status)
$$;

-- The row of questions about an operation (job 0) or a job of it, written anew; whom to
-- ask is said when the outcome is lost.
CREATE OR REPLACE FUNCTION hapax.put_question(q hapax.reconcile) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
	INSERT INTO hapax.reconcile (id, rest, mark, job, upstream, lane, sent, tries, in_a_row,
			first_said, ask_at, evidence, person)
		VALUES (q.id, q.rest, q.mark, q.job, '', '?', q.sent, q.tries, q.in_a_row,
			q.first_said, q.ask_at, q.evidence, q.person)
		ON CONFLICT (id, job) DO UPDATE SET rest = excluded.rest, mark = excluded.mark,
			sent = excluded.sent, tries = excluded.tries, in_a_row = excluded.in_a_row,
			first_said = excluded.first_said, ask_at = excluded.ask_at,
			evidence = excluded.evidence, person = excluded.person
$$;

-- Completed with this answer, NULL: that it happened, or was declined, is all there is to
-- tell. A failure that was seen on the way is not what the operation came to.
CREATE OR REPLACE FUNCTION hapax.settle_completed(o hapax.operation, now_ms bigint, code integer,
	stored bytea, what text, reason text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	ends_as integer := CASE WHEN code <> 0 THEN code WHEN o.status >= 400 THEN 0
		ELSE o.status END;
BEGIN
	UPDATE hapax.operation u SET state = 3, changed = now_ms, status = ends_as,
		kept = stored IS NOT NULL, answer = stored,
		expires = greatest(o.expires, now_ms + o.retention), revision = u.revision + 1
		WHERE u.id = o.id;
	PERFORM hapax.settle_event(o, now_ms, o.attempt, what, reason, ends_as);
END $$;

-- An operation whose answer a job brings is settled through that job. Only what has a
-- token can be answered for.
CREATE OR REPLACE FUNCTION hapax.settle_job(o hapax.operation, j hapax.job, now_ms bigint,
	said text, code integer, stored bytea, reason text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	void uuid := '00000000-0000-0000-0000-000000000000';
	follows boolean := o.state IN (4, 5) AND o.token <> void;
	seen integer := CASE WHEN j.status <> 0 THEN j.status ELSE o.status END;
BEGIN
	PERFORM hapax.settle_event(o, now_ms, j.attempt, 'job_resolved_' || said,
		coalesce(nullif(reason, ''), j.name), 0);
	IF said <> 'not_applied' AND follows THEN
		PERFORM hapax.settle_completed(o, now_ms, code, stored, 'completed', reason);
	ELSIF said = 'not_applied' AND follows AND o.state = 4 THEN
		UPDATE hapax.operation u SET state = 5, changed = now_ms, status = seen,
			expires = greatest(o.expires, now_ms + o.retention), revision = u.revision + 1
			WHERE u.id = o.id;
		PERFORM hapax.settle_event(o, now_ms, o.attempt, 'requeued', reason, seen);
	END IF;
	UPDATE hapax.job u SET
		state = CASE said WHEN 'applied' THEN 3 WHEN 'declined' THEN 5 ELSE 1 END,
		changed = now_ms,
		token = CASE said WHEN 'not_applied' THEN void ELSE u.token END,
		due = CASE said WHEN 'not_applied' THEN now_ms ELSE u.due END,
		unsure = u.unsure AND said <> 'not_applied'
		WHERE u.id = j.id;
END $$;

-- One more "not applied", about this moment: the row of questions as it is then, with one
-- more in a row where it counts.
CREATE OR REPLACE FUNCTION hapax.count_not_applied(q hapax.reconcile, lane_upstream text,
	lane_name text, now_ms bigint) RETURNS hapax.reconcile
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	known hapax.lane;
BEGIN
	SELECT * INTO known FROM hapax.lane l
		WHERE l.upstream = lane_upstream AND l.name = lane_name AND l.settle_after > 0;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'not_applied cannot be judged: settle_after of "%" is not known',
				lane_name
			USING ERRCODE = 'HX006', HINT = CASE lane_name
			WHEN 'application' THEN 'The application began it, so that no route says it: a person settles it with hapax keys resolve.'
			WHEN '?' THEN 'It has no route: a person settles it with hapax keys resolve.'
			ELSE 'Write reconcile.settle_after for it in the configuration and start or reload a gateway; or let a person settle it with hapax keys resolve.' END;
	END IF;
	IF now_ms >= q.sent + known.settle_after AND (q.in_a_row = 0
			OR (now_ms > q.first_said AND now_ms >= q.first_said + known.confirm_after)) THEN
		q.first_said := CASE q.in_a_row WHEN 0 THEN now_ms ELSE q.first_said END;
		q.in_a_row := q.in_a_row + 1;
	END IF;
	RETURN q;
END $$;

-- The answer as it is stored, and its status: what was given, marked as not the original.
-- What was declined without one is answered as by hapax itself.
CREATE OR REPLACE FUNCTION hapax.settled_answer(o hapax.operation, said text, given integer,
	headers text, body bytea, OUT code integer, OUT stored bytea)
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	code := coalesce(given, CASE said WHEN 'declined' THEN 402 ELSE 0 END);
	IF given IS NOT NULL THEN
		stored := hapax.pack_answer(o.id, o.rest, hapax.kept_headers(headers) ||
			convert_to(E'Idempotent-Reconstructed: true\r\n', 'UTF8'), coalesce(body, ''));
	ELSIF said = 'declined' THEN
		stored := hapax.pack_answer(o.id, o.rest,
			convert_to(E'Content-Type: application/problem+json\r\n', 'UTF8'),
			convert_to('{"type":"/.hapax/problems/declined","title":"The request was '
				'declined","status":402,"code":"declined","executed":"yes",'
				'"retry":"never"}' || E'\n', 'UTF8'));
	END IF;
END $$;

CREATE OR REPLACE FUNCTION hapax.check_settlement(reference text, ruling text, status integer,
	headers text, body bytea) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	wrong text;
BEGIN
	IF reference IS NULL OR reference !~ '^[0-9a-f]{64}[.][0-9a-f]{32}$' THEN
		RAISE EXCEPTION 'this is not a reference: pass the value of the Hapax-Operation header as it came'
			USING ERRCODE = 'HX004';
	END IF;
	IF octet_length(body) > 16777216 THEN
		RAISE EXCEPTION 'the body is too large: at most 16 MiB are kept'
			USING ERRCODE = 'program_limit_exceeded';
	END IF;
	wrong := CASE
		WHEN ruling IS NULL OR ruling NOT IN ('applied', 'declined', 'not_applied')
			THEN 'a ruling is applied, declined or not_applied'
		WHEN status IS NULL AND (headers <> '' OR octet_length(body) > 0)
			THEN 'an answer needs its status'
		WHEN ruling = 'not_applied' AND status IS NOT NULL
			THEN 'what was not applied has no answer'
		WHEN ruling = 'applied' AND status NOT BETWEEN 200 AND 399
			THEN 'the status of an answer to what was applied is 200 to 399'
		WHEN ruling = 'declined' AND status NOT BETWEEN 400 AND 599
			THEN 'the status of an answer to what was declined is 400 to 599'
		END;
	IF wrong IS NOT NULL THEN
		RAISE EXCEPTION '%', wrong USING ERRCODE = 'invalid_parameter_value';
	END IF;
END $$;

-- `settled`; `kept`: as evidence for when the outcome is unknown, or as the first of two
-- not_applied; `too_early`: a not_applied that counts for nothing; `ignored`: nothing is
-- open that it could settle.
CREATE OR REPLACE FUNCTION hapax.settle(reference text, ruling text, status integer DEFAULT NULL,
	headers text DEFAULT NULL, body bytea DEFAULT NULL, reason text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	said text := settle.ruling;
	why text := left(coalesce(settle.reason, ''), 1024);
	now_ms bigint;
	o hapax.operation;
	j hapax.job;
	q hapax.reconcile;
	answer record;
	by_job boolean;
	before bigint;
	settles boolean;
BEGIN
	PERFORM hapax.check_settlement(settle.reference, said, settle.status, settle.headers,
		settle.body);
	PERFORM hapax.make_durable();
	SELECT * INTO o FROM hapax.operation f WHERE f.id = substr(settle.reference, 1, 32)::uuid
		FOR UPDATE;
	IF NOT FOUND OR o.rest <> substr(settle.reference, 33, 32)::uuid
			OR o.mark <> substr(settle.reference, 66)::uuid THEN
		RAISE EXCEPTION 'there is no operation of this reference (any more)'
			USING ERRCODE = 'HX005',
			HINT = 'It has expired, was forgotten, or its key is used for another one.';
	END IF;
	IF NOT hapax.is_whole(o) THEN
		RAISE EXCEPTION 'the operation''s row cannot be read: a person has to settle it'
			USING ERRCODE = 'data_corrupted';
	END IF;
	SELECT * INTO j FROM hapax.job f WHERE f.operation = o.id AND f.mark = o.mark AND f.answers
		ORDER BY f.id LIMIT 1 FOR UPDATE;
	by_job := FOUND AND o.state <> 3 AND (j.state IN (1, 2, 4)
		OR (j.state = 5 AND o.state = 5));
	now_ms := hapax.clock_ms();
	SELECT * INTO q FROM hapax.reconcile f WHERE f.id = o.id AND f.mark = o.mark
		AND f.job = CASE WHEN by_job THEN j.id ELSE 0 END;
	IF NOT FOUND THEN
		q := (o.id, o.rest, o.mark, CASE WHEN by_job THEN j.id ELSE 0 END, '', '?', 0, 0, 0, 0,
			0, 0, false);
	END IF;
	settles := CASE WHEN by_job THEN j.state = 4 ELSE o.state = 4 END;
	IF settles AND said = 'not_applied' THEN
		-- Nothing was sent after it became unknown.
		q.sent := CASE WHEN q.sent > 0 THEN q.sent WHEN by_job THEN j.changed
			ELSE o.changed END;
		before := q.in_a_row;
		q := hapax.count_not_applied(q,
			CASE WHEN by_job OR o.route IN ('', 'application') THEN ''
				ELSE split_part(o.scope, ' ', 1) END,
			CASE WHEN by_job THEN 'target:' || j.target
				ELSE coalesce(nullif(o.route, ''), '?') END, now_ms);
		settles := q.in_a_row > before AND q.in_a_row >= 2;
		IF NOT settles THEN
			PERFORM hapax.put_question(q);
			RETURN CASE WHEN q.in_a_row > before THEN 'kept' ELSE 'too_early' END;
		END IF;
	ELSIF NOT settles AND said = 'applied' THEN
		-- Thought not to have happened, and to be sent or executed again.
		settles := CASE WHEN by_job THEN j.state = 5 OR (j.state = 1 AND j.attempt > 0
			AND NOT j.unsure) ELSE o.state = 2 AND o.when_lost = 0 END;
	END IF;
	IF settles THEN
		answer := hapax.settled_answer(o, said, settle.status, settle.headers, settle.body);
		IF by_job THEN
			PERFORM hapax.settle_job(o, j, now_ms, said, answer.code, answer.stored, why);
		ELSIF said = 'not_applied' THEN
			UPDATE hapax.operation u SET state = 2, changed = now_ms,
				token = '00000000-0000-0000-0000-000000000000',
				expires = greatest(o.expires, now_ms + o.retention),
				revision = u.revision + 1 WHERE u.id = o.id;
			PERFORM hapax.settle_event(o, now_ms, o.attempt, 'ruled_not_applied', why,
				o.status);
		ELSE
			PERFORM hapax.settle_completed(o, now_ms, answer.code, answer.stored,
				'ruled_' || said, why);
		END IF;
		RETURN 'settled';
	END IF;
	IF said = 'not_applied' OR NOT (CASE WHEN by_job THEN j.state IN (1, 2)
			ELSE o.state IN (1, 5) END) THEN
		RETURN 'ignored';
	END IF;
	IF q.evidence <> (CASE said WHEN 'applied' THEN 1 ELSE 2 END) THEN
		q.evidence := CASE said WHEN 'applied' THEN 1 ELSE 2 END;
		PERFORM hapax.put_question(q);
		-- Somebody has seen that it happened: "not executed" is not believed any more.
		IF said = 'applied' AND NOT by_job AND o.state = 1 AND NOT o.advanced THEN
			UPDATE hapax.operation u SET advanced = true, revision = u.revision + 1
				WHERE u.id = o.id;
		END IF;
		PERFORM hapax.settle_event(o, now_ms, CASE WHEN by_job THEN j.attempt
			ELSE o.attempt END, 'evidence', coalesce(nullif(why, ''),
			CASE WHEN by_job THEN j.name ELSE said END), 0);
	END IF;
	RETURN 'kept';
END $$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA hapax FROM PUBLIC;

-- Roles that may do what they are for and nothing else, for applications, for whoever
-- settles and for gateways to be members of. Where this role may not make them, an
-- administrator does: before the schema, then it grants what follows; or later, with the
-- same grants (docs/reference/sql.md).
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
	IF NOT EXISTS (SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = 'hapax_settler') THEN
		CREATE ROLE hapax_settler NOLOGIN;
	END IF;
EXCEPTION
	WHEN insufficient_privilege OR duplicate_object OR unique_violation THEN
		NULL;
END $$;

DO $$
BEGIN
	IF NOT EXISTS (SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = 'hapax_gateway') THEN
		CREATE ROLE hapax_gateway NOLOGIN;
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
			hapax.complete(text, integer, text, bytea, bigint),
			hapax.advance(text, text, bytea),
			hapax.recovery(text),
			hapax.not_executed(text),
			hapax.renew(text, bigint),
			hapax.mark_unknown(text),
			hapax.provider_id(text, text),
			hapax.enqueue(text, text, text, text, text, text, bytea),
			hapax.begin(text, text, text, bytea, bigint, bigint, text, bytea)
			TO hapax_application;
	END IF;
END $$;

DO $$
BEGIN
	IF EXISTS (SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = 'hapax_settler') THEN
		GRANT USAGE ON SCHEMA hapax TO hapax_settler;
		GRANT EXECUTE ON FUNCTION hapax.settle(text, text, integer, text, bytea, text)
			TO hapax_settler;
	END IF;
END $$;

-- Rows, and no more: it cannot change, empty or drop a table, nor write which schema this is.
DO $$
BEGIN
	IF EXISTS (SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = 'hapax_gateway') THEN
		GRANT USAGE ON SCHEMA hapax TO hapax_gateway;
		GRANT SELECT, INSERT, UPDATE, DELETE ON hapax.operation, hapax.flight, hapax.due,
			hapax.history, hapax.aside, hapax.lease, hapax.event, hapax.job,
			hapax.provider, hapax.route_key, hapax.reconcile TO hapax_gateway;
		GRANT SELECT, INSERT, UPDATE ON hapax.lane TO hapax_gateway;
		GRANT SELECT, INSERT ON hapax.recipe TO hapax_gateway;
		GRANT SELECT, UPDATE ON hapax.history_rule, hapax.slow_round TO hapax_gateway;
		GRANT SELECT ON hapax.schema_version TO hapax_gateway;
		GRANT EXECUTE ON FUNCTION hapax.keep_history(uuid[], bigint) TO hapax_gateway;
	END IF;
END $$;
