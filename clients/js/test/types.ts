// Shows that the types say what the client does: compiled, never run.
import { HapaxError, createClient, memoryStorage, type AttemptEvent, type Pending } from "hapax-client";
import { fileStorage } from "hapax-client/node";

const events: AttemptEvent[] = [];
const client = createClient({
  storage: localStorage, keyHeader: "X-Once", bareKey: true, budgetMs: 1, attemptTimeoutMs: 1, retentionMs: 2,
  backoff: { baseMs: 1 }, onAttempt: (event) => events.push(event), random: Math.random, now: Date.now,
  fetch, crypto, locks: navigator.locks, sleep: async (_ms, signal) => signal.throwIfAborted(),
});
createClient({ storage: fileStorage("keys") });
createClient({ storage: memoryStorage() });

export async function pay(signal: AbortSignal): Promise<number> {
  try {
    const answer: Response = await client.fetch(new URL("https://api.example/pay"), {
      method: "POST", body: new Uint8Array(2), headers: { a: "b" }, credentials: "include", intent: "cart", signal,
    });
    return answer.status;
  } catch (error) {
    if (error instanceof HapaxError && error.code === "unsettled" && error.reason === "stopped")
      return error.doubt ? error.lastResponse?.status ?? 0 : 1;
    throw error;
  }
}

const open: Pending[] = await client.pending();
await client.forget(open[0]!.intent);

// @ts-expect-error a FormData is refused
void client.fetch("/", { method: "POST", body: new FormData(), intent: "a" });
// @ts-expect-error redirects are not followed
void client.fetch("/", { method: "POST", redirect: "follow", intent: "a" });
// @ts-expect-error an intent is a string
void client.fetch("/", { method: "POST", intent: 7 });
