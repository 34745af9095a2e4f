// The one kind of error that this client makes; `code` tells which.
//
//   request_refused      the call makes no sense as it is; nothing was sent or written
//   intent_in_use        the intent stands for another request; nothing was sent
//   storage_unavailable  the key cannot be written down; nothing was sent by this call
//   unsettled            no definite answer. `reason` says why: "budget", "stopped",
//                        "aborted" or "expired". The key is kept.
export class HapaxError extends Error {
  constructor(code, message, { cause, ...members } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "HapaxError";
    this.code = code;
    Object.assign(this, members);
  }
}

export const refuse = (message) => { throw new HapaxError("request_refused", message); };
