// Shows that a database which could not be opened is opened again: a page that is asked
// a second time must not need a reload. What it keeps is shown in a browser (tests/e2e).
import assert from "node:assert/strict";
import { test } from "node:test";
import { databaseStorage } from "../database-storage.js";

for (const [says, open] of [
  ["throws", () => { throw new Error("SecurityError"); }],
  ["fails", () => {
    const request = { error: new Error("UnknownError") };
    queueMicrotask(() => request.onerror());
    return request;
  }]])
  test(`an open that ${says} is tried anew by the next call`, async (t) => {
    const asked = t.mock.fn(open);
    globalThis.indexedDB = { open: asked };
    t.after(() => { delete globalThis.indexedDB; });
    const storage = databaseStorage();
    await assert.rejects(storage.getItem("a"), /Error/);
    await assert.rejects(storage.getItem("a"), /Error/);
    assert.equal(asked.mock.callCount(), 2);
  });
