-- Deliveries: where each job stands (1 queued, 2 sending, 3 done, 4 unknown,
-- 5 dead, 6 discarded), and operations that are pending (state 5) until theirs
-- is done. Times are of the wall clock, lease_until is of the boot clock.

ALTER TABLE hapax_job DROP COLUMN state;
ALTER TABLE hapax_job ADD COLUMN state INTEGER NOT NULL DEFAULT 1;
ALTER TABLE hapax_job ADD COLUMN answers INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hapax_job ADD COLUMN unsure INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hapax_job ADD COLUMN attempt INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hapax_job ADD COLUMN budget INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hapax_job ADD COLUMN status INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hapax_job ADD COLUMN token BLOB NOT NULL DEFAULT x'00000000000000000000000000000000';
ALTER TABLE hapax_job ADD COLUMN owner INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hapax_job ADD COLUMN changed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hapax_job ADD COLUMN due INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hapax_job ADD COLUMN lease_until INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hapax_job ADD COLUMN first_sent INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hapax_job ADD COLUMN resend_until INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hapax_job ADD COLUMN provider_id TEXT NOT NULL DEFAULT '';

-- Each is as small as the list it serves: the deliverer's (one per target), the
-- sweeper's, the reconciler's and the operator's, the reaper's, a webhook's.
CREATE INDEX hapax_job_due ON hapax_job (target, due) WHERE state = 1;
CREATE INDEX hapax_job_sending ON hapax_job (lease_until) WHERE state = 2;
CREATE INDEX hapax_job_unknown ON hapax_job (changed) WHERE state = 4;
CREATE INDEX hapax_job_dead ON hapax_job (changed) WHERE state = 5;
CREATE INDEX hapax_job_finished ON hapax_job (state, changed) WHERE state IN (3, 6);
CREATE INDEX hapax_job_provider ON hapax_job (provider_id) WHERE provider_id <> '';
CREATE INDEX hapax_operation_pending ON hapax_operation (expires) WHERE state = 5;

-- What was asked and said about an outcome that nobody knows: of an operation
-- (job 0) or of one of its jobs. `evidence` is a ruling that came before there
-- was a question (1 applied, 2 declined, 0 none); ask_at is 0 until somebody has
-- looked at it.
CREATE TABLE hapax_reconcile (
	id BLOB NOT NULL,
	first BLOB NOT NULL,
	job INTEGER NOT NULL,
	sent INTEGER NOT NULL,
	tries INTEGER NOT NULL,
	in_a_row INTEGER NOT NULL,
	first_said INTEGER NOT NULL,
	ask_at INTEGER NOT NULL,
	evidence INTEGER NOT NULL,
	person INTEGER NOT NULL,
	PRIMARY KEY (id, job)
) STRICT, WITHOUT ROWID;
CREATE INDEX hapax_reconcile_ask ON hapax_reconcile (ask_at) WHERE person = 0 AND ask_at > 0;
CREATE INDEX hapax_reconcile_person ON hapax_reconcile (id) WHERE person = 1;
