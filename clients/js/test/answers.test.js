// Shows that the client makes of every answer what tests/client/answers.json says, over
// real connections, and that key and bytes are the same in every attempt.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { createClient } from "hapax-client";
import { judge, readDocument } from "../answer.js";
import { retryAfterSeconds } from "../retry-after.js";
import { UNSENT, fetchBy, startScript } from "./script.js";

const FILE = new URL("../../../tests/client/answers.json", import.meta.url);
const { cases } = JSON.parse(readFileSync(FILE, "utf8"));
const LAST = { status: 201, body: { id: 1 } };
const BODY = '{"amount": 499, "to": "Zoë"}';

const stepOf = (one) => (one.lost === "sent" ? "lost after" : one.lost ? UNSENT : one);

async function run(one) {
  const steps = [...(one.doubt ? ["lost after"] : []), stepOf(one), LAST];
  // fetch itself sends what was misdirected once more, on another connection, as its standard says.
  const server = await startScript(steps.flatMap((step) => (step.status === 421 ? [step, step] : [step])));
  const events = [], waits = [];
  const client = createClient({
    fetch: await fetchBy(steps), budgetMs: 3_600_000, sleep: async (ms) => { waits.push(ms); },
    onAttempt: (event) => events.push(event),
  });
  const init = { method: "POST", body: BODY, headers: { "Content-Type": "application/json" }, intent: "one" };
  try {
    const result = await client.fetch(server.url, init).catch((error) => error);
    return { result, event: events[one.doubt ? 1 : 0], events, waits, server, pending: await client.pending() };
  } finally {
    server.close();
  }
}

function checkEnd(one, { result, events, pending }) {
  const before = one.doubt ? 1 : 0;
  if (one.then === "stop") {
    assert.equal(result.code, "unsettled", String(result));
    assert.deepEqual([result.reason, result.doubt, result.lastResponse.status, result.attempts],
      ["stopped", one.doubt_after, one.status, before + 1]);
    assert.deepEqual(pending.map((p) => [p.intent, p.key, p.doubt]), [["one", result.key, one.doubt_after]]);
    return;
  }
  assert.ok(result instanceof Response, String(result));
  assert.equal(result.status, one.then === "done" ? one.status : LAST.status);
  assert.equal(events.length, before + (one.then === "done" ? 1 : 2));
  assert.deepEqual(pending, []);
}

function checkRequests({ seen }) {
  const keys = new Set(seen.map((request) => request.headers["idempotency-key"]));
  assert.equal(keys.size, 1, [...keys].join(" "));
  assert.match([...keys][0], /^"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"$/);
  for (const { method, url, headers, body } of seen)
    assert.deepEqual([method, url, headers["content-type"], body.toString()],
      ["POST", "/pay", "application/json", BODY]);
}

// The fetch of Node 18 fails at sending a misdirected request once more.
const unfit = ({ status }) => status === 421 && Number(process.versions.node.split(".")[0]) < 20;

for (const one of cases)
  test(one.says, { skip: unfit(one) && "Node 18 cannot send it" }, async () => {
    const ran = await run(one);
    assert.equal(ran.event.then, one.then, JSON.stringify(ran.event));
    if ("doubt_after" in one) assert.equal(ran.event.doubt, one.doubt_after);
    if (one.wait_s) assert.equal(ran.event.waitMs, one.wait_s * 1000);
    else assert.ok(ran.event.waitMs <= 600, `it waits ${ran.event.waitMs} ms, which nobody asked for`);
    checkEnd(one, ran);
    checkRequests(ran.server);
  });

test("by the rules alone, they are judged the same", () => {
  for (const one of cases) {
    const text = typeof one.body === "object" ? JSON.stringify(one.body) : one.body;
    const headers = new Headers(one.headers);
    const got = judge(one.lost ? { lost: one.lost } : {
      status: one.status, replayed: headers.get("Idempotent-Replayed") === "true",
      operation: headers.has("Hapax-Operation"),
      retryAfterS: retryAfterSeconds(headers.get("Retry-After"), Date.now()),
      document: readDocument(one.type ?? "application/json", text),
    }, one.doubt ?? false);
    assert.deepEqual(got, { then: one.then, doubt: one.doubt_after ?? false }, one.says);
  }
});

test("there are cases", () => assert.ok(cases.length >= 49, `${cases.length} cases`));

for (const [says, step] of [["before the request was read", "lost before"], ["in the middle of the answer", "half"]])
  test(`a connection that is cut ${says} leaves doubt`, async () => {
    const server = await startScript([step, LAST]);
    const events = [];
    const client = createClient({ sleep: async () => {}, onAttempt: (event) => events.push(event) });
    const answer = await client.fetch(server.url, { method: "POST", body: BODY, intent: "one" });
    server.close();
    assert.deepEqual(events.map((e) => [e.then, e.doubt, e.status]),
      [["again", true, undefined], ["done", false, 201]]);
    assert.deepEqual(await answer.json(), { id: 1 });
  });
