// Shows that the storage of files is private, whole after any death, safe between
// processes, and that it never takes what is damaged for nothing.
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createClient } from "hapax-client";
import { fileStorage } from "hapax-client/node";

function folderFor(t) {
  const folder = mkdtempSync(join(tmpdir(), "hapax-js-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "keys");
}

test("items come and go, whatever their names", async (t) => {
  const folder = folderFor(t), storage = fileStorage(folder);
  assert.deepEqual([await storage.getItem("a"), await storage.keys()], [null, []]);
  await storage.removeItem("a");
  for (const name of ["a", "../b", "ü/\n", "x".repeat(1000)]) await storage.setItem(name, `of ${name}`);
  await storage.setItem("a", "again");
  assert.deepEqual([await storage.getItem("a"), await fileStorage(folder).getItem("../b")], ["again", "of ../b"]);
  assert.deepEqual((await storage.keys()).sort(), ["../b", "a", "x".repeat(1000), "ü/\n"]);
  await storage.removeItem("a");
  assert.equal(await storage.getItem("a"), null);
  assert.equal(readdirSync(folder).length, 3, "nothing is left aside");
});

test("nobody else can read them", async (t) => {
  const folder = folderFor(t);
  await fileStorage(folder).setItem("a", "b");
  const modes = [folder, join(folder, readdirSync(folder)[0])].map((path) => statSync(path).mode & 0o777);
  assert.deepEqual(modes, [0o700, 0o600]);
});

test("of many who add at once, one stands", async (t) => {
  const folder = folderFor(t);
  await Promise.all(Array.from({ length: 20 }, (_, i) => fileStorage(folder).addItem("a", String(i))));
  const standing = await fileStorage(folder).getItem("a");
  await fileStorage(folder).addItem("a", "late");
  assert.equal(await fileStorage(folder).getItem("a"), standing);
  assert.equal(readdirSync(folder).length, 1);
});

test("a damaged file is not nothing", async (t) => {
  const folder = folderFor(t), storage = fileStorage(folder);
  await storage.setItem("hapax:cart-1", "b");
  writeFileSync(join(folder, readdirSync(folder)[0]), '{"name": "hap');
  const client = createClient({ storage, fetch: () => assert.fail("it was sent") });
  const call = client.fetch("http://127.0.0.1/", { method: "POST", intent: "cart-1" });
  await assert.rejects(call, { code: "storage_unavailable" });
  await assert.rejects(client.pending(), /is damaged/);
  await client.forget("cart-1");
  assert.deepEqual(await client.pending(), []);
});

test("a folder that cannot be written sends nothing", async (t) => {
  const folder = folderFor(t);
  writeFileSync(folder, "a file");
  const client = createClient({ storage: fileStorage(folder), fetch: () => assert.fail("it was sent") });
  const call = client.fetch("http://127.0.0.1/", { method: "POST", intent: "a" });
  await assert.rejects(call, { code: "storage_unavailable" });
});
