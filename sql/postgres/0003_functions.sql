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
	RETURN o;
END $$;

CREATE FUNCTION hapax.refuse(o hapax.operation, what text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RAISE EXCEPTION '% is refused: the operation is %', what,
		(ARRAY['in_progress', 'failed_retryable', 'completed', 'unknown'])[o.state]
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

-- A delivery owed to an outside service. The name is the job's own within its
-- operation, over all attempts: the same again is no second job.
CREATE FUNCTION hapax.enqueue(lease text, name text, target text, method text, path text,
	headers text, body bytea) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	o hapax.operation := hapax.hold(enqueue.lease);
	head text := convert_from(hapax.kept_headers(enqueue.headers), 'UTF8');
	content bytea := coalesce(enqueue.body, '');
	inserted bigint;
BEGIN
	IF o.state NOT IN (1, 4) THEN
		PERFORM hapax.refuse(o, 'enqueue');
	END IF;
	INSERT INTO hapax.job AS j (operation, first, name, target, method, path, headers, body, created)
		VALUES (o.id, o.first, enqueue.name, enqueue.target, enqueue.method, enqueue.path,
			head, content, hapax.clock_ms())
		ON CONFLICT DO NOTHING RETURNING j.id INTO inserted;
	IF inserted IS NULL AND NOT EXISTS (
		SELECT 1 FROM hapax.job j WHERE j.operation = o.id AND j.first = o.first
			AND j.name = enqueue.name AND j.target = enqueue.target
			AND j.method = enqueue.method AND j.path = enqueue.path
			AND j.headers = head AND j.body = content) THEN
		RAISE EXCEPTION 'a job of this name was enqueued with other content'
			USING ERRCODE = 'HX003',
			HINT = 'A job''s name is unique within its operation. Take another name for another job.';
	END IF;
	UPDATE hapax.operation SET advanced = true WHERE id = o.id;
END $$;

-- For an application without the gateway: reserves the key, or tells what
-- became of it. `verdict`: created and retried (execute, with this lease),
-- replay (status, headers and body are the answer), in_progress, unknown,
-- mismatch (the key was used with another fingerprint).
CREATE FUNCTION hapax.begin(tenant text, scope text, key text, fingerprint bytea,
	lease_ms integer, retention_ms integer, OUT verdict text, OUT lease text,
	OUT attempt integer, OUT status integer, OUT headers text, OUT body bytea)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	tenant_bytes bytea := convert_to(tenant, 'UTF8');
	scope_bytes bytea := convert_to(scope, 'UTF8');
	key_bytes bytea := convert_to(key, 'UTF8');
	void bytea := decode(repeat('00', 16), 'hex');
	made bytea := substr(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 1, 16);
	named bytea;
	now_ms bigint;
	o hapax.operation;
BEGIN
	IF tenant IS NULL OR scope IS NULL OR key IS NULL OR length(key) NOT BETWEEN 1 AND 255
			OR fingerprint IS NULL OR octet_length(fingerprint) <> 32
			OR lease_ms IS NULL OR lease_ms < 1 OR retention_ms IS NULL OR retention_ms < 1 THEN
		RAISE EXCEPTION 'begin needs a tenant, a scope, a key of 1 to 255 characters, a fingerprint of 32 bytes, and times in milliseconds above 0'
			USING ERRCODE = 'invalid_parameter_value';
	END IF;
	PERFORM hapax.make_durable();
	named := sha256(int8send(octet_length(tenant_bytes)) || tenant_bytes ||
		int8send(octet_length(scope_bytes)) || scope_bytes ||
		int8send(octet_length(key_bytes)) || key_bytes);
	now_ms := hapax.clock_ms();
	INSERT INTO hapax.operation AS n (id, state, attempt, token, first, fingerprint, recipe,
			tenant_hash, owner, created, changed, retention, lease_until, status, kept,
			tenant, scope, key, method, path, route, when_lost)
		VALUES (named, 1, 1, made, made, begin.fingerprint, void, sha256(tenant_bytes), 0,
			now_ms, now_ms, retention_ms, now_ms + lease_ms, 0, false,
			begin.tenant, begin.scope, begin.key, '', '', 'application', 2)
		ON CONFLICT DO NOTHING RETURNING n.attempt INTO attempt;
	IF FOUND THEN
		verdict := 'created';
		lease := encode(named, 'hex') || '.' || encode(made, 'hex');
		RETURN;
	END IF;
	SELECT * INTO o FROM hapax.operation f WHERE f.id = named FOR UPDATE;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'the operation came or went meanwhile: try the transaction again'
			USING ERRCODE = 'serialization_failure';
	END IF;
	now_ms := hapax.clock_ms();
	attempt := o.attempt;
	IF o.expires IS NOT NULL AND o.expires <= now_ms THEN
		verdict := 'created';
	ELSIF o.fingerprint <> begin.fingerprint THEN
		verdict := 'mismatch';
	ELSIF o.state = 3 THEN
		verdict := 'replay';
		SELECT o.status, convert_from(r.headers, 'UTF8'), r.body INTO status, headers, body
			FROM hapax.response r WHERE r.id = o.id;
		status := coalesce(status, o.status);
	ELSIF o.state = 4 THEN
		verdict := 'unknown';
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
	attempt := CASE verdict WHEN 'created' THEN 1 ELSE o.attempt + 1 END;
	UPDATE hapax.operation u SET state = 1, attempt = begin.attempt, token = made,
		first = CASE verdict WHEN 'created' THEN made ELSE o.first END,
		created = CASE verdict WHEN 'created' THEN now_ms ELSE o.created END,
		fingerprint = begin.fingerprint, recipe = void, owner = 0, changed = now_ms,
		expires = NULL, retention = retention_ms, lease_until = now_ms + lease_ms,
		status = 0, kept = false, when_lost = 2, advanced = false,
		point = CASE verdict WHEN 'created' THEN '' ELSE o.point END,
		point_data = CASE verdict WHEN 'created' THEN NULL ELSE o.point_data END
		WHERE u.id = o.id;
	IF verdict = 'created' THEN
		DELETE FROM hapax.response r WHERE r.id = o.id;
	END IF;
	o.attempt := attempt;
	PERFORM hapax.note(o, now_ms, 'reserved', CASE verdict
		WHEN 'created' THEN 'the key had expired and is used again' ELSE '' END, 0);
	lease := encode(named, 'hex') || '.' || encode(made, 'hex');
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
			hapax.begin(text, text, text, bytea, integer, integer)
			TO hapax_application;
	END IF;
END $$;
