// What hapax-client offers, for TypeScript and for people. The platform's types (Response,
// URL, …) are those of the program that imports it: of "dom", of @types/node; with neither,
// the members that the client itself uses.

type Platform<Name extends string, Otherwise> = typeof globalThis extends Record<Name, { prototype: infer T }> ? T : Otherwise;

interface PlainSignal {
  readonly aborted: boolean;
  readonly reason: unknown;
  throwIfAborted(): void;
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
}
interface PlainHeaders {
  get(name: string): string | null;
  has(name: string): boolean;
}
interface PlainResponse {
  readonly status: number;
  readonly ok: boolean;
  readonly type: string;
  readonly headers: PlainHeaders;
  arrayBuffer(): Promise<ArrayBuffer>;
  json(): Promise<any>;
  text(): Promise<string>;
  clone(): PlainResponse;
}
interface PlainInit {
  method?: string;
  headers?: Record<string, string> | [string, string][];
  body?: unknown;
  redirect?: string;
  credentials?: "include" | "omit" | "same-origin";
  keepalive?: boolean;
  signal?: PlainSignal | null;
}
interface PlainCrypto {
  getRandomValues(bytes: Uint8Array): Uint8Array;
  readonly subtle: { digest(algorithm: string, data: Uint8Array): Promise<ArrayBuffer> };
}
interface PlainLocks {
  request(name: string, options: object, callback: (lock: unknown) => unknown): Promise<any>;
}

type TheSignal = Platform<"AbortSignal", PlainSignal>;
type TheResponse = Platform<"Response", PlainResponse>;
type TheUrl = Platform<"URL", { readonly href: string }>;
type TheFetch = typeof globalThis extends { fetch: infer F } ? F :
  (url: string, init?: PlainInit) => Promise<PlainResponse>;
type TheInit = typeof globalThis extends { fetch: (input: any, init?: infer I) => any } ? NonNullable<I> : PlainInit;

/** Where keys are kept. localStorage has this shape too, but a browser that is killed may
 *  lose what was written to it a moment ago. Every method may be asynchronous. */
export interface KeyStorage {
  getItem(name: string): string | null | undefined | Promise<string | null | undefined>;
  setItem(name: string, value: string): unknown;
  removeItem(name: string): unknown;
  /** As setItem, but what is there already stays. For storages that processes share. */
  addItem?(name: string, value: string): unknown;
  /** The names of all items; without it, `length` and `key(i)` are asked. */
  keys?(): Iterable<string> | Promise<Iterable<string>>;
  readonly length?: number;
  key?(index: number): string | null;
}

/** What happened in one attempt. Holds a key: do not send it to a public log. */
export interface AttemptEvent {
  intent: string;
  key: string;
  /** 1, 2, 3… within this call. */
  attempt: number;
  /** Undefined where no whole answer came; 0 for a redirect in a browser. */
  status?: number;
  error?: unknown;
  then: "done" | "again" | "stop";
  /** An attempt may have happened, and its answer is not known. */
  doubt: boolean;
  /** How long until the next attempt, if there is one. */
  waitMs: number;
  /** The answer is definite, but the entry could not be dropped: the next call with
   *  this intent gets the same answer again. */
  storageError?: unknown;
}

export interface ClientOptions {
  /** databaseStorage() in browsers, memoryStorage() in Node. */
  storage?: KeyStorage;
  fetch?: TheFetch;
  /** "Idempotency-Key" */
  keyHeader?: string;
  /** Sends the key without quotes, for an API that wants it so. */
  bareKey?: boolean;
  /** How long one call may take in all: 60 s. */
  budgetMs?: number;
  /** How long one attempt may take: 30 s. */
  attemptTimeoutMs?: number;
  /** How long the server remembers a key: 24 h. In doubt, an older one is never sent again. */
  retentionMs?: number;
  /** Exponential, with full jitter: 300 ms, at most 10 s. */
  backoff?: { baseMs?: number; capMs?: number };
  onAttempt?(event: AttemptEvent): void;
  /** 0 ≤ x < 1 */
  random?(): number;
  /** Wall clock, in milliseconds. */
  now?(): number;
  /** A clock that never goes back, in milliseconds. */
  clock?(): number;
  /** Resolves after `ms`, or as soon as the signal is aborted. */
  sleep?(ms: number, signal: TheSignal): Promise<void>;
  crypto?: Pick<Platform<"Crypto", PlainCrypto>, "getRandomValues" | "subtle">;
  /** navigator.locks, where it exists. */
  locks?: Pick<Platform<"LockManager", PlainLocks>, "request">;
}

export type Body = string | Platform<"URLSearchParams", never> | Platform<"Blob", never> | ArrayBuffer | ArrayBufferView | null;

export interface CallInit extends Omit<TheInit, "body" | "redirect"> {
  /** Your own name of what is to happen once: "checkout:cart-42". Needed unless the
   *  method is GET, HEAD or OPTIONS. */
  intent?: string;
  body?: Body;
  redirect?: "manual";
}

export interface Pending {
  intent: string;
  /** Null where what is stored cannot be read. */
  key: string | null;
  created: number | null;
  doubt: boolean;
}

export interface Client {
  /** The definite answer, whatever its status; otherwise a HapaxError. */
  fetch(url: string | TheUrl, init?: CallInit): Promise<TheResponse>;
  /** What has no definite answer yet, oldest first. */
  pending(): Promise<Pending[]>;
  /** Drops a key. The next call with this intent makes a new one: a new effect. */
  forget(intent: string): Promise<void>;
}

export type ErrorCode = "request_refused" | "intent_in_use" | "storage_unavailable" | "unsettled";

export declare class HapaxError extends Error {
  readonly name: "HapaxError";
  readonly code: ErrorCode;
  readonly cause?: unknown;
  readonly intent?: string;
  readonly key?: string;
  /** With "unsettled": it may have happened. False: it did not. */
  readonly doubt?: boolean;
  /** With "unsettled". */
  readonly reason?: "budget" | "stopped" | "aborted" | "expired";
  readonly attempts?: number;
  /** With "unsettled": the last answer that came, if one did. */
  readonly lastResponse?: TheResponse | null;
  /** With "intent_in_use": when the other request was begun. */
  readonly created?: number;
  readonly storageError?: unknown;
}

export declare function createClient(options?: ClientOptions): Client;
/** IndexedDB, each write on the disk before anything is sent. */
export declare function databaseStorage(): KeyStorage;
/** For tests, and where nothing outlives the process anyway. */
export declare function memoryStorage(): KeyStorage;
