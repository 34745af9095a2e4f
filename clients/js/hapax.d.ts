// What hapax-client offers, for TypeScript and for people.

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
  fetch?: typeof fetch;
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
  sleep?(ms: number, signal: AbortSignal): Promise<void>;
  crypto?: Pick<Crypto, "getRandomValues" | "subtle">;
  /** navigator.locks, where it exists. */
  locks?: Pick<LockManager, "request">;
}

export type Body = string | URLSearchParams | Blob | ArrayBuffer | ArrayBufferView | null;

export interface CallInit extends Omit<RequestInit, "body" | "redirect"> {
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
  fetch(url: string | URL, init?: CallInit): Promise<Response>;
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
  readonly lastResponse?: Response | null;
  /** With "intent_in_use": when the other request was begun. */
  readonly created?: number;
  readonly storageError?: unknown;
}

export declare function createClient(options?: ClientOptions): Client;
/** IndexedDB, each write on the disk before anything is sent. */
export declare function databaseStorage(): KeyStorage;
/** For tests, and where nothing outlives the process anyway. */
export declare function memoryStorage(): KeyStorage;
