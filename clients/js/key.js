// A key: a UUID of version 7 (RFC 9562), 48 bits of time and 74 of chance.
export function newKey(crypto, nowMs) {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  for (let i = 0, time = nowMs; i < 6; i++, time = Math.floor(time / 256)) bytes[5 - i] = time % 256;
  bytes[6] = 0x70 | (bytes[6] & 0x0f);
  bytes[8] = 0x80 | (bytes[8] & 0x3f);
  return hex(bytes).replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

export const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
