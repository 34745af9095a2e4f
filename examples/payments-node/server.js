// POST /payments and GET /payments/<id>, behind the gateway: node server.js STORE [PORT [PROVIDER]]
// What this example is about stands in payment.js.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import pg from "pg";
import { pay } from "./payment.js";

const [store, port = 9000] = process.argv.slice(2);
const MERCHANTS = new Map([["Bearer test_key_alice", "alice"], ["Bearer test_key_bob", "bob"]]);
const pool = new pg.Pool({ connectionString: store });
pool.on("error", (error) => console.error(`payments: a connection was lost: ${error.message}`));
await pool.query(readFileSync(new URL("../payments/schema.sql", import.meta.url), "utf8"));

const answer = (status, body) =>
  ({ status, headers: "Content-Type: application/json", body: JSON.stringify(body) + "\n" });
const is = (value, pattern) => typeof value === "string" && pattern.test(value);
const refuse = (status, error) => answer(status, { error });

async function show(id, merchant) {
  const { rows: [row] } = await pool.query(
    "SELECT id, state, customer, amount, currency FROM payment WHERE id = $1 AND merchant = $2", [id, merchant]);
  return row ? answer(200, { ...row, amount: Number(row.amount) }) : refuse(404, "there is no such payment");
}

async function create(request, merchant) {
  const order = await text(request).then(JSON.parse).catch(() => null);
  const { customer, amount, currency } = order ?? {};
  const lease = request.headers["hapax-lease"], operation = request.headers["hapax-operation"];
  if (!is(customer, /^[\w-]{1,32}$/) || !is(currency, /^[A-Z]{3}$/) || !Number.isSafeInteger(amount) || amount < 1)
    return refuse(400, "send customer, amount (whole cents) and currency");
  if (!lease || !operation) return refuse(400, "this service is reached through its gateway");
  const id = `pay_${operation.slice(65, 89)}`; // the operation's own, whichever attempt asks
  return pay(pool, { lease, operation, id, merchant, customer, amount, currency });
}

async function serve(request) {
  const { method, url } = request, merchant = MERCHANTS.get(request.headers.authorization);
  if (!merchant) return refuse(401, "the credential is missing or not known");
  if (method === "POST" && url === "/payments") return create(request, merchant);
  if (method === "GET" && url.startsWith("/payments/")) return show(url.slice("/payments/".length), merchant);
  return refuse(404, "there are POST /payments and GET /payments/<id>");
}

createServer(async (request, response) => {
  const { status, headers, body } = await serve(request).catch((error) => {
    console.error(`payments: ${error.code ?? ""} ${error.message}`);
    return refuse(503, "not finished; ask again with the same key");
  });
  response.writeHead(status, Object.fromEntries(headers.split("\n").map((line) => line.split(": ")))).end(body);
}).listen(Number(port), "127.0.0.1", () => console.log(`payments: ready on http://127.0.0.1:${port}`));
