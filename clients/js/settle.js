// One intent's way to a definite answer: written down, sent, judged, sent again within
// its budget. The request and the key never change on the way.
import { judge } from "./answer.js";
import { attempt } from "./attempt.js";
import { HapaxError } from "./error.js";

const SENTENCE = {
  budget: "no definite answer came within the time given",
  stopped: "the answer is not definite, and asking again at once is no help",
  aborted: "the call was aborted before a definite answer came",
  expired: "the key may be so old that the server has forgotten it: sending it again could repeat the effect",
};
// A wall clock is corrected by less. One that was set back tells no age.
const CORRECTION_MS = 5 * 60 * 1000;

export async function settle(settings, journal, { intent, request, signal }) {
  const entry = await journal.begin(intent, request.digest);
  const way = { intent, key: entry.key, doubt: entry.doubt, attempts: 0, lastResponse: null };
  const end = settings.clock() + settings.budgetMs;
  for (;;) {
    const failure = obstacle(settings, entry, way, signal, end);
    const step = failure ? { failure } : await oneStep(settings, journal, way, request, signal, end);
    if (step.response) return step.response;
    if (step.failure) throw await unsettled(journal, entry, way, step.failure);
  }
}

// Looked at before each attempt: a page that was frozen, or a computer that slept, wakes
// up hours later in the middle of a wait.
function obstacle(settings, entry, way, signal, end) {
  if (signal.aborted) return { reason: "aborted", cause: signal.reason };
  const leftMs = end - settings.clock(), ageMs = settings.now() - entry.created;
  if (way.doubt && (ageMs < -CORRECTION_MS || ageMs + Math.max(leftMs, 0) > settings.retentionMs))
    return { reason: "expired" };
  return leftMs > 0 ? undefined : { reason: "budget" };
}

async function oneStep(settings, journal, way, request, signal, end) {
  const timeoutMs = Math.max(Math.min(settings.attemptTimeoutMs, end - settings.clock()), 1);
  const { response, error, facts } = await attempt(settings, request, way.key, signal, timeoutMs);
  const verdict = judge(facts, way.doubt);
  way.attempts += 1;
  way.doubt = verdict.doubt;
  if (response) keepLast(way, response);
  const waitMs = verdict.then === "again" ? delayMs(settings, way.attempts, facts.retryAfterS) : 0;
  const storageError = verdict.then === "done" ? await dropped(journal, way) : undefined;
  report(settings, { intent: way.intent, key: way.key, attempt: way.attempts, status: response?.status, error,
    then: verdict.then, doubt: way.doubt, waitMs, storageError });
  if (verdict.then === "done") return { response };
  if (signal.aborted) return { failure: { reason: "aborted", cause: signal.reason } };
  if (verdict.then === "stop") return { failure: { reason: "stopped", cause: error } };
  if (settings.clock() + waitMs >= end) return { failure: { reason: "budget", cause: error } };
  await settings.sleep(waitMs, signal);
  return {};
}

// An answer that is overtaken must not hold its connection.
function keepLast(way, response) {
  if (way.lastResponse?.body && !way.lastResponse.bodyUsed) way.lastResponse.body.cancel().catch(() => {});
  way.lastResponse = response;
}

// Full jitter; the later of that and what the server asked for.
function delayMs({ backoff, random }, attempts, retryAfterS) {
  const ceiling = Math.min(backoff.capMs, backoff.baseMs * 2 ** Math.min(attempts - 1, 50));
  return Math.max(Math.floor(random() * (ceiling + 1)), (retryAfterS ?? 0) * 1000);
}

// The answer is definite whether or not the entry goes: one that stays makes the next
// call with this intent get the same answer again. So the caller is told, not stopped.
async function dropped(journal, way) {
  try {
    await journal.end(way.intent, way.key);
    return undefined;
  } catch (error) {
    return error;
  }
}

// The caller's own mistake in its observer must not cost it the answer.
function report({ onAttempt }, event) {
  try {
    onAttempt?.(event);
  } catch (error) {
    queueMicrotask(() => { throw error; });
  }
}

async function unsettled(journal, entry, way, { reason, cause }) {
  const members = { ...way, reason };
  try {
    await journal.leave(way.intent, entry, way.doubt);
  } catch (error) {
    members.storageError = error; // the entry goes on saying doubt, which is never wrong
  }
  return new HapaxError("unsettled", SENTENCE[reason], { ...members, cause });
}
