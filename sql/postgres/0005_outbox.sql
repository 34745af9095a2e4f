-- Deliveries: where each job stands (1 queued, 2 sending, 3 done, 4 unknown,
-- 5 dead, 6 discarded), and operations that are pending (state 5) until theirs
-- is done. Times are of the database's clock.

ALTER TABLE hapax.operation DROP CONSTRAINT operation_state_check;
ALTER TABLE hapax.operation ADD CONSTRAINT operation_state_check CHECK (state BETWEEN 1 AND 5);
CREATE INDEX operation_pending ON hapax.operation (expires) WHERE state = 5;

ALTER TABLE hapax.job DROP COLUMN state;
ALTER TABLE hapax.job
	ADD COLUMN state smallint NOT NULL DEFAULT 1 CHECK (state BETWEEN 1 AND 6),
	ADD COLUMN answers boolean NOT NULL DEFAULT false,
	ADD COLUMN unsure boolean NOT NULL DEFAULT false,
	ADD COLUMN attempt bigint NOT NULL DEFAULT 0 CHECK (attempt BETWEEN 0 AND 4294967295),
	ADD COLUMN budget bigint NOT NULL DEFAULT 0 CHECK (budget BETWEEN 0 AND attempt),
	ADD COLUMN status integer NOT NULL DEFAULT 0 CHECK (status BETWEEN 0 AND 999),
	ADD COLUMN token bytea NOT NULL DEFAULT '\x00000000000000000000000000000000'
		CHECK (octet_length(token) = 16),
	ADD COLUMN owner bigint NOT NULL DEFAULT 0,
	ADD COLUMN changed bigint NOT NULL DEFAULT 0,
	ADD COLUMN due bigint NOT NULL DEFAULT 0,
	ADD COLUMN lease_until bigint NOT NULL DEFAULT 0,
	ADD COLUMN first_sent bigint NOT NULL DEFAULT 0,
	ADD COLUMN resend_until bigint NOT NULL DEFAULT 0,
	ADD COLUMN provider_id text NOT NULL DEFAULT '' CHECK (provider_id ~ '^[!-~]{0,127}$');
-- What was owed before jobs were sent is due at once.
UPDATE hapax.job SET changed = created, due = created;

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
-- was a question (1 applied, 2 declined, 0 none).
CREATE TABLE hapax.reconcile (
	id bytea NOT NULL CHECK (octet_length(id) = 32),
	first bytea NOT NULL CHECK (octet_length(first) = 16),
	job bigint NOT NULL,
	sent bigint NOT NULL,
	tries bigint NOT NULL,
	in_a_row bigint NOT NULL,
	first_said bigint NOT NULL,
	ask_at bigint NOT NULL,
	evidence smallint NOT NULL,
	person boolean NOT NULL,
	PRIMARY KEY (id, job)
);

-- Whoever settles an outcome, by whatever way: what was asked about it is over,
-- and one that is unknown once more is asked about from the beginning. Of a job
-- that ended, what was said before anybody asked is over too.
CREATE FUNCTION hapax.settled_operation() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	DELETE FROM hapax.reconcile WHERE id = OLD.id AND job = 0;
	RETURN NULL;
END $$;
CREATE TRIGGER settled AFTER UPDATE OF state ON hapax.operation
	FOR EACH ROW WHEN (OLD.state = 4 AND NEW.state <> 4)
	EXECUTE FUNCTION hapax.settled_operation();

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

CREATE FUNCTION hapax.settled_job() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	DELETE FROM hapax.reconcile WHERE id = OLD.operation AND job = OLD.id;
	RETURN NULL;
END $$;
CREATE TRIGGER settled AFTER UPDATE OF state ON hapax.job
	FOR EACH ROW WHEN (OLD.state <> NEW.state AND (OLD.state = 4 OR NEW.state IN (3, 6)))
	EXECUTE FUNCTION hapax.settled_job();
REVOKE ALL ON FUNCTION hapax.settled_operation(), hapax.tried_again(), hapax.settled_job()
	FROM PUBLIC;

-- The functions that applications call, as they were but for what is named.

-- The fifth state.
CREATE OR REPLACE FUNCTION hapax.refuse(o hapax.operation, what text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RAISE EXCEPTION '% is refused: the operation is %', what,
		(ARRAY['in_progress', 'failed_retryable', 'completed', 'unknown', 'pending'])[o.state]
		USING ERRCODE = 'HX002';
END $$;

-- A job is due from the moment it is owed.
CREATE OR REPLACE FUNCTION hapax.enqueue(lease text, name text, target text, method text, path text,
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
	INSERT INTO hapax.job AS j (operation, first, name, target, method, path, headers, body,
			created, changed, due)
		VALUES (o.id, o.first, enqueue.name, enqueue.target, enqueue.method, enqueue.path,
			head, content, now_ms, now_ms, now_ms)
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

-- To an application, a pending operation is in progress; its time is the
-- reaper's to judge.
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
