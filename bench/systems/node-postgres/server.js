// The usual pattern: a table of keys. INSERT ... ON CONFLICT DO NOTHING says who
// executes; the answer is written over the row afterwards. Two transactions for a
// first execution, one SELECT for a replay.
import { createHash } from 'node:crypto';
import pg from 'pg';
import { execute, refusals, serve } from '../common/service.js';

const pool = new pg.Pool({ connectionString: process.env.DATABASE, max: Number(process.env.POOL) });
await pool.query(`CREATE TABLE IF NOT EXISTS idempotency_key (
  key text PRIMARY KEY, fingerprint bytea NOT NULL, created timestamptz NOT NULL DEFAULT now(),
  status integer, type text, body bytea)`);

const reserve = { name: 'reserve', text: `INSERT INTO idempotency_key (key, fingerprint)
  VALUES ($1, $2) ON CONFLICT DO NOTHING` };
const complete = { name: 'complete', text: `UPDATE idempotency_key
  SET status = $2, type = $3, body = $4 WHERE key = $1` };
const find = { name: 'find', text: `SELECT fingerprint, status, type, body
  FROM idempotency_key WHERE key = $1` };

async function replay(key, fingerprint) {
  const row = (await pool.query({ ...find, values: [key] })).rows[0];
  if (!row.fingerprint.equals(fingerprint)) return refusals.reused;
  return row.status === null ? refusals.running : row;
}

serve(async ({ key, path, body }) => {
  if (key === undefined) return refusals.missing;
  const fingerprint = createHash('sha256').update(path).update(body).digest();
  const inserted = await pool.query({ ...reserve, values: [key, fingerprint] });
  if (inserted.rowCount === 0) return replay(key, fingerprint);
  const answer = await execute(path, body);
  await pool.query({ ...complete, values: [key, answer.status, answer.type, answer.body] });
  return answer;
});
