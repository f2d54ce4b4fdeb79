// A worker is stopped by hand in the middle of a collective: the record, the page, `chorus doctor` and the alerts name it.
import assert from "node:assert/strict";
import {execFile} from "node:child_process";
import {after, before, test} from "node:test";
import {close, level, openBrowser, openPage} from "./browser.mjs";
import {Cluster} from "./cluster.mjs";
import {Prometheus} from "./prometheus.mjs";

const elements = 32 << 20; // in small segments it takes long enough to be stopped in its middle
const places = ["host=h0", "host=h1", "host=h2", "host=h3"];
// The others may move on for seconds with what they have; then come the two seconds of a stall; only then may the lease end.
const lease = ["--lease-ms", "15000"];
// Silence of 30 s, then the minute of the rule's `for`; the rest is what rules and a busy machine need to notice.
const alertedMs = 240000;

let browser, cluster, prometheus;

before(async () => {
  browser = await openBrowser();
  cluster = await Cluster.begin(places, lease);
  await cluster.makeGroup("train", places.length);
  prometheus = await Prometheus.begin(cluster);
});

after(async () => {
  await browser?.close();
  await prometheus?.stop();
  await cluster?.stop();
});

const verdict = (page) => page.locator("#verdict-text");
const reasons = (page) => page.locator("#verdict-reasons");

// {status, text} of `chorus doctor`.
function doctor() {
  return new Promise((resolve) =>
    execFile(`${process.env.CHORUS_BIN}/chorus`, ["--coordinator", cluster.url, "doctor"], (error, text) =>
      resolve({status: error?.code ?? 0, text}),
    ),
  );
}

// What the doctor says of a lost worker. On a busy machine it may find a slow link, too, which is another story.
const lost = /nobody answers|degraded|waiting for rank/;

async function rankOf(id) {
  return (await cluster.get("/v1/groups/train")).members.find((member) => member.worker === id).rank;
}

// Launches "c" and waits until the worker is in the middle of it.
async function launch(id) {
  await cluster.putTensor("grad", elements);
  const {run} = await cluster.call("PUT", "/v1/collectives/c", {
    group: "train",
    op: "all_reduce",
    tensor: "grad",
    algorithm: "ring",
    timeout_ms: 60000,
    schedule: {segment_bytes: 4096, window: 1},
  });
  await cluster.until(async () => {
    const progress = await fetch(`${cluster.workers.get(id).url}/v1/runs/${run}/progress`);
    return progress.ok && (await progress.json()).state === "running";
  });
}

test("a worker stopped by hand is named by the record, the page, the doctor and the alerts", async () => {
  const page = await openPage(browser, cluster.url);
  await page.locator("html[data-level=green]").waitFor();
  await page.locator("#live[data-state=on]").waitFor();
  assert.doesNotMatch((await doctor()).text, lost);
  const rank = await rankOf("w2");

  await launch("w2");
  cluster.signal("w2", "SIGSTOP");
  const [during] = await Promise.all([
    cluster.until(async () => (await cluster.get("/v1/collectives/c")).stalled?.waiting_for?.includes(rank)).then(doctor),
    verdict(page)
      .filter({hasText: `1 stalled: c waits for rank ${rank} (w2)`})
      .waitFor(),
    reasons(page).getByText(`waiting for rank ${rank} ('w2'), which does not answer`).waitFor(),
    page.locator("#collective .trouble").getByText(`rank ${rank}`).first().waitFor(),
  ]);
  assert.equal(during.status, 1);
  assert.match(during.text, new RegExp(`waiting for rank ${rank} \\('w2'\\), which does not answer`));
  assert.match(during.text, /worker w2: nobody answers at its address/);

  const ended = await cluster.get("/v1/collectives/c?wait=30s");
  assert.equal(ended.state, "failed");
  assert.deepEqual(ended.error.ranks, [rank]);
  assert.deepEqual(ended.stalled.waiting_for, [rank]);
  await verdict(page).filter({hasText: "3 of 4 workers ready; waiting for w2, last heard"}).waitFor();
  assert.equal(await level(page), "red");
  await reasons(page).getByText("group train is degraded: it has lost w2").waitFor();
  const afterwards = await doctor();
  assert.equal(afterwards.status, 1);
  assert.match(afterwards.text, /group train: it is degraded: it has lost w2/);

  const [stale] = await cluster.until(async () => {
    const firing = (await prometheus.alerts("ChorusHeartbeatStale")).filter((alert) => alert.state === "firing");
    return firing.length > 0 && firing;
  }, alertedMs);
  assert.equal(stale.labels.worker, "w2");
  assert.match(stale.annotations.summary, /^Worker w2 has not been heard of for /);
  const [missing] = await prometheus.alerts("ChorusMembersMissing");
  assert.equal(missing.annotations.summary, "Group train lacks 1 of its members; not heard of: w2.");
  const [down] = await prometheus.alerts("ChorusTargetDown");
  assert.equal(down.labels.worker, "w2");
  await close(page);
});

test("one that goes on is taken back, and nothing is left of it", async () => {
  cluster.signal("w2", "SIGCONT");
  await cluster.until(async () => (await cluster.get("/v1/status")).ready === places.length);
  await cluster.makeGroup("train", places.length);
  await cluster.putTensor("small", 1024);
  assert.equal((await cluster.allReduce("train", "small")).state, "succeeded");
  const page = await openPage(browser, cluster.url);
  await page.locator("html[data-level=green]").waitFor();
  assert.doesNotMatch((await doctor()).text, lost);
  await cluster.until(async () => (await prometheus.alerts("ChorusHeartbeatStale")).length === 0, 60000);
  await close(page);
});
