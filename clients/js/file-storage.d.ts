import type { KeyStorage } from "./hapax.js";

/** A folder (made with mode 0700) with one file (0600) for each unsettled intent. */
export declare function fileStorage(folder: string): Required<Omit<KeyStorage, "length" | "key">>;
