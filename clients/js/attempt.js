// One attempt: the request goes out once, and the facts come back. An answer counts
// only when its body is whole; what was cut off is as good as lost.
import { readDocument } from "./answer.js";
import { retryAfterSeconds } from "./retry-after.js";

const DOCUMENT_BYTES_MAX = 1 << 20;
// Above this, an answer counts by its status and goes to the caller as it comes.
const ANSWER_BYTES_MAX = 16 << 20;
// Node says where it failed; these come before the first byte of a request.
const BEFORE_THE_REQUEST = ["connect", "getaddrinfo"];
const CERTIFICATE = /^(ERR_TLS_CERT_|CERT_|UNABLE_TO_|DEPTH_ZERO_SELF_|SELF_SIGNED_)/;

export async function attempt(settings, request, key, signal, timeoutMs) {
  const controller = new AbortController();
  const abort = () => controller.abort(signal.reason);
  const timer = setTimeout(() => controller.abort(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
  signal.addEventListener("abort", abort, { once: true });
  try {
    const response = await send(settings, request, key, controller.signal);
    return { response, facts: await factsOf(settings, response) };
  } catch (error) {
    return { error, facts: { lost: wasUnsent(error) ? "unsent" : "sent" } };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", abort);
  }
}

function send({ fetch, keyHeader, bareKey }, request, key, signal) {
  const headers = new Headers(request.init.headers);
  headers.set(keyHeader, bareKey ? key : `"${key}"`);
  return fetch(request.url, { ...request.init, headers, signal });
}

async function factsOf({ now }, response) {
  // A browser hides the redirect that it was told not to follow: status 0.
  const status = response.type === "opaqueredirect" ? 303 : response.status;
  if (status < 200) throw new Error("what came has no status, and is no answer");
  const text = await readAhead(response);
  return {
    status,
    replayed: response.headers.get("Idempotent-Replayed") === "true",
    operation: response.headers.has("Hapax-Operation"),
    retryAfterS: retryAfterSeconds(response.headers.get("Retry-After"), now()),
    document: readDocument(response.headers.get("Content-Type"), text),
  };
}

// The caller's copy stays unread. Gives the text of a body that may be a document.
async function readAhead(response) {
  if (!response.body || isEventStream(response)) return "";
  const reader = response.clone().body.getReader();
  const decoder = new TextDecoder();
  let text = "", size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return size <= DOCUMENT_BYTES_MAX ? text + decoder.decode() : "";
    size += value.byteLength;
    if (size <= DOCUMENT_BYTES_MAX) text += decoder.decode(value, { stream: true });
    if (size > ANSWER_BYTES_MAX) {
      // Its twin has not ended, so this would wait for the caller; nobody does.
      reader.cancel().catch(() => {});
      return "";
    }
  }
}

const isEventStream = (response) => /^text\/event-stream\b/i.test(response.headers.get("Content-Type") ?? "");

// A browser tells nobody whether a byte left, so only what is proved counts as unsent.
function wasUnsent(error) {
  const causes = error?.cause?.errors ?? [error?.cause];
  return causes.length > 0 && causes.every((cause) => BEFORE_THE_REQUEST.includes(cause?.syscall) ||
    cause?.code === "UND_ERR_CONNECT_TIMEOUT" || CERTIFICATE.test(cause?.code ?? ""));
}
