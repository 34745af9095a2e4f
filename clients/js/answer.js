// What a client makes of an answer: pure, over the few facts that matter. The cases
// stand in tests/client/answers.json, which the client in C obeys as well.
//
//   done   definite: the key may be dropped
//   again  the same request with the same key
//   stop   not definite, and sending it again at once is no help: the key is kept
//
// Doubt: this attempt or an earlier one may have happened, and its answer is not known.
// It stays until a definite answer comes. That is why 401 and its like, which say
// nothing about what was lost before them, are definite only without doubt.

const TURNED_AWAY = [408, 425, 429];
const LOST_FURTHER_ON = [502, 503, 504];
const NOT_LET_IN = [401, 403, 407, 421];
const EXECUTED = ["no", "yes", "unknown"];

// `facts` is { lost: "unsent" | "sent" }, or { status, replayed, operation, retryAfterS,
// document }: operation says that it came through a gateway, retryAfterS is null where
// there is none, document is what `readDocument` gives.
export function judge(facts, doubt) {
  const then = facts.lost ? "again" : thenOf(facts, doubt);
  return { then, doubt: then !== "done" && (doubt || mayHaveHappened(facts)) };
}

function thenOf(facts, doubt) {
  if (isUnderWay(facts)) return "again";
  if (facts.status < 400 || facts.replayed) return "done";
  switch (facts.document.retry) {
    case "same_key": return "again";
    case "never": return "done";
    case "after_fix": return doubt || !wasRefused(facts) ? "stop" : "done";
    default: return byStatus(facts, doubt);
  }
}

function byStatus(facts, doubt) {
  const { status } = facts;
  if (TURNED_AWAY.includes(status) || LOST_FURTHER_ON.includes(status) || isInProgress(facts, doubt)) return "again";
  if (NOT_LET_IN.includes(status)) return doubt ? "stop" : "done";
  return status < 500 ? "done" : "stop";
}

// The first attempt runs on, and nobody knows yet how it ends (`concurrent: accepted`).
// What is delivered later is pending instead, and sure to be tried.
const isUnderWay = ({ status, operation, document }) =>
  status === 202 && operation && document.state === "in_progress";

// In doubt, a 409 that says no more may be about the attempt that was lost.
const isInProgress = ({ status, retryAfterS, document }, doubt) =>
  status === 409 && (doubt || retryAfterS !== null || document.inProgress);

// What is to be mended was not executed, unless the answer says so, or is a failure.
const wasRefused = ({ status, document: { executed } }) =>
  (EXECUTED.includes(executed) ? executed === "no" : status < 500);

// A 503 that names a time is somebody who refused; without one, it may be anybody.
function mayHaveHappened({ lost, status, retryAfterS, document }) {
  if (lost) return lost === "sent";
  if (EXECUTED.includes(document.executed)) return document.executed !== "no";
  return !TURNED_AWAY.includes(status) && !NOT_LET_IN.includes(status) && !(status === 503 && retryAfterS !== null);
}

// The members that say what to do, of a problem document or of Stripe's shape.
export function readDocument(contentType, text) {
  const type = (contentType ?? "").split(";")[0].trim().toLowerCase();
  if (type !== "application/problem+json" && type !== "application/json") return {};
  const found = parsed(text);
  if (type === "application/problem+json") return words(found);
  const error = found?.error;
  return { ...words(error), inProgress: error?.type === "idempotency_error", state: found?.state };
}

function words(object) {
  const word = (value) => (typeof value === "string" ? value : undefined);
  return { retry: word(object?.retry), executed: word(object?.executed), code: word(object?.code) };
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null; // then it counts by its status
  }
}
