// Shows that the types need no platform: compiled with "lib": ["es2022"] alone, never run.
import { HapaxError, createClient, memoryStorage } from "hapax-client";
import { fileStorage } from "hapax-client/node";

const client = createClient({ storage: memoryStorage(), sleep: async (_ms, signal) => signal.throwIfAborted() });
createClient({ storage: fileStorage("keys") });

export async function pay(): Promise<string | null> {
  try {
    const answer = await client.fetch("https://api.example/pay", { method: "POST", body: "{}", headers: { a: "b" }, intent: "cart" });
    const status: number = answer.status;
    return status === 201 ? answer.headers.get("Location") : await answer.text();
  } catch (error) {
    if (error instanceof HapaxError && error.code === "unsettled") return error.lastResponse?.headers.get("Retry-After") ?? null;
    throw error;
  }
}

// @ts-expect-error redirects are not followed
void client.fetch("/", { method: "POST", redirect: "follow", intent: "a" });
// @ts-expect-error an intent is a string
void client.fetch("/", { method: "POST", intent: 7 });
// @ts-expect-error there is no such member of an answer
export const wrong = async () => (await client.fetch("/", { intent: "a" })).statuss;
