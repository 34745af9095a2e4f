// Reads OTLP requests in JSON (one per line of standard input) by the published definitions,
// and prints them as these understand them, one per line. A member that the definitions do not
// have, or a value of another type, is an error: what comes out must be what went in.
const assert = require("node:assert");
const { readFileSync } = require("node:fs");
const root = require("@opentelemetry/otlp-transformer/build/src/generated/root");

const Request = root.opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest;
const ids = { traceId: 16, spanId: 8, parentSpanId: 8 };

// OTLP writes ids in hexadecimal; protobuf's own JSON, which the definitions read, in base64.
function toBase64(value) {
  if (Array.isArray(value)) return value.map(toBase64);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => {
    if (!(name in ids)) return [name, toBase64(member)];
    assert.match(member, new RegExp(`^[0-9a-f]{${2 * ids[name]}}$`), `${name} is no id: ${member}`);
    return [name, Buffer.from(member, "hex").toString("base64")];
  }));
}

for (const line of readFileSync(0, "utf8").split("\n").filter(Boolean)) {
  const sent = toBase64(JSON.parse(line));
  const message = Request.fromObject(sent);
  assert.strictEqual(Request.verify(message), null);
  const again = Request.decode(Request.encode(message).finish());
  // Empty lists are not there in protobuf.
  const read = Request.toObject(again, { longs: String, bytes: String, arrays: true });
  for (const resource of read.resourceSpans)
    for (const scope of resource.scopeSpans)
      scope.spans.forEach((span, n) => {
        const wanted = sent.resourceSpans[0].scopeSpans[0].spans[n];
        for (const name of Object.keys(wanted))
          assert.deepStrictEqual(strip(span[name]), strip(wanted[name]), name);
      });
  assert.deepStrictEqual(read.resourceSpans[0].resource.attributes, sent.resourceSpans[0].resource.attributes);
  console.log(JSON.stringify(read));
}

function strip(value) {
  return JSON.parse(JSON.stringify(value, (name, member) =>
    Array.isArray(member) && member.length === 0 ? undefined : member) ?? "null");
}
