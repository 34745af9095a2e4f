// Shows what the client promises besides judging answers: what is stored and when, one
// key for one intent, budgets, aborts, bodies, and that nothing is sent without a key
// that is written down.
import assert from "node:assert/strict";
import { test } from "node:test";
import { HapaxError, createClient, memoryStorage } from "hapax-client";
import { startScript } from "./script.js";

const OK = { status: 201, body: { id: 7 } };
const post = (over) => ({ method: "POST", body: "{}", intent: "cart-1", ...over });
// Gives up behind the first attempt.
const IMPATIENT = { random: () => 0.9, backoff: { baseMs: 1e6, capMs: 1e6 } };
const later = (seconds) => ({ status: 503, headers: { "Retry-After": String(seconds) } });

async function scripted(t, steps, options = {}) {
  const server = await startScript(steps);
  t.after(server.close);
  const storage = options.storage ?? memoryStorage();
  const client = createClient({ sleep: async () => {}, ...options, storage });
  return { server, storage, client };
}

const failing = (call, code) => assert.rejects(call, (error) => {
  assert.ok(error instanceof HapaxError, String(error?.stack));
  assert.equal(error.code, code, error.message);
  return true;
});
const caught = (call) => call.then(() => assert.fail("it did not fail"), (error) => error);
const keysOf = (server) => server.seen.map((request) => request.headers["idempotency-key"]);

test("the entry stands before the request leaves, without body or credential", async (t) => {
  let stored;
  const { server, storage, client } = await scripted(t, [OK], {
    fetch: (...values) => {
      stored = storage.keys().map((name) => [name, storage.getItem(name)]);
      return fetch(...values);
    },
  });
  const headers = { Authorization: "Bearer s3cr3t" };
  await client.fetch(`${server.url}?card=4242`, post({ body: "card=4242", headers }));
  const [[name, text]] = stored, entry = JSON.parse(text);
  assert.equal(name, "hapax:cart-1");
  assert.equal(`"${entry.key}"`, keysOf(server)[0]);
  assert.deepEqual([Object.keys(entry).sort(), entry.doubt], [["created", "doubt", "hash", "key", "v"], true]);
  assert.ok(!/4242|s3cr3t|127\.0\.0\.1/.test(text), text);
  assert.deepEqual(storage.keys(), []);
});

for (const [says, storage] of Object.entries({
  "is full": { ...memoryStorage(), addItem: undefined, setItem: () => { throw new Error("QuotaExceededError"); } },
  "forgets": { ...memoryStorage(), addItem: undefined, setItem: () => {} },
  "cannot be read": { ...memoryStorage(), getItem: () => { throw new Error("SecurityError"); } },
  "holds nonsense": { ...memoryStorage(), getItem: () => "{" },
  "holds an entry of another make": { ...memoryStorage(), getItem: () => '{"v":2,"key":"k"}' },
}))
  test(`with a storage that ${says}, nothing is sent`, async (t) => {
    const { server, client } = await scripted(t, [OK], { storage });
    await failing(client.fetch(server.url, post()), "storage_unavailable");
    assert.equal(server.seen.length, 0);
  });

test("an entry that cannot be dropped costs nobody the answer", async (t) => {
  const events = [], storage = { ...memoryStorage(), removeItem: () => { throw new Error("read only"); } };
  const { server, client } = await scripted(t, [OK, OK], { storage, onAttempt: (event) => events.push(event) });
  assert.equal((await client.fetch(server.url, post())).status, 201);
  assert.equal(events[0].storageError.code, "storage_unavailable");
  assert.equal((await client.fetch(server.url, post())).status, 201);
  assert.equal(new Set(keysOf(server)).size, 1, "the next call has the same key");
});

test("after a reload the same intent goes on with the same key", async (t) => {
  const { server, storage, client } = await scripted(t, ["lost after", OK], IMPATIENT);
  const error = await caught(client.fetch(server.url, post()));
  assert.deepEqual([error.code, error.reason, error.doubt, error.attempts], ["unsettled", "budget", true, 1]);
  assert.deepEqual(await client.pending(), [{ intent: "cart-1", key: error.key, doubt: true,
    created: JSON.parse(storage.getItem("hapax:cart-1")).created }]);
  const reloaded = createClient({ storage });
  assert.equal((await reloaded.fetch(server.url, post())).status, 201);
  assert.deepEqual(keysOf(server), [`"${error.key}"`, `"${error.key}"`]);
  assert.deepEqual(await reloaded.pending(), []);
});

test("a definite answer ends the intent: the next call is a new effect", async (t) => {
  const { server, client } = await scripted(t, [OK, OK]);
  await client.fetch(server.url, post());
  await client.fetch(server.url, post());
  assert.equal(new Set(keysOf(server)).size, 2);
});

for (const [says, over, path = ""] of [["body", { body: "[]" }], ["method", { method: "PUT" }], ["address", {}, "/2"],
  ["media type", { headers: { "Content-Type": "application/json" } }]])
  test(`the same intent with another ${says} is refused until the first is settled`, async (t) => {
    const { server, storage, client } = await scripted(t, ["lost after", OK, OK], IMPATIENT);
    await failing(client.fetch(server.url, post()), "unsettled");
    await failing(client.fetch(server.url + path, post(over)), "intent_in_use");
    assert.equal(server.seen.length, 1);
    const patient = createClient({ storage });
    await patient.fetch(server.url, post());
    assert.equal((await patient.fetch(server.url + path, post(over))).status, 201);
  });

test("forget makes room for a new effect", async (t) => {
  const { server, storage, client } = await scripted(t, ["lost after", OK], IMPATIENT);
  await failing(client.fetch(server.url, post()), "unsettled");
  await client.forget("cart-1");
  assert.deepEqual(storage.keys(), []);
  assert.equal((await createClient({ storage }).fetch(server.url, post({ body: "other" }))).status, 201);
  assert.equal(new Set(keysOf(server)).size, 2);
});

test("two calls at once are one, and each has the whole answer", async (t) => {
  const { server, client } = await scripted(t, [later(1), OK]);
  const answers = await Promise.all([1, 2, 3].map(() => client.fetch(server.url, post())));
  assert.deepEqual(await Promise.all(answers.map((answer) => answer.json())), [{ id: 7 }, { id: 7 }, { id: 7 }]);
  assert.equal(server.seen.length, 2);
  assert.equal(new Set(keysOf(server)).size, 1);
});

test("another request at once with the same intent is refused, and so is forgetting", async (t) => {
  const { server, client } = await scripted(t, [later(1), OK]);
  const first = client.fetch(server.url, post());
  await failing(client.fetch(server.url, post({ body: "other" })), "intent_in_use");
  await failing(client.forget("cart-1"), "intent_in_use");
  assert.equal((await first).status, 201);
});

test("two clients on one storage share the key", async (t) => {
  const { server, storage, client } = await scripted(t, [later(1), later(1), OK, OK]);
  const other = createClient({ storage, sleep: async () => {} });
  await Promise.all([client.fetch(server.url, post()), other.fetch(server.url, post())]);
  assert.equal(new Set(keysOf(server)).size, 1);
});

test("who comes late ends nothing that another has begun anew", async (t) => {
  const storage = memoryStorage(), value = JSON.stringify({ v: 1, key: "k2", hash: "h", created: 1, doubt: true });
  const { server, client } = await scripted(t, [OK], {
    storage, fetch: (...values) => { storage.setItem("hapax:cart-1", value); return fetch(...values); },
  });
  await client.fetch(server.url, post());
  assert.equal(storage.getItem("hapax:cart-1"), value);
});

test("a Retry-After beyond the budget gives up at once", async (t) => {
  const { server, client } = await scripted(t, [later(61)], { sleep: () => assert.fail("it slept") });
  const error = await caught(client.fetch(server.url, post()));
  assert.deepEqual([error.code, error.reason, error.doubt, error.lastResponse.status],
    ["unsettled", "budget", false, 503]);
  assert.equal((await client.pending())[0].doubt, false);
});

test("attempts end with the budget, and back off with full jitter up to the cap", async (t) => {
  let time = 0;
  const waits = [], { server, client } = await scripted(t, Array(20).fill({ status: 429 }), {
    budgetMs: 1000, backoff: { baseMs: 10, capMs: 100 }, random: () => 0.999, clock: () => time,
    sleep: async (ms) => { waits.push(ms); time += ms; },
  });
  assert.equal((await caught(client.fetch(server.url, post()))).reason, "budget");
  assert.deepEqual(waits.slice(0, 6), [10, 20, 40, 80, 100, 100]);
  assert.ok(time < 1000, `${time} ms`);
});

test("an attempt that takes too long is lost, and doubted", async (t) => {
  const { server, client } = await scripted(t, ["hold", OK], { attemptTimeoutMs: 100 });
  assert.equal((await client.fetch(server.url, post())).status, 201);
  assert.equal(server.seen.length, 2);
});

test("a caller who aborts leaves the entry behind, in doubt", async (t) => {
  const { server, client } = await scripted(t, ["hold", OK]);
  const controller = new AbortController();
  const call = caught(client.fetch(server.url, post({ signal: controller.signal })));
  while (server.seen.length === 0) await new Promise(setImmediate);
  controller.abort(new Error("the user left"));
  const error = await call;
  assert.deepEqual([error.code, error.reason, error.doubt, error.cause.message],
    ["unsettled", "aborted", true, "the user left"]);
  assert.equal((await client.pending())[0].doubt, true);
  assert.equal((await client.fetch(server.url, post())).status, 201);
  assert.equal(new Set(keysOf(server)).size, 1);
});

test("a caller who aborts while it waits was not in doubt, and is not", async (t) => {
  const controller = new AbortController();
  const { server, client } = await scripted(t, [later(1)], { sleep: async () => controller.abort() });
  const error = await caught(client.fetch(server.url, post({ signal: controller.signal })));
  assert.deepEqual([error.reason, error.doubt, (await client.pending())[0].doubt], ["aborted", false, false]);
});

test("a caller who aborts first has done nothing", async (t) => {
  const { server, client } = await scripted(t, [OK]);
  assert.equal((await caught(client.fetch(server.url, post({ signal: AbortSignal.abort() })))).name, "AbortError");
  assert.deepEqual([server.seen.length, await client.pending()], [0, []]);
});

test("a caller who aborts while it waits for one that ends has done nothing", async (t) => {
  const tick = () => new Promise(setImmediate), memory = memoryStorage();
  let end;
  const held = new Promise((done) => { end = done; });
  const storage = { ...memory, setItem: async (...values) => { await held; memory.setItem(...values); } };
  const { server, client } = await scripted(t, ["hold", OK], { storage });
  const first = new AbortController(), second = new AbortController();
  const ending = caught(client.fetch(server.url, post({ signal: first.signal })));
  while (server.seen.length === 0) await tick();
  first.abort();
  const late = caught(client.fetch(server.url, post({ signal: second.signal })));
  for (let i = 0; i < 100; i += 1) await tick(); // it has read its request, and waits
  second.abort();
  end();
  assert.deepEqual([(await ending).code, (await late).name, server.seen.length], ["unsettled", "AbortError", 1]);
});

test("an answer without a status is none", async (t) => {
  const answers = [Response.error(), new Response("paid", { status: 201 })];
  const { client } = await scripted(t, [], { fetch: async () => answers.shift() });
  assert.equal((await client.fetch("http://127.0.0.1/", post())).status, 201);
});

test("one of two who aborts does not end it for the other", async (t) => {
  let goOn;
  const sleep = () => new Promise((done) => { goOn = done; });
  const { server, client } = await scripted(t, [later(1), OK], { sleep });
  const controller = new AbortController();
  const first = caught(client.fetch(server.url, post({ signal: controller.signal })));
  const second = client.fetch(server.url, post());
  while (!goOn) await new Promise(setImmediate);
  controller.abort();
  assert.equal((await first).reason, "aborted");
  goOn();
  assert.equal((await second).status, 201);
});

test("in doubt, a key that the server may have forgotten is not sent again", async (t) => {
  const { server, storage, client } = await scripted(t, ["lost after", OK], IMPATIENT);
  await failing(client.fetch(server.url, post()), "unsettled");
  const old = createClient({ storage, now: () => Date.now() + 24 * 3600_000 });
  const error = await caught(old.fetch(server.url, post()));
  assert.deepEqual([error.code, error.reason, error.doubt, server.seen.length], ["unsettled", "expired", true, 1]);
});

for (const [says, hours, reason] of [["budget", 1, "budget"], ["server's memory", 25, "expired"]])
  test(`a computer that slept beyond the ${says} sends nothing when it wakes up`, async (t) => {
    let slept = 0;
    const { server, client } = await scripted(t, ["lost after", OK], {
      now: () => Date.now() + slept, clock: () => slept, sleep: async () => { slept = hours * 3600_000; },
    });
    const error = await caught(client.fetch(server.url, post()));
    assert.deepEqual([error.reason, error.doubt, server.seen.length], [reason, true, 1]);
  });

test("a clock that stood still while the computer slept is not believed alone", async (t) => {
  let slept = 0;
  const { server, client } = await scripted(t, ["lost after", OK], {
    now: () => Date.now() + slept, clock: () => 0, sleep: async () => { slept = 25 * 3600_000; },
  });
  assert.equal((await caught(client.fetch(server.url, post()))).reason, "expired");
  assert.equal(server.seen.length, 1);
});

test("in doubt, a clock that was set back tells no age, and nothing is sent", async (t) => {
  const { server, storage, client } = await scripted(t, ["lost after", OK], IMPATIENT);
  await failing(client.fetch(server.url, post()), "unsettled");
  const back = createClient({ storage, now: () => Date.now() - 3600_000 });
  assert.equal((await caught(back.fetch(server.url, post()))).reason, "expired");
  assert.equal(server.seen.length, 1);
  const corrected = createClient({ storage, now: () => Date.now() - 60_000 });
  assert.equal((await corrected.fetch(server.url, post())).status, 201);
});

test("who is not settled keeps its key, even if another tab has settled it, or the storage was cleared", async (t) => {
  const { server, storage, client } = await scripted(t, ["lost after", OK]);
  const cleared = createClient({ ...IMPATIENT, storage,
    fetch: (...values) => fetch(...values).finally(() => storage.removeItem("hapax:cart-1")) });
  const error = await caught(cleared.fetch(server.url, post()));
  assert.deepEqual([error.doubt, (await client.pending()).map(({ key }) => key)], [true, [error.key]]);
  assert.equal((await client.fetch(server.url, post())).status, 201);
  assert.equal(new Set(keysOf(server)).size, 1);
});

test("without doubt, an old key is as good as new", async (t) => {
  const { server, storage, client } = await scripted(t, [later(99), OK]);
  await failing(client.fetch(server.url, post()), "unsettled");
  const old = createClient({ storage, now: () => Date.now() + 24 * 3600_000 });
  assert.equal((await old.fetch(server.url, post())).status, 201);
  assert.equal(new Set(keysOf(server)).size, 1);
});

test("who joins another call keeps the doubt that the other would end", async (t) => {
  const { server, storage, client } = await scripted(t, [later(99)]);
  const joined = { ...memoryStorage(), ...storage };
  const one = createClient({ storage, fetch: async (...values) => {
    const entry = JSON.parse(storage.getItem("hapax:cart-1"));
    storage.setItem("hapax:cart-1", JSON.stringify({ ...entry, joined: true })); // as a second tab does
    return fetch(...values);
  } });
  assert.equal((await caught(one.fetch(server.url, post()))).doubt, false);
  assert.equal(JSON.parse(joined.getItem("hapax:cart-1")).doubt, true);
  assert.equal((await client.pending())[0].doubt, true);
});

for (const [says, body, bytes, type] of [
  ["a string", "Zoë", "Zoë", "text/plain;charset=UTF-8"],
  ["a form", new URLSearchParams({ a: "1 2" }), "a=1+2", "application/x-www-form-urlencoded;charset=UTF-8"],
  ["a Blob", new Blob(["blob"], { type: "image/png" }), "blob", "image/png"],
  ["an ArrayBuffer", new TextEncoder().encode("bytes").buffer, "bytes", undefined],
  ["a part of a buffer", new TextEncoder().encode("xxbytes").subarray(2), "bytes", undefined],
  ["nothing", undefined, "", undefined]])
  test(`${says} is sent as fetch would, the same in every attempt`, async (t) => {
    const { server, client } = await scripted(t, ["lost after", OK]);
    await client.fetch(server.url, post({ body }));
    const sent = server.seen.map((request) => [request.body.toString(), request.headers["content-type"]]);
    assert.deepEqual(sent, [[bytes, type], [bytes, type]]);
  });

test("bytes that the caller changes meanwhile are sent as they were", async (t) => {
  const body = new TextEncoder().encode("before");
  const { server, client } = await scripted(t, ["lost after", OK], { sleep: async () => { body.fill(120); } });
  await client.fetch(server.url, post({ body }));
  assert.deepEqual(server.seen.map((r) => r.body.toString()), ["before", "before"]);
});

for (const [says, over, message] of [
  ["no intent", { intent: undefined }, /intent/],
  ["an empty intent", { intent: "" }, /intent/],
  ["a FormData", { body: new FormData() }, /boundary/],
  ["a stream", { body: new ReadableStream() }, /once/],
  ["an object", { body: { amount: 1 } }, /JSON.stringify/],
  ["a key of its own", { headers: { "idempotency-key": "k" } }, /Idempotency-Key/],
  ["redirects to follow", { redirect: "follow" }, /redirect/],
  ["an answer that cannot be read", { mode: "no-cors" }, /no-cors/]])
  test(`${says} is refused, and nothing is written or sent`, async (t) => {
    const { server, client } = await scripted(t, [OK]);
    const error = await caught(client.fetch(server.url, post(over)));
    assert.equal(error.code, "request_refused");
    assert.match(error.message, message);
    assert.deepEqual([server.seen.length, await client.pending()], [0, []]);
  });

test("what fetch would refuse each time is refused before a key is made", async () => {
  const client = createClient(), here = "http://127.0.0.1/";
  for (const [url, over] of [["nonsense", {}], [here, { headers: { "a b": "c" } }], [here, { method: "TRACE" }]])
    assert.ok(await caught(client.fetch(url, post(over))) instanceof TypeError);
  assert.deepEqual(await client.pending(), []);
});

test("GET goes to fetch untouched", async () => {
  const calls = [], init = { headers: { a: "b" } };
  const client = createClient({ fetch: async (...values) => { calls.push(values); return new Response("x"); } });
  await client.fetch("/list", init);
  assert.ok(calls[0][0] === "/list" && calls[0][1] === init);
});

// Node 18 copies an answer through a message port, which it leaves open when half of it is cancelled.
const OLD = Number(process.versions.node.split(".")[0]) < 20 && "Node 18 would not end";

test("a large answer goes to the caller whole", { skip: OLD }, async (t) => {
  const { server, client } = await scripted(t, [{ status: 201, body: "x".repeat(20 << 20) }]);
  const answer = await client.fetch(server.url, post());
  assert.equal((await answer.text()).length, 20 << 20);
});

test("an observer that throws costs nobody the answer", async (t) => {
  // fetch has microtasks of its own.
  const mistakes = [], queue = queueMicrotask;
  t.mock.method(globalThis, "queueMicrotask", (work) => queue(() => {
    try { work(); } catch (error) { mistakes.push(error.message); }
  }));
  const { server, client } = await scripted(t, [OK], { onAttempt: () => { throw new Error("a mistake"); } });
  assert.equal((await client.fetch(server.url, post())).status, 201);
  assert.deepEqual(mistakes, ["a mistake"]);
});

test("the key can go bare and in another header", async (t) => {
  const { server, client } = await scripted(t, [OK], { bareKey: true, keyHeader: "X-Once" });
  await client.fetch(server.url, post());
  assert.match(server.seen[0].headers["x-once"], /^[0-9a-f-]{36}$/);
});

test("settings that make no sense are refused", () => {
  for (const options of [{ budgetMs: 0 }, { attemptTimeoutMs: NaN }, { budgetMs: 2, retentionMs: 1 },
    { backoff: { baseMs: undefined } }, { backoff: { capMs: "soon" } }, { budgetMs: 2 ** 31, retentionMs: 2 ** 40 }])
    assert.throws(() => createClient(options), { code: "request_refused" });
});
