// What is written down before the first byte leaves: one entry for each intent that
// has no definite answer yet. It holds the key, a digest of the request, the time and
// the doubt; never a body, an address or a credential.
//
// While a call is under way its entry says doubt: if the page goes away now, the request
// may have happened. Whoever finds it saying so joins somebody who may be under way still
// (another tab, or a page that is gone): from then on only a definite answer ends the doubt.
// What is stored and cannot be read is never taken for "none".
import { HapaxError } from "./error.js";
import { hex, newKey } from "./key.js";

const PREFIX = "hapax:";
const VERSION = 1;

export function openJournal({ storage, locks, crypto, now }) {
  // Between tabs; a storage that can add by itself (addItem) needs no lock for that.
  const alone = (intent, work) => guarded(() => (locks ? locks.request(PREFIX + intent, work) : work()));
  const ask = (method, ...values) => guarded(() => storageOf(storage)[method](...values));
  const read = async (intent) => parsed(intent, await ask("getItem", PREFIX + intent));
  const write = (intent, entry) => ask("setItem", PREFIX + intent, JSON.stringify(entry));

  // Gives the entry that stands in the end: this one, or that of somebody who was faster.
  async function add(intent, digest) {
    const key = newKey(crypto, now());
    const entry = { v: VERSION, key, hash: await hashOf(crypto, key, digest), created: now(), doubt: true };
    if (storageOf(storage).addItem) await ask("addItem", PREFIX + intent, JSON.stringify(entry));
    else await write(intent, entry);
    const standing = await read(intent);
    if (!standing) throw unavailable("the storage does not keep what is written to it");
    return { ...standing, isNew: standing.key === key };
  }

  async function begin(intent, digest) {
    const { isNew, ...entry } = await read(intent) ?? await add(intent, digest);
    if (entry.hash !== await hashOf(crypto, entry.key, digest))
      throw new HapaxError("intent_in_use", `the intent "${intent}" stands for another request that is not settled`,
        { intent, key: entry.key, doubt: entry.doubt, created: entry.created });
    if (isNew) return { ...entry, doubt: false };
    // Without doubt nothing has happened, so the key is as good as new.
    const taken = entry.doubt ? { ...entry, joined: true } : { ...entry, created: now(), doubt: true };
    await write(intent, taken);
    return { ...taken, doubt: entry.doubt };
  }

  // Somebody else (another tab) may have ended it, and begun anew: that is not ours.
  const ours = (intent, key, work) => alone(intent, async () => {
    const entry = await read(intent);
    if (entry?.key === key) await work();
  });

  // Gone meanwhile: another tab has its answer, or the storage was cleared. What this call
  // does not know it writes down again, or the next one would be a second effect.
  const leave = (intent, entry, doubt) => alone(intent, async () => {
    const standing = await read(intent);
    if (standing ? standing.key === entry.key : doubt)
      await write(intent, { ...(standing ?? entry), doubt: doubt || Boolean(standing?.joined) });
  });

  async function list() {
    const names = await guarded(() => namesOf(storageOf(storage)));
    const intents = names.filter((name) => name.startsWith(PREFIX)).map((name) => name.slice(PREFIX.length));
    const all = await Promise.all(intents.map(async (intent) => shown(intent, await ask("getItem", PREFIX + intent))));
    return all.filter(Boolean).sort((a, b) => (a.created ?? 0) - (b.created ?? 0));
  }

  return {
    begin: (intent, digest) => alone(intent, () => begin(intent, digest)),
    leave,
    end: (intent, key) => ours(intent, key, () => ask("removeItem", PREFIX + intent)),
    forget: (intent) => alone(intent, () => ask("removeItem", PREFIX + intent)),
    list,
  };
}

// The key salts it: a stored digest tells nothing about any other one.
async function hashOf(crypto, key, digest) {
  const text = new TextEncoder().encode(`${key}\n${digest}`);
  return hex(new Uint8Array(await crypto.subtle.digest("SHA-256", text)));
}

function parsed(intent, text) {
  if (text === null || text === undefined) return null;
  const entry = entryOf(text);
  if (!entry) throw unavailable(`what is stored for "${intent}" cannot be read; forget() removes it`);
  return entry;
}

function entryOf(text) {
  try {
    const entry = JSON.parse(text);
    const sound = entry.v === VERSION && typeof entry.key === "string" && typeof entry.hash === "string" &&
      typeof entry.created === "number" && typeof entry.doubt === "boolean";
    return sound ? entry : null;
  } catch {
    return null;
  }
}

function shown(intent, text) {
  if (text === null || text === undefined) return null; // gone since it was listed
  const entry = entryOf(text);
  return { intent, key: entry?.key ?? null, created: entry?.created ?? null, doubt: entry?.doubt ?? true };
}

const unavailable = (message, cause) =>
  new HapaxError("storage_unavailable", `nothing was sent: ${message}`, { cause });

function storageOf(storage) {
  if (!storage) throw new Error("there is no IndexedDB here: give a `storage`");
  return storage;
}

async function guarded(work) {
  try {
    return await work();
  } catch (error) {
    if (error instanceof HapaxError) throw error;
    throw unavailable(error?.message ?? String(error), error);
  }
}

function namesOf(storage) {
  if (typeof storage.keys === "function") return storage.keys();
  return Array.from({ length: storage.length }, (_, i) => storage.key(i));
}
