// A request as it is sent each time: the same method, address, headers and bytes,
// read once from whatever the caller gave. Its digest tells it from another one.
import { refuse } from "./error.js";
import { hex } from "./key.js";

const FORM = "application/x-www-form-urlencoded;charset=UTF-8";
const TEXT = "text/plain;charset=UTF-8";

export async function readRequest(settings, url, init) {
  check(settings, url, init);
  const { bytes, type } = await readBody(init.body);
  const { intent, body, signal, ...rest } = init;
  const headers = new Headers(rest.headers);
  if (type && !headers.has("Content-Type")) headers.set("Content-Type", type);
  const sent = { ...rest, method: init.method.toUpperCase(), headers, redirect: "manual" };
  // What fetch would find wrong with it each time is found here, before a key is made.
  const probe = new Request(url, { ...sent, body: bytes });
  const address = probe.url.split("#")[0];
  const digest = await digestOf(settings.crypto, [sent.method, address, headers.get("Content-Type") ?? ""], bytes);
  return { url: address, init: { ...sent, body: bytes }, digest };
}

function check(settings, url, init) {
  if (typeof init.intent !== "string" || init.intent === "")
    refuse("a request that changes something needs an intent: your own name of what is to happen once");
  if (typeof url !== "string" && !(url instanceof URL))
    refuse("a Request object can be read only once: give the URL, and the rest as the second argument");
  if (new Headers(init.headers).has(settings.keyHeader))
    refuse(`${settings.keyHeader} is this client's own header: the intent stands for the key`);
  if (init.redirect !== undefined && init.redirect !== "manual")
    refuse("redirects are never followed: that would be another request");
  if (init.mode === "no-cors") refuse("the answer to a no-cors request cannot be read");
  if (!settings.crypto?.subtle) refuse("crypto.subtle is missing: a page needs https, or localhost");
}

async function readBody(body) {
  if (body === undefined || body === null) return {};
  if (typeof body === "string") return { bytes: new TextEncoder().encode(body), type: TEXT };
  if (body instanceof URLSearchParams) return { bytes: new TextEncoder().encode(String(body)), type: FORM };
  if (body instanceof Blob) return { bytes: new Uint8Array(await body.arrayBuffer()), type: body.type };
  if (body instanceof ArrayBuffer) return { bytes: new Uint8Array(body.slice(0)) };
  if (ArrayBuffer.isView(body))
    return { bytes: new Uint8Array(body.buffer, body.byteOffset, body.byteLength).slice() };
  if (body instanceof FormData)
    refuse("a FormData has another boundary each time: send JSON, URLSearchParams or a Blob");
  if (typeof body.getReader === "function" || Symbol.asyncIterator in body)
    refuse("a stream can be read only once: read it into an ArrayBuffer or a Blob first");
  return refuse("this body is not understood: a string, URLSearchParams, Blob or bytes; objects by JSON.stringify");
}

// JSON has no line feed of its own, so nothing can slide from the one into the other.
async function digestOf(crypto, head, bytes = new Uint8Array()) {
  const text = new TextEncoder().encode(JSON.stringify(head) + "\n");
  const all = new Uint8Array(text.length + bytes.length);
  all.set(text);
  all.set(bytes, text.length);
  return hex(new Uint8Array(await crypto.subtle.digest("SHA-256", all)));
}
