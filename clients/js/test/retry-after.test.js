// Shows what is a Retry-After and what is none, and that keys are UUIDs of version 7.
import assert from "node:assert/strict";
import { webcrypto } from "node:crypto";
import { test } from "node:test";
import { newKey } from "../key.js";
import { retryAfterSeconds } from "../retry-after.js";

const NOW = Date.UTC(2026, 10, 16, 8, 0, 0);
const ROWS = [
  ["0", 0], ["7", 7], [" 7 ", 7], ["99999999999999999999999", 31536000],
  ["Mon, 16 Nov 2026 08:00:05 GMT", 5], ["Mon, 16 Nov 2026 07:00:00 GMT", 0],
  ["Monday, 16-Nov-26 08:00:05 GMT", 5], ["Sunday, 06-Nov-94 08:49:37 GMT", 0],
  ["Mon Nov 16 08:00:05 2026", 5], ["Sun Nov  6 08:49:37 1994", 0],
  [null, null], ["", null], ["soon", null], ["7.5", null], ["-1", null], ["1e3", null], ["0x10", null],
  ["7, 8", null], ["2026-11-16", null], ["Mon, 16 Foo 2026 08:00:05 GMT", null],
];

for (const [value, seconds] of ROWS)
  test(`Retry-After: ${value}`, () => assert.equal(retryAfterSeconds(value, NOW), seconds));

test("a key has its time in front, and chance behind it", () => {
  const keys = Array.from({ length: 1000 }, () => newKey(webcrypto, 0x0199_0000_abcd));
  assert.equal(new Set(keys).size, 1000);
  for (const key of keys) assert.match(key, /^01990000-abcd-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});
