// Parameters of several dtypes and optimizers on two workers, pushed to and checkpointed; then every file of the checkpoint through Hugging Face's
// reader, and every element against what the parameter server itself answers. Usage: tests/checkpoints/run.
import assert from "node:assert/strict";
import {spawn} from "node:child_process";
import {mkdtempSync, readFileSync, readdirSync, rmSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {parseSafetensorsMetadata} from "@huggingface/hub";

const binaries = process.argv[2];
const directory = mkdtempSync(join(tmpdir(), "chorus-checkpoint-"));
const processes = [];

// The URL that it prints.
async function start(program, ...flags) {
  const child = spawn(join(binaries, program), ["--port", "0", "--log-level", "error", ...flags], {stdio: ["ignore", "pipe", "inherit"]});
  processes.push(child);
  let said = "";
  for await (const piece of child.stdout) {
    said += piece;
    if (said.includes("\n")) return said.split("\n")[0].trim().split(" ").at(-1);
  }
  throw new Error(`${program} ended: ${said}`);
}

async function call(method, url, body, fields = {}) {
  const answer = await fetch(url, {method, body, headers: fields});
  assert.ok(answer.ok, `${method} ${url}: ${answer.status} ${answer.ok ? "" : await answer.text()}`);
  return answer;
}
const ask = async (method, url, value) => (await call(method, url, JSON.stringify(value), {"Content-Type": "application/json"})).json();

// What the reader asks the hub for, answered from the disk.
const from_disk = (file) => async (url, {headers}) => {
  const bytes = readFileSync(file);
  const [, first, last] = /bytes=(\d+)-(\d+)/.exec(new Headers(headers).get("Range"));
  const piece = bytes.subarray(Number(first), Number(last) + 1);
  return new Response(piece, {status: 206, headers: {"Content-Range": `bytes ${first}-${last}/${bytes.length}`, ETag: '"1"'}});
};

const element_bytes = {f64: 8, f32: 4, f16: 2, bf16: 2, i64: 8, u8: 1};
const parameters = [
  {name: "dense", dtype: "f32", shape: [40, 5], shards: 2, optimizer: {name: "adam"}},
  {name: "double", dtype: "f64", shape: [17], optimizer: {name: "adagrad"}},
  {name: "half", dtype: "f16", shape: [8, 3], optimizer: {name: "momentum"}},
  {name: "brain", dtype: "bf16", shape: [2, 2, 2], optimizer: {name: "sgd"}},
  {name: "counts", dtype: "i64", shape: [9]},
  {name: "bytes", dtype: "u8", shape: [3]},
];

async function read_all() {
  const coordinator = await start("chorus-coordinator");
  const workers = [];
  for (const id of ["w0", "w1"])
    workers.push(await start("chorus-worker", "--coordinator", coordinator, "--id", id, "--locality", `host=${id}`, "--checkpoint-directory", directory));
  for (const until = Date.now() + 20000; ;) {
    const {items} = await (await fetch(`${coordinator}/v1/workers`)).json();
    if (items.length === 2) break;
    assert.ok(Date.now() < until, "the workers did not join");
  }
  await ask("PUT", `${coordinator}/v1/groups/g`, {workers: ["w0", "w1"]});
  for (const {name, ...wish} of parameters) {
    await ask("PUT", `${coordinator}/v1/parameters/${name}`, {group: "g", ...wish});
    const elements = wish.shape.reduce((a, b) => a * b);
    // Bytes from 0 to 59 are small numbers, finite in every dtype.
    const gradient = Uint8Array.from({length: elements * element_bytes[wish.dtype]}, (_, i) => (i * 7) % 60);
    for (const sequence of [0, 1])
      await call("POST", `${workers[0]}/v1/parameters/${name}/gradient`, gradient,
                 {"Chorus-Client": "c", "Chorus-Sequence": String(sequence), "Content-Type": "application/octet-stream"});
  }
  await ask("POST", `${coordinator}/v1/checkpoints`, {name: "c", keep: 3});

  const files = readdirSync(directory, {recursive: true}).filter((file) => file.endsWith(".safetensors"));
  assert.equal(files.length, 2, "each worker writes one");
  const found = new Map(parameters.map(({name}) => [name, []]));
  let arrays = 0;
  for (const file of files) {
    const path = join(directory, file);
    const {header} = await parseSafetensorsMetadata({repo: "here/checkpoint", path: file, hubUrl: "http://disk.invalid", fetch: from_disk(path)});
    const bytes = readFileSync(path);
    const data = bytes.subarray(8 + Number(bytes.readBigUInt64LE(0)));
    const {__metadata__, ...tensors} = header;
    for (const [tensor, {dtype, shape, data_offsets: [begin, end]}] of Object.entries(tensors)) {
      ++arrays;
      const elements = shape.reduce((a, b) => a * b, 1);
      const parameter = parameters.find(({name}) => name === tensor);
      if (!parameter) continue;
      assert.equal(dtype.toLowerCase(), parameter.dtype);
      assert.deepEqual(shape.slice(1), parameter.shape.slice(1), "rows are told");
      assert.equal(end - begin, elements * element_bytes[parameter.dtype]);
      found.get(tensor).push({worker: file, bytes: data.subarray(begin, end)});
    }
  }
  for (const {name, shards = 1} of parameters) {
    const value = Buffer.from(await (await call("GET", `${workers[0]}/v1/parameters/${name}/value`)).arrayBuffer());
    const parts = found.get(name).map(({bytes}) => bytes);
    assert.ok([parts, [...parts].reverse()].some((order) => Buffer.concat(order).equals(value)), `${name} is in the files as it is served`);
    assert.equal(parts.length, shards, `${name} is in as many pieces as it has shards`);
  }
  console.log(`${files.length} files with ${arrays} arrays: read by @huggingface/hub, ${parameters.length} parameters equal to what is served`);
}

try {
  await read_all();
} finally {
  for (const child of processes.reverse()) child.kill("SIGKILL");
  rmSync(directory, {recursive: true});
}
