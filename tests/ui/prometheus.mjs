// A real Prometheus with the rules of this project as they are, which scrapes a cluster of a story every second.
import {spawn} from "node:child_process";
import {once} from "node:events";
import {mkdtemp, rm, writeFile} from "node:fs/promises";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {quietPort} from "./port.mjs";

const startMs = 60000;

function configuration(cluster) {
  const rules = `${globalThis.process.env.CHORUS_SOURCE}/metrics/rules`;
  const host = (service) => new URL(service.url).host;
  const job = (name, services) => ({job_name: name, static_configs: [{targets: services.map(host)}]});
  return {
    global: {scrape_interval: "1s", scrape_timeout: "900ms", evaluation_interval: "1s"},
    rule_files: [`${rules}/recording.yml`, `${rules}/alerts.yml`],
    scrape_configs: [
      job("chorus-coordinator", [cluster.coordinator]),
      job("chorus-worker", [...cluster.workers.values()]),
    ],
  };
}

export class Prometheus {
  static async begin(cluster) {
    const prometheus = new Prometheus();
    prometheus.directory = await mkdtemp(join(tmpdir(), "chorus-prometheus-"));
    await writeFile(join(prometheus.directory, "prometheus.yml"), JSON.stringify(configuration(cluster)));
    prometheus.url = `http://127.0.0.1:${await quietPort()}`;
    prometheus.process = spawn(
      "/usr/bin/prometheus",
      [
        `--config.file=${prometheus.directory}/prometheus.yml`,
        `--storage.tsdb.path=${prometheus.directory}/data`,
        `--web.listen-address=${new URL(prometheus.url).host}`,
        "--log.level=error",
      ],
      {stdio: ["ignore", "inherit", "inherit"]},
    );
    await cluster.until(async () => (await prometheus.targetsUp()) === 1 + cluster.workers.size, startMs);
    return prometheus;
  }

  async stop() {
    const gone = once(this.process, "exit");
    this.process.kill("SIGKILL");
    await gone;
    await rm(this.directory, {recursive: true});
  }

  // The `data` of GET /api/v1/...; null while it does not answer.
  async api(path) {
    const response = await fetch(`${this.url}/api/v1/${path}`).catch(() => null);
    return response?.ok ? (await response.json()).data : null;
  }
  async targetsUp() {
    const targets = await this.api("targets");
    return targets?.activeTargets.filter((target) => target.health === "up").length ?? 0;
  }
  // {labels, annotations, state} of those that are pending or fire.
  async alerts(name) {
    return (await this.api("alerts")).alerts.filter((alert) => alert.labels.alertname === name);
  }
}
