// A storage for browsers: IndexedDB, which can be asked to have a write on the disk
// before it says so ("strict"). localStorage cannot: Chromium writes it seconds later,
// and a browser that is killed meanwhile has lost the key of a payment under way.

const NAME = "hapax";
const STORE = "keys";

export function databaseStorage() {
  let opened = null;

  // Opened again where it failed, or where the browser has closed it.
  function database() {
    opened ??= open(() => { opened = null; });
    return opened;
  }

  async function write(work) {
    const transaction = (await database()).transaction(STORE, "readwrite", { durability: "strict" });
    work(transaction.objectStore(STORE));
    await ended(transaction);
  }

  async function read(work) {
    const transaction = (await database()).transaction(STORE);
    const request = work(transaction.objectStore(STORE));
    await ended(transaction);
    return request.result;
  }

  return {
    getItem: async (name) => await read((store) => store.get(name)) ?? null,
    setItem: (name, value) => write((store) => store.put(value, name)),
    // One transaction, so of two tabs one is first.
    addItem: (name, value) => write((store) => {
      const found = store.get(name);
      found.onsuccess = () => { if (found.result === undefined) store.put(value, name); };
    }),
    removeItem: (name) => write((store) => store.delete(name)),
    keys: () => read((store) => store.getAllKeys()),
  };
}

function open(forget) {
  const opening = new Promise((resolve, reject) => {
    const request = globalThis.indexedDB.open(NAME, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE);
    request.onerror = () => reject(request.error);
    request.onsuccess = () => {
      const database = request.result;
      database.onclose = forget;
      // Somebody wants to delete it, as "clear site data" does: that is the user's to say.
      database.onversionchange = () => { forget(); database.close(); };
      resolve(database);
    };
  });
  opening.catch(forget);
  return opening;
}

function ended(transaction) {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error ?? new Error("the write was aborted"));
  });
}
