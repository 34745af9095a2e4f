-- hapax.begin, for applications and for the library on a connection of theirs:
-- what becomes of a lost attempt is said by the caller, a token that was made
-- before asking is recognised, and what an earlier attempt reached is told at
-- once. Called with the six arguments it had before, it does what it did, and
-- its first six columns are the same.

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

DROP FUNCTION hapax.begin(text, text, text, bytea, integer, integer);

-- Reserves the key, or tells what became of it. `verdict`: created and retried
-- (execute, with this lease, after `point` where there is one), replay (status,
-- headers and body are the answer; not `kept`: the status alone is known),
-- in_progress, unknown, mismatch (the key was used with another fingerprint).
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
	INSERT INTO hapax.operation AS n (id, state, attempt, token, first, fingerprint, recipe,
			tenant_hash, owner, created, changed, retention, lease_until, status, kept,
			tenant, scope, key, method, path, route, when_lost)
		VALUES (named, 1, 1, made, made, begin.fingerprint, void, sha256(tenant_bytes), 0,
			now_ms, now_ms, begin.retention_ms, now_ms + begin.lease_ms, 0, false,
			begin.tenant, begin.scope, begin.key, '', '', 'application', lost)
		ON CONFLICT DO NOTHING RETURNING n.attempt INTO attempt;
	IF FOUND THEN
		verdict := 'created';
		lease := encode(named, 'hex') || '.' || encode(made, 'hex');
		operation := lease;
		RETURN;
	END IF;
	SELECT * INTO o FROM hapax.operation f WHERE f.id = named FOR UPDATE;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'the operation came or went meanwhile: try the transaction again'
			USING ERRCODE = 'serialization_failure';
	END IF;
	now_ms := hapax.clock_ms();
	attempt := o.attempt;
	operation := encode(named, 'hex') || '.' || encode(o.first, 'hex');
	IF o.expires IS NOT NULL AND o.expires <= now_ms THEN
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
		operation := lease;
		DELETE FROM hapax.response r WHERE r.id = o.id;
	ELSE
		attempt := o.attempt + 1;
		point := nullif(o.point, '');
		data := CASE WHEN o.point <> '' THEN o.point_data END;
	END IF;
	UPDATE hapax.operation u SET state = 1, attempt = begin.attempt, token = made,
		first = CASE verdict WHEN 'created' THEN made ELSE o.first END,
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

REVOKE ALL ON FUNCTION hapax.header_text(bytea) FROM PUBLIC;
REVOKE ALL ON FUNCTION
	hapax.begin(text, text, text, bytea, bigint, bigint, text, bytea) FROM PUBLIC;

DO $$
BEGIN
	IF EXISTS (SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = 'hapax_application') THEN
		GRANT EXECUTE ON FUNCTION
			hapax.begin(text, text, text, bytea, bigint, bigint, text, bytea)
			TO hapax_application;
	END IF;
END $$;
