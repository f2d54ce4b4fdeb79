// A coordinator and workers as real processes on loopback, and what a story does with them over HTTP.
import {spawn} from "node:child_process";
import {once} from "node:events";
import {createInterface} from "node:readline";
import {quietPort} from "./port.mjs";

const startMs = 60000; // on a machine that does other work

async function start(program, args) {
  const process = spawn(`${globalThis.process.env.CHORUS_BIN}/${program}`, ["--log-level", "warn", ...args], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let log = "";
  process.stderr.on("data", (text) => {
    log = (log + text).slice(-4000);
  });
  const lines = createInterface({input: process.stdout});
  const deadline = AbortSignal.timeout(startMs);
  const url = await new Promise((resolve, reject) => {
    lines.on("line", (line) => line.startsWith("listening on ") && resolve(line.slice("listening on ".length)));
    process.once("exit", (code) => reject(new Error(`${program} ended with ${code}: ${log}`)));
    deadline.addEventListener("abort", () => reject(new Error(`${program} did not start: ${log}`)));
  });
  return {process, url, log: () => log};
}

async function end(service, signal) {
  if (service.process.exitCode !== null || service.process.signalCode !== null) return;
  const gone = once(service.process, "exit");
  service.process.kill(signal);
  await gone;
}

export class Cluster {
  // places[i] is the locality of worker "w<i>".
  static async begin(places, flags = []) {
    const cluster = new Cluster();
    cluster.coordinator = await start("chorus-coordinator", ["--port", `${await quietPort()}`, ...flags]);
    cluster.url = cluster.coordinator.url;
    cluster.workers = new Map();
    for (const [i, place] of places.entries()) await cluster.addWorker(`w${i}`, place);
    return cluster;
  }
  async addWorker(id, place) {
    this.workers.set(
      id,
      await start("chorus-worker", ["--port", "0", "--coordinator", this.url, "--id", id, "--locality", place]),
    );
    await this.until(async () =>
      (await this.get("/v1/workers?limit=1000")).items.some((one) => one.id === id && one.state === "ready"),
    );
  }
  signal(id, signal) {
    this.workers.get(id).process.kill(signal);
  }
  async killWorker(id) {
    await end(this.workers.get(id), "SIGKILL");
    this.workers.delete(id);
  }
  async killCoordinator() {
    await end(this.coordinator, "SIGKILL");
  }
  async restartCoordinator() {
    this.coordinator = await start("chorus-coordinator", ["--port", new URL(this.url).port]);
  }
  async stop() {
    await Promise.all([...this.workers.values(), this.coordinator].map((service) => end(service, "SIGKILL")));
  }

  async call(method, path, body) {
    const response = await fetch(this.url + path, {
      method,
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const answer = await response.json();
    if (!response.ok) throw new Error(`${method} ${path}: ${JSON.stringify(answer)}`);
    return answer;
  }
  get(path) {
    return this.call("GET", path);
  }
  makeGroup(name, size) {
    return this.call("PUT", `/v1/groups/${name}`, {size});
  }

  // The same tensor on every worker. Elements: Int32Array or Float32Array.
  async putTensor(name, elements, ids = [...this.workers.keys()], Elements = Int32Array) {
    const dtype = Elements === Float32Array ? "f32" : "i32";
    for (const id of ids)
      await fetch(`${this.workers.get(id).url}/v1/tensors/${name}`, {
        method: "PUT",
        body: Buffer.from(new Elements(elements).fill(1).buffer),
        headers: {"Content-Type": "application/octet-stream", "Tensor-Dtype": dtype, "Tensor-Shape": String(elements)},
      });
  }
  allReduce(group, tensor, more = {}) {
    return this.call("POST", "/v1/collectives?wait=20s", {group, op: "all_reduce", tensor, ...more});
  }

  // What the condition is, once it is something.
  async until(condition, ms = startMs) {
    const end = Date.now() + ms;
    for (;;) {
      const met = await condition();
      if (met) return met;
      if (Date.now() > end) throw new Error(`waited ${ms} ms in vain for ${condition}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}
