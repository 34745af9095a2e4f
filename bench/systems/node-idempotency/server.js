// @node-idempotency/core with its Redis adapter, called as its own adapters for
// web frameworks do: onRequest before the work, onResponse after it.
import core from '@node-idempotency/core';
import redis from '@node-idempotency/storage-adapter-redis';
import { execute, refusals, serve } from '../common/service.js';

const storage = new redis.RedisStorageAdapter({ url: process.env.REDIS });
await storage.connect();
const idempotency = new core.Idempotency(storage, { enforceIdempotency: true });

const refused = {
  [core.IdempotencyErrorCodes.REQUEST_IN_PROGRESS]: refusals.running,
  [core.IdempotencyErrorCodes.IDEMPOTENCY_FINGERPRINT_MISSMATCH]: refusals.reused,
  [core.IdempotencyErrorCodes.IDEMPOTENCY_KEY_LEN_EXEEDED]: refusals.missing,
};

serve(async ({ method, path, headers, body }) => {
  const request = { method, path, headers, body: JSON.parse(body) };
  let kept;
  try {
    kept = await idempotency.onRequest(request);
  } catch (error) {
    if (refused[error.code] !== undefined) return refused[error.code];
    throw error;
  }
  if (kept !== undefined) return { ...kept.additional, body: kept.body };
  const answer = await execute(path, body);
  await idempotency.onResponse(request, {
    body: answer.body.toString(), additional: { status: answer.status, type: answer.type },
  });
  return answer;
});
