// A payment in four phases. Each of the first three asks the provider, with a key
// of its own, so that asking again after a crash is asking for the same; then one
// transaction commits the recovery point and what the provider said. The last one
// commits the receipt that is owed, the ledger, and the answer, for every retry.
// hapax is asked first in each, because it knows who may write at all.
import { ask } from "./provider.js";
import { rehearse } from "./rehearsal.js";

const JSON_LINE = "Content-Type: application/json";

const addPayment = (db, p, state = "screened") => db.query(
  `WITH c AS (INSERT INTO customer (merchant, name) VALUES ($3, $4) ON CONFLICT DO NOTHING)
   INSERT INTO payment (id, operation, merchant, customer, amount, currency, state, screening)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
  [p.id, p.operation, p.merchant, p.customer, p.amount, p.currency, state, p.proof]);
const setState = (db, p, state) => db.query("UPDATE payment SET state = $2 WHERE id = $1", [p.id, state]);

const PHASES = [
  { point: "screened", order: "screening", write: addPayment },
  { point: "authorised", order: "authorisation", write: (db, p) => db.query(
    "UPDATE payment SET state = 'authorised', authorisation = $2 WHERE id = $1", [p.id, p.proof]) },
  { point: "captured", order: "capture", write: (db, p) => db.query(
    "UPDATE payment SET state = 'captured', capture = $2 WHERE id = $1", [p.id, p.proof]) },
];

async function complete(db, p, status, state) {
  const { id, customer, amount, currency } = p;
  const answer = { status, headers: `${JSON_LINE}\nLocation: /payments/${id}`,
                   body: JSON.stringify({ id, state, customer, amount, currency }) + "\n" };
  await db.query("SELECT hapax.complete($1, $2, $3, $4)", [p.lease, status, answer.headers, Buffer.from(answer.body)]);
  return answer;
}

async function paid(db, p) {
  const receipt = JSON.stringify({ to: p.customer, payment: p.id, amount: p.amount });
  await db.query("SELECT hapax.enqueue($1, 'receipt', 'mailer', 'POST', '/receipts', $2, $3)",
    [p.lease, JSON_LINE, Buffer.from(receipt)]);
  await db.query(`INSERT INTO ledger (payment, account, amount)
                  VALUES ($1, 'provider', $2::bigint), ($1, 'merchant', -$2::bigint)`, [p.id, p.amount]);
  await setState(db, p, "paid");
  return complete(db, p, 201, "paid");
}

// "No" is an answer too. Before anything was screened there is no row yet.
async function declined(db, p) {
  const answer = await complete(db, p, 402, "declined");
  await (p.proof === "" ? addPayment(db, p, "declined") : setState(db, p, "declined"));
  return answer;
}

// All of it or nothing. HX001 (the lease is lost, another attempt goes on) is an error like any
// other here: nothing was written. Closing a connection that failed rolls back.
async function commit(pool, moment, write) {
  rehearse("asked", moment);
  const db = await pool.connect();
  let trouble;
  try {
    await db.query("BEGIN");
    const result = await write(db);
    await db.query("COMMIT");
    rehearse("committed", moment);
    return result;
  } catch (error) {
    throw (trouble = error);
  } finally {
    db.release(trouble);
  }
}

export async function pay(pool, p) {
  const { rows: [saved] } = await pool.query("SELECT point, data FROM hapax.recovery($1)", [p.lease]);
  const done = PHASES.findIndex(({ point }) => point === saved.point);
  if (saved.point !== null && done < 0) throw new Error(`an unknown recovery point: ${saved.point}`);
  p.proof = saved.data?.toString() ?? "";
  for (const { point, order, write } of PHASES.slice(done + 1)) {
    const proof = await ask(p, order);
    if (proof === null) return commit(pool, point, (db) => declined(db, p));
    p.proof = proof;
    await commit(pool, point, async (db) => {
      await db.query("SELECT hapax.advance($1, $2, $3)", [p.lease, point, Buffer.from(proof)]);
      await write(db, p);
    });
  }
  return commit(pool, "paid", (db) => paid(db, p));
}
