// The client in Node: it has no IndexedDB, and before version 19 no global crypto.
// Keys are kept in memory unless a storage is given: hapax-client/node has one of files.
import { webcrypto } from "node:crypto";
import { HapaxError, createClient as create, databaseStorage, memoryStorage } from "./hapax.js";

export { HapaxError, databaseStorage, memoryStorage };

export function createClient(options = {}) {
  const { crypto = webcrypto, storage = memoryStorage() } = options;
  return create({ ...options, crypto, storage });
}
