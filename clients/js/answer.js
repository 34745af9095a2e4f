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

const DID_NOTHING = [408, 425, 429];
const LOST_FURTHER_ON = [502, 503, 504];
const NOT_LET_IN = [401, 403, 407, 421];
const WORDS = ["same_key", "after_fix", "never"];

const definite = { then: "done", doubt: false };
const again = (doubt) => ({ then: "again", doubt });
const unlessInDoubt = (doubt) => (doubt ? { then: "stop", doubt } : definite);

// `facts` is { lost: "unsent" | "sent" }, or { status, replayed, retryAfterS, document }:
// retryAfterS is null where there is none, document is what `readDocument` gives.
export function judge(facts, doubt) {
  if (facts.lost) return again(doubt || facts.lost === "sent");
  if (facts.status < 400 || facts.replayed) return definite;
  if (WORDS.includes(facts.document.retry)) return judgeWords(facts, doubt);
  return judgeStatus(facts, doubt);
}

function judgeWords({ status, retryAfterS, document: { retry, executed } }, earlier) {
  if (retry === "never") return definite;
  const doubt = earlier || (executed ? executed !== "no" : leavesDoubt(status, retryAfterS));
  return retry === "same_key" ? again(doubt) : unlessInDoubt(doubt);
}

function judgeStatus({ status, retryAfterS, document }, earlier) {
  const doubt = earlier || leavesDoubt(status, retryAfterS);
  if (DID_NOTHING.includes(status) || LOST_FURTHER_ON.includes(status)) return again(doubt);
  if (NOT_LET_IN.includes(status)) return unlessInDoubt(earlier);
  if (status >= 500) return { then: "stop", doubt };
  const inProgress = status === 409 && (retryAfterS !== null || document.inProgress);
  return inProgress ? again(true) : definite;
}

// A 503 that names a time is somebody who refused; without one, it may be anybody.
function leavesDoubt(status, retryAfterS) {
  return status === 409 || (status >= 500 && !(status === 503 && retryAfterS !== null));
}

// The members that say what to do, of a problem document or of Stripe's shape.
export function readDocument(contentType, text) {
  const type = (contentType ?? "").split(";")[0].trim().toLowerCase();
  if (type !== "application/problem+json" && type !== "application/json") return {};
  const found = parsed(text);
  if (type === "application/problem+json") return words(found);
  const error = found?.error;
  return { ...words(error), inProgress: error?.type === "idempotency_error" };
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
