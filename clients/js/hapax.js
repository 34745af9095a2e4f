// A fetch for state changes, for browsers and Node: the caller names what is to happen
// once (the intent), this keeps the key for it in storage, across reloads, until a
// definite answer is there. Types and options are explained in hapax.d.ts.
import { databaseStorage } from "./database-storage.js";
import { HapaxError, refuse } from "./error.js";
import { openJournal } from "./journal.js";
import { readRequest } from "./request.js";
import { settle } from "./settle.js";

export { HapaxError, databaseStorage };

const PASSED = ["GET", "HEAD", "OPTIONS"];
const DAY_MS = 24 * 60 * 60 * 1000;
const TIMER_MS_MAX = 2 ** 31 - 1; // setTimeout takes whatever is longer for nothing at all

export function createClient(options = {}) {
  const settings = settingsOf(options);
  const journal = openJournal(settings);
  const underWay = new Map(); // intent → the call that is on its way in this page

  function begin(intent, request) {
    const controller = new AbortController();
    const call = { intent, request, controller, signal: controller.signal, waiting: 0 };
    call.promise = settle(settings, journal, call).finally(() => underWay.delete(intent));
    underWay.set(intent, call);
    return call;
  }

  // A call that everybody has left is about to end; it is not for newcomers.
  async function joinable(intent) {
    while (underWay.get(intent)?.signal.aborted) await underWay.get(intent).promise.catch(() => {});
    return underWay.get(intent);
  }

  async function send(url, init) {
    init.signal?.throwIfAborted();
    const request = await readRequest(settings, url, init);
    const found = await joinable(init.intent);
    init.signal?.throwIfAborted();
    if (found && found.request.digest !== request.digest)
      throw new HapaxError("intent_in_use", `the intent "${init.intent}" is under way with another request`,
        { intent: init.intent });
    return answerOf(found ?? begin(init.intent, request), init.signal);
  }

  async function forget(intent) {
    if (underWay.has(intent))
      throw new HapaxError("intent_in_use", `the intent "${intent}" is under way`, { intent });
    await journal.forget(intent);
  }

  return {
    fetch: (url, init = {}) => (isPassed(url, init) ? settings.fetch(url, init) : send(url, init)),
    pending: () => journal.list(),
    forget,
  };
}

const defaults = () => ({
  storage: globalThis.indexedDB && databaseStorage(),
  fetch: (...values) => globalThis.fetch(...values),
  keyHeader: "Idempotency-Key",
  bareKey: false,
  budgetMs: 60_000,
  attemptTimeoutMs: 30_000,
  retentionMs: DAY_MS,
  crypto: globalThis.crypto,
  locks: globalThis.navigator?.locks,
  random: Math.random,
  now: Date.now,
  clock: () => performance.now(),
  sleep,
});

function settingsOf(options) {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  const settings = { ...defaults(), ...Object.fromEntries(given) };
  settings.backoff = { baseMs: 300, capMs: 10_000, ...options.backoff };
  for (const name of ["budgetMs", "attemptTimeoutMs", "retentionMs"])
    if (!(settings[name] > 0)) refuse(`${name} is a number of milliseconds above 0`);
  for (const name of ["baseMs", "capMs"])
    if (!(settings.backoff[name] >= 0)) refuse(`backoff.${name} is a number of milliseconds`);
  if (settings.budgetMs > TIMER_MS_MAX) refuse("budgetMs is at most 24 days");
  if (settings.budgetMs >= settings.retentionMs) refuse("budgetMs must be below retentionMs");
  return settings;
}

function isPassed(url, init) {
  const method = init.method ?? (typeof Request === "function" && url instanceof Request ? url.method : "GET");
  return PASSED.includes(String(method).toUpperCase());
}

// Every caller gets its own copy of the answer; the last one gets the answer itself. One
// who gives up does not end it for the others; the last one who does, ends it for all.
async function answerOf(call, signal) {
  call.waiting += 1;
  const leave = () => {
    call.waiting -= 1;
    if (call.waiting === 0) call.controller.abort(signal.reason);
  };
  const response = await (signal ? untilAborted(call, signal, leave) : call.promise);
  call.waiting -= 1;
  return call.waiting > 0 ? response.clone() : response;
}

function untilAborted(call, signal, leave) {
  return new Promise((resolve, reject) => {
    const abort = () => {
      leave();
      if (call.waiting === 0) return; // the call itself ends, and says how it stands
      reject(new HapaxError("unsettled", "the call was aborted before a definite answer came",
        { intent: call.intent, reason: "aborted", doubt: true, cause: signal.reason }));
    };
    signal.addEventListener("abort", abort, { once: true });
    call.promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

// Ends early when the signal does; who called looks at the signal.
function sleep(ms, signal) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done, { once: true });
    if (signal.aborted) done();
  });
}

// For tests, and where nothing outlives the process anyway.
export function memoryStorage() {
  const items = new Map();
  return {
    getItem: (name) => items.get(name) ?? null,
    setItem: (name, value) => { items.set(name, value); },
    addItem: (name, value) => { if (!items.has(name)) items.set(name, value); },
    removeItem: (name) => { items.delete(name); },
    keys: () => [...items.keys()],
  };
}
