// node check_objects.mjs MODULES FILE...: every object of the rendered files against Kubernetes' schemas.
//
// The schemas refuse wrong values; what they let pass, fields that do not exist, the types refuse: every object becomes a
// literal of its type, in which TypeScript allows no further properties.
import { readFileSync, writeFileSync, mkdtempSync, rmSync } from "node:fs";
import { join, basename } from "node:path";
import { pathToFileURL } from "node:url";

const [modules, ...files] = process.argv.slice(2);
// Packages are found from where the importing file lies.
writeFileSync(join(modules, "load.mjs"), "export default (name) => import(name);\n");
const load = (await import(pathToFileURL(join(modules, "load.mjs")).href)).default;
const { parseAllDocuments } = await load("yaml");
const typescript = (await load("typescript")).default;

const moduleOf = ({ apiVersion, kind }) =>
  (apiVersion.startsWith("monitoring.coreos.com/") ? "@kubernetes-models/prometheus-operator/" : "kubernetes-models/") +
  `${apiVersion}/${kind}`;

const failures = [];
const objects = [];
for (const file of files)
  for (const document of parseAllDocuments(readFileSync(file, "utf8"))) {
    for (const error of document.errors) failures.push(`${file}: ${error.message}`);
    const object = document.toJS();
    if (object === null) continue;
    objects.push({ file, object, name: `${basename(file)}: ${object.kind} ${object.metadata?.name}` });
  }

for (const { object, name } of objects) {
  try {
    const model = (await load(moduleOf(object)))[object.kind];
    new model(object).validate();
  } catch (error) {
    failures.push(`${name}: ${error.message}`);
  }
}

const scratch = mkdtempSync(join(modules, "objects-"));
try {
  const types = new Map(objects.map(({ object }) => [moduleOf(object), object.kind]));
  let source = [...types].map(([from, kind]) => `import type { I${kind} } from "${from}";\n`).join("");
  const starts = [];
  for (const [index, { object, name }] of objects.entries()) {
    starts.push({ line: source.split("\n").length, name });
    source += `export const object${index}: I${object.kind} = ${JSON.stringify(object, null, 1)};\n`;
  }
  const path = join(scratch, "objects.mts");
  writeFileSync(path, source);
  const program = typescript.createProgram([path], {
    noEmit: true, strict: true, skipLibCheck: true, types: [],
    target: typescript.ScriptTarget.ES2022,
    module: typescript.ModuleKind.NodeNext, moduleResolution: typescript.ModuleResolutionKind.NodeNext,
  });
  for (const diagnostic of typescript.getPreEmitDiagnostics(program)) {
    const text = typescript.flattenDiagnosticMessageText(diagnostic.messageText, " ");
    const line = diagnostic.file ? diagnostic.file.getLineAndCharacterOfPosition(diagnostic.start).line + 1 : 0;
    const owner = starts.filter((start) => start.line <= line).at(-1)?.name ?? "types";
    failures.push(`${owner}: ${text.slice(0, 400)}`);
  }
} finally {
  rmSync(scratch, { recursive: true });
}

for (const failure of failures) console.error(failure);
console.log(`${objects.length} objects of ${files.length} renders, ${failures.length} failures`);
process.exit(failures.length === 0 && objects.length > 0 ? 0 : 1);
