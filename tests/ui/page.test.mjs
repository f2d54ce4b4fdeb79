// Stories about the status page, told by a real browser and real processes.
import assert from "node:assert/strict";
import {spawnSync} from "node:child_process";
import {mkdtemp, readFile} from "node:fs/promises";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {after, before, test} from "node:test";
import {accessibilityFindings, close, level, openBrowser, openPage, screenshot} from "./browser.mjs";
import {Cluster} from "./cluster.mjs";
import {pretendGpus, pretendGroup, pretendTrace} from "./pretend.mjs";

const hostile = "<img src=x onerror=alert(1)>";
const places = Array.from(
  {length: 8},
  (_, i) => `region=eu,zone=eu-${1 + (i >> 2)},rack=r${1 + (i >> 1)},host=h${1 + i}`,
);
const noticedMs = 2000;

let browser, cluster;

before(async () => {
  browser = await openBrowser();
  cluster = await Cluster.begin(places);
  await cluster.makeGroup("train", 8);
});

after(async () => {
  await browser?.close();
  await cluster?.stop();
});

async function withinTheLimit(what, measure) {
  const tookMs = await measure();
  console.log(`  ${what}: ${tookMs} ms`);
  assert.ok(tookMs <= noticedMs, `${what}: ${tookMs} ms`);
}

const verdict = (page) => page.locator("#verdict-text");

test("nobody is there yet: every section says what would be, and how to get it", async () => {
  const empty = await Cluster.begin([]);
  const page = await openPage(browser, empty.url, {expected: /status of 409/});
  await page.getByText("Waiting for the first worker to join").waitFor();
  assert.equal(await level(page), "amber");
  for (const text of [
    "No group yet",
    "No collective has run yet",
    "No worker has joined yet",
    "No parameters",
    "Nothing has been sent yet",
  ])
    await page.locator("#sections").getByText(text).waitFor();
  assert.deepEqual(await accessibilityFindings(page), []);
  await page.locator("#demo").click();
  await page.getByText("No demo: no worker is ready").waitFor();
  await empty.addWorker("alone", "host=h");
  await page.locator("html[data-level=green]").waitFor();
  await page.locator("#demo").click();
  await page.locator("#collectives .state[data-state=succeeded]").first().waitFor();
  await page.locator(".topology .node").waitFor();
  assert.equal(await page.locator(".topology .node").count(), 1);
  await close(page);
  await empty.stop();
});

test("the verdict, its reasons and the workers can be read without scripts", async () => {
  const page = await openPage(browser, cluster.url, {javaScriptEnabled: false});
  await page.getByText("8 of 8 workers ready").waitFor();
  assert.match(await page.locator("noscript").innerText(), /w7/);
  await close(page);
});

test("it loads, says that all is well, and keeps to its Content-Security-Policy", async () => {
  const page = await openPage(browser, cluster.url);
  await page.locator("html[data-level=green]").waitFor();
  await page.locator("#live[data-state=on]").waitFor();
  assert.match(await verdict(page).innerText(), /^8 of 8 workers ready; 1 group/);
  const policy = (await page.context().request.get(cluster.url)).headers()["content-security-policy"];
  assert.match(policy, /default-src 'none'; script-src 'self'; style-src 'self'/);
  await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "globalThis.intruder = true";
    document.body.append(script);
  });
  assert.equal(await page.evaluate(() => globalThis.intruder), undefined);
  await cluster.until(() => page.complaints.length === 1); // the browser says that it has refused that script
  page.complaints.length = 0;
  await close(page);
});

test("the last line tells which coordinator leads, and where its state is kept", async () => {
  const page = await openPage(browser, cluster.url);
  await page.locator("#lead").getByText("no journal").waitFor();
  await page.route("**/v1/status", async (route) => {
    const status = await (await route.fetch()).json();
    const store = {kind: "etcd", place: "http://e1:2379", cluster: "training", bytes: 1};
    await route.fulfill({json: {...status, coordinator: {url: "http://c1:7070", since: status.started_at, store}}});
  });
  await page.locator("#lead").getByText("led by coordinator http://c1:7070 · etcd cluster training").waitFor();
  assert.deepEqual(await accessibilityFindings(page), []);
  await close(page);
});

test("a collective launched by somebody else appears, with its ranks, its reason and its event", async () => {
  const page = await openPage(browser, cluster.url);
  await page.locator("#live[data-state=on]").waitFor();
  await cluster.putTensor("grad", 262144);
  let done;
  await withinTheLimit("shown after the end", async () => {
    done = await cluster.allReduce("train", "grad");
    const ended = Date.now();
    await page.locator(`#collectives tbody tr[data-key="${done.id}"]`).waitFor();
    return Date.now() - ended;
  });
  await page.locator("#collective .waterfall .row-ground").nth(7).waitFor();
  assert.match(await page.locator("#collective").innerText(), new RegExp(done.id));
  assert.match(await page.locator("#collective").innerText(), /same on all ranks/);
  await page.locator("#events").getByText("collective.succeeded").first().waitFor();
  await close(page);
});

test("a plan is played step by step, forward and back, by mouse and by key", async () => {
  const page = await openPage(browser, cluster.url);
  await page.getByLabel("Algorithm").selectOption("ring");
  await page.locator("#plan .bars").filter({hasText: "▸ ring"}).waitFor(); // what was there before may have 14 rounds, too
  await page.locator("#plan").getByText("14 rounds").waitFor();
  assert.equal(await page.locator(".topology .edge").count(), 8);
  await page.getByLabel("Next round").click();
  await page.getByText("round 1 of 14").waitFor();
  assert.equal(await page.locator(".topology .edge.moving.reducing").count(), 8);
  assert.match(await page.locator(".moves").innerText(), /0 → 1, chunk 0, reduced on arrival/);
  await page.getByLabel("Previous round").click();
  await page.locator("#plan").getByText("14 rounds").waitFor();
  await page.locator("#plan h2").click();
  for (let i = 0; i < 14; ++i) await page.keyboard.press("n");
  await page.getByText("round 14 of 14").waitFor();
  assert.equal(await page.locator(".holdings .full").count(), 64); // everybody has everything
  await page.keyboard.press("p");
  await page.getByText("round 13 of 14").waitFor();
  await page.getByLabel("Play the plan").click();
  await page.getByText("round 14 of 14").waitFor();
  assert.match(await page.locator("#plan .bars").innerText(), /▸ ring/);
  assert.match(await page.locator("#plan .bars .times").allInnerTexts().then((texts) => texts.join()), /×\d/); // the others
  await page.getByLabel("Algorithm").selectOption("centralized");
  await page.locator(".topology .node.root").waitFor();
  await close(page);
});

test("the demo runs, and what it did is shown", async () => {
  const page = await openPage(browser, cluster.url);
  await page.locator("#live[data-state=on]").waitFor();
  await page.locator("#demo").click();
  const row = page.locator("#collectives tbody tr[aria-selected=true]").filter({hasText: "chorus.demo"});
  await row.locator(".state[data-state=succeeded]").waitFor();
  await page.locator("#collective .facts").getByText("same on all ranks").waitFor();
  const sum = await fetch(`${cluster.workers.get("w3").url}/v1/tensors/chorus.demo`).then((answer) =>
    answer.arrayBuffer(),
  );
  assert.equal(new Int32Array(sum)[0], 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8);
  await page.locator(".matrix rect.some").first().waitFor();
  await close(page);
});

test("a compressed collective shows its ratio, and is launched again as it was", async () => {
  await cluster.putTensor("packed", 25200, undefined, Float32Array);
  const done = await cluster.allReduce("train", "packed", {compression: "int8", error_feedback: true});
  const page = await openPage(browser, cluster.url);
  await page.locator(`#collectives tbody tr[data-key="${done.id}"]`).click();
  await page.locator("#collective .facts").getByText("3.94 : 1").waitFor();
  assert.match(await page.locator("#collective .curl").innerText(), /"compression":"int8","error_feedback":true/);
  await close(page);
});

test("where auto compresses nothing, the page says so", async () => {
  await cluster.putTensor("packed", 25200, undefined, Float32Array);
  const done = await cluster.allReduce("train", "packed", {compression: {format: "auto", allow: ["bf16", "int8"]}});
  const page = await openPage(browser, cluster.url);
  await page.locator(`#collectives tbody tr[data-key="${done.id}"]`).click();
  await page.locator("#collective .facts").getByText("Compressed").waitFor();
  assert.match(await page.locator("#collective .curl").innerText(), /"format":"auto","allow":\["bf16","int8"\]/);
  await close(page);
});

test("what every rank really did is drawn, as its flight recorder has it", async () => {
  await cluster.putTensor("traced", 1 << 20);
  const done = await cluster.allReduce("train", "traced", {algorithm: "ring"});
  const page = await openPage(browser, cluster.url);
  await page.locator(`#collectives tbody tr[data-key="${done.id}"]`).click();
  await page.getByText("Every rank's time, from the flight recorders").waitFor();
  for (const [kind, least] of [
    ["wait", 1],
    ["receive", 8],
    ["reduce", 8],
    ["send", 8],
  ])
    assert.ok((await page.locator(`#collective svg[role=img] .span.${kind}`).count()) >= least, kind);
  await close(page);
});

test("where flight recorders are, every rank's waiting, receiving, reducing and sending is drawn", async () => {
  const page = await openPage(browser, cluster.url, {before: (one) => pretendTrace(one, 8)});
  await page.getByText("Every rank's time, from the flight recorders").waitFor();
  for (const kind of ["wait", "receive", "reduce", "send"])
    assert.equal(await page.locator(`#collective svg[role=img] .span.${kind}`).count(), 8, kind);
  assert.match(await page.locator("#collective .span.send").first().getAttribute("data-tip"), /send to 1: 2\.00 ms/);
  await close(page);
});

test("traces are drawn also if the status, which tells of them, comes after the collectives", async () => {
  let drawn;
  const before = async (page) => {
    await pretendTrace(page, 8);
    drawn = page.locator("#collective .waterfall").first();
    await page.route("**/v1/status", async (route) => {
      await drawn.waitFor();
      await route.fallback();
    });
  };
  const page = await openPage(browser, cluster.url, {before});
  await page.getByText("Every rank's time, from the flight recorders").waitFor();
  await close(page);
});

test("the report is one file that shows the same without a server, and holds the data", async () => {
  const page = await openPage(browser, cluster.url, {acceptDownloads: true});
  await page.locator("#collectives tbody tr").first().waitFor();
  await page.locator("#workers").getByText("w7").first().waitFor();
  const [download] = await Promise.all([page.waitForEvent("download"), page.locator("#report").click()]);
  assert.match(download.suggestedFilename(), /^chorus-[\d-]+T\d+\.html$/);
  const path = join(await mkdtemp(join(tmpdir(), "chorus-report-")), "report.html");
  await download.saveAs(path);
  const text = await readFile(path, "utf8");
  assert.doesNotMatch(text, /<script(?! type="application\/json")|<link|src="\/ui/);
  const data = JSON.parse(text.match(/<script type="application\/json" id="data">(.*?)<\/script>/s)[1]);
  assert.equal(data.workers.length, 8);
  await close(page);
  const report = await openPage(browser, `file://${path}`);
  assert.match(await verdict(report).innerText(), /8 of 8 workers ready/);
  await close(report);
});

test("parameters show whose clock is behind", async () => {
  await cluster.call("PUT", "/v1/parameters/w", {
    group: "train",
    dtype: "f32",
    shape: [1000],
    staleness: 2,
    clients: ["a", "b"],
  });
  const page = await openPage(browser, cluster.url);
  const section = page.locator("#parameters");
  await section.getByText("at most 2 clocks apart").waitFor();
  const push = (client, sequence, clock) =>
    fetch(`${cluster.workers.get("w0").url}/v1/parameters/w/gradient`, {
      method: "POST",
      body: Buffer.alloc(4000),
      headers: {
        "Content-Type": "application/octet-stream",
        "Tensor-Dtype": "f32",
        "Tensor-Shape": "1000",
        "Chorus-Client": client,
        "Chorus-Sequence": String(sequence),
        "Chorus-Clock": String(clock),
      },
    });
  const pushed = await push("a", 0, 0);
  assert.ok(pushed.ok, await pushed.text());
  await section.getByText("clock 0 ◂ slowest").waitFor();
  await section.getByText("clock 1").waitFor();
  await close(page);
});

test("settings that are not at their defaults are shown, and all of them when asked", async () => {
  const other = await Cluster.begin([], ["--stall-ms", "1500"]);
  const page = await openPage(browser, other.url);
  const settings = page.locator("#settings");
  await settings.getByText("--stall-ms", {exact: true}).waitFor();
  await settings.getByText("1500", {exact: true}).waitFor();
  await settings.getByText(/; default 2000$/).waitFor();
  assert.equal(await settings.getByText("--drain-ms", {exact: true}).count(), 0);
  await settings.getByRole("button", {name: "Show all"}).click();
  await settings.getByText("--drain-ms", {exact: true}).waitFor();
  await close(page);
  await other.stop();
});

test("the GPUs of workers are named; where there are none, nothing is said of any", async () => {
  const page = await openPage(browser, cluster.url);
  await page.locator("#workers tbody tr").first().waitFor();
  assert.ok(await page.locator("#workers th", {hasText: "GPUs"}).isHidden());
  await pretendGpus(page, "w1", ["H100", "L4", "H100"]);
  const row = page.locator("#workers tbody tr", {hasText: /^w1.*2 × H100, L4/});
  assert.match(await row.getAttribute("data-tip"), /GPU 0000:18:00.0, L4, 3352 GB\/s, 18 NVLinks/);
  await close(page);
});

test("edges are as wide as their bytes per second; a slow link is told by colour, dashes, sign and words", async () => {
  const before = (one) => pretendGroup(one, cluster, 8, (rank) => (rank + 1) * 1e8);
  const page = await openPage(browser, cluster.url, {before});
  await page.getByLabel("Algorithm").selectOption("ring");
  await page.getByText("as wide as their bytes per second, dashed where slow").waitFor();
  // Width over that of an edge at rest, in eighths of what the fastest has more: rank i sends i + 1 eighths.
  await page.waitForFunction(() => {
    const edges = [...document.querySelectorAll(".topology .edge")];
    const eighths = edges.map((edge) => (8 * (parseFloat(edge.style.strokeWidth) - 1.5)) / 3.4);
    const sender = (edge) => Number(edge.dataset.tip.match(/^worker-(\d) →/)[1]);
    return edges.length === 8 && edges.every((edge, i) => eighths[i].toFixed(2) === (sender(edge) + 1).toFixed(2));
  });
  const looks = await page.locator(".topology .edge").evaluateAll((edges) =>
    edges.map((edge) => {
      const {stroke, strokeDasharray} = getComputedStyle(edge);
      return {tip: edge.dataset.tip, stroke, dashes: strokeDasharray};
    }),
  );
  const slow = looks.filter((one) => one.dashes !== "none");
  assert.equal(slow.length, 1);
  assert.match(slow[0].tip, /^worker-5 → worker-6\n[^]*0\.10 of the median/);
  assert.ok(looks.every((one) => one === slow[0] || one.stroke !== slow[0].stroke));
  assert.equal(await page.locator(".matrix").getByText(/^! /).count(), 1);
  const places = await page.locator(".topology .place-name").allTextContents();
  for (const place of ["eu-1", "eu-2", "r1", "r4"]) assert.ok(places.includes(place), place);
  await close(page);
});

test("everything can be reached and used with the keyboard alone", async () => {
  const page = await openPage(browser, cluster.url);
  await page.locator("#collectives tbody tr").first().waitFor();
  const reached = new Set();
  for (let i = 0; i < 140; ++i) {
    await page.keyboard.press("Tab");
    const focus = await page.evaluate(() => {
      const node = document.activeElement;
      const style = getComputedStyle(node);
      return {
        id: node.id || node.getAttribute("aria-label") || node.className || node.tagName,
        outline: parseFloat(style.outlineWidth),
        line: style.outlineStyle,
      };
    });
    if (focus.id === "BODY") continue;
    assert.ok(focus.outline >= 2 && focus.line !== "none", `${focus.id} shows that it has the focus`);
    reached.add(focus.id);
  }
  for (const id of ["demo", "report", "help", "Group", "Algorithm", "Next round", "Link matrix; arrow keys move"])
    assert.ok(reached.has(id), `${id} is reached`);
  await page.locator("#plan h2").click();
  await page.keyboard.press("?");
  await page.getByRole("dialog", {name: "Keys"}).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog", {name: "Keys"}).waitFor({state: "hidden"});
  await page.keyboard.press("3");
  assert.equal(await page.evaluate(() => document.activeElement.id), "links");
  await page.locator(".matrix").focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowDown");
  assert.match(await page.locator("#matrix-read").innerText(), /w\d/);
  await page.keyboard.press("j");
  await close(page);
});

test("light, dark, and the choice of who looks; nothing serious for axe in either", async () => {
  for (const colorScheme of ["light", "dark"]) {
    const page = await openPage(browser, cluster.url, {colorScheme});
    await page.locator("#collectives tbody tr").first().waitFor();
    await page.locator(".matrix rect.some").first().waitFor();
    const ground = () =>
      page.evaluate(() =>
        getComputedStyle(document.body)
          .backgroundColor.match(/\d+/g)
          .slice(0, 3)
          .reduce((sum, part) => sum + Number(part), 0),
      );
    assert.ok(colorScheme === "dark" ? (await ground()) < 150 : (await ground()) > 600);
    assert.deepEqual(await accessibilityFindings(page), []);
    await screenshot(page, `status_${colorScheme}`);
    await page.locator("#plan h2").click();
    await page.keyboard.press("t");
    assert.ok(colorScheme === "dark" ? (await ground()) > 600 : (await ground()) < 150);
    await page.reload();
    assert.ok(colorScheme === "dark" ? (await ground()) > 600 : (await ground()) < 150);
    await close(page);
  }
});

test("a telephone shows everything without scrolling sideways", async () => {
  const page = await openPage(browser, cluster.url, {viewport: {width: 390, height: 844}, deviceScaleFactor: 2});
  await page.locator("#collectives tbody tr").first().waitFor();
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "no horizontal scroll");
  assert.deepEqual(await accessibilityFindings(page), []);
  await screenshot(page, "status_narrow");
  await close(page);
});

test("names that look like markup are text", async () => {
  const other = await Cluster.begin([`rack=${hostile},host=${hostile}`, "rack=r2,host=h2"]);
  await other.makeGroup("g", 2);
  await other.putTensor("x", 4, ["w0"]);
  await other.call("POST", "/v1/collectives", {group: "g", op: "all_reduce", tensor: hostile}).catch(() => {});
  const page = await openPage(browser, other.url);
  await page.locator("#workers").getByText(hostile).first().waitFor();
  assert.equal(await page.locator("img[src=x]").count(), 0);
  const [download] = await Promise.all([page.waitForEvent("download"), page.locator("#report").click()]);
  const path = join(await mkdtemp(join(tmpdir(), "chorus-report-")), "report.html");
  await download.saveAs(path);
  const report = await openPage(browser, `file://${path}`);
  assert.equal(await report.locator("img[src=x]").count(), 0);
  await close(report);
  await close(page);
  await other.stop();
});

test("with authentication it asks for a token, keeps it for this tab, and sends it with everything", async () => {
  const seen = [];
  const guard = (page) =>
    page.route("**/v1/**", async (route) => {
      const token = route.request().headers().authorization;
      seen.push(token);
      if (token === "Bearer good") return route.continue();
      await route.fulfill({
        status: 401,
        contentType: "application/problem+json",
        body: JSON.stringify({code: "unauthorized", status: 401, detail: "a token is needed"}),
      });
    });
  const page = await openPage(browser, cluster.url, {before: guard, expected: /status of 401/});
  await page.getByRole("dialog", {name: "This coordinator asks for a token"}).waitFor();
  await page.locator("#token").fill("good");
  await page.keyboard.press("Enter");
  await page.locator("html[data-level=green]").waitFor();
  await page.locator("#live[data-state=on]").waitFor();
  assert.deepEqual(await page.evaluate(() => [Object.values({...sessionStorage}), Object.values({...localStorage})]), [
    ["good"],
    [],
  ]);
  assert.ok(!page.url().includes("good"));
  assert.equal(seen.at(-1), "Bearer good");
  await close(page);
});

test("a visitor without a token reads why nothing is shown and what to do, also without scripts and after Escape", async () => {
  const tokens = join(await mkdtemp(join(tmpdir(), "chorus-tokens-")), "tokens.jsonl");
  const created = spawnSync(
    `${process.env.CHORUS_BIN}/chorus`,
    ["token", "create", "--file", tokens, "--role", "read", "--id", "visitor"],
    {encoding: "utf8"},
  );
  const token = created.stdout.match(/chorus_[0-9a-f]{64}/)[0];
  const guarded = await Cluster.begin([], ["--auth-tokens", tokens]);
  const plain = await openPage(browser, guarded.url, {javaScriptEnabled: false});
  assert.match(await verdict(plain).innerText(), /only to those who have a token of the role read/);
  assert.match(await plain.locator("#verdict-reasons").innerText(), /chorus token create --role read/);
  await close(plain);
  const page = await openPage(browser, guarded.url, {expected: /status of 401/});
  const dialog = page.getByRole("dialog", {name: "This coordinator asks for a token"});
  await dialog.waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({state: "hidden"});
  await page.waitForResponse((response) => response.status() === 401); // it asks on, and is left in peace
  assert.equal(await dialog.count(), 0);
  assert.match(await verdict(page).innerText(), /only to those who have a token of the role read/);
  assert.equal(await page.locator("#sections").isVisible(), false);
  assert.deepEqual(await accessibilityFindings(page), []);
  await page.getByRole("button", {name: "Enter a token"}).click();
  await page.locator("#token").fill(token);
  await page.keyboard.press("Enter");
  await verdict(page).filter({hasText: "Waiting for the first worker to join"}).waitFor();
  assert.equal(await page.locator("#enter-token").count(), 0);
  await page.locator("#sections").getByText("No worker has joined yet").waitFor();
  await close(page);
  await guarded.stop();
});

for (const ranks of [2, 64])
  test(`${ranks} ranks are legible`, async () => {
    const page = await openPage(browser, cluster.url, {before: (one) => pretendGroup(one, cluster, ranks)});
    await page
      .locator(".topology .node")
      .nth(ranks - 1)
      .waitFor();
    await page.locator(".topology .edge").first().waitFor();
    if (ranks === 64) {
      await page.getByLabel("Algorithm").selectOption("halving_doubling");
      await page.getByText("12 rounds", {exact: true}).waitFor();
      await screenshot(page, "status_64_ranks");
    }
    assert.equal(await page.locator(".topology .worker-name").count(), ranks);
    await close(page);
  });

test("a group of the same name and epoch that is smaller, and then nobody, are drawn as they are", async () => {
  const page = await openPage(browser, cluster.url, {before: (one) => pretendGroup(one, cluster, 8)});
  await page.locator(".topology .edge").first().waitFor();
  await pretendGroup(page, cluster, 2);
  await page.waitForFunction(() => document.querySelectorAll(".topology .node").length === 2);
  await page.locator(".topology .edge").first().waitFor();
  await pretendGroup(page, cluster, 0);
  await page.getByText("No group yet").waitFor();
  await page.waitForFunction(() => document.querySelectorAll(".topology *").length === 0);
  await close(page);
});

test("a worker that is killed is named within two seconds, by mark and word", async () => {
  const page = await openPage(browser, cluster.url);
  await page.locator("html[data-level=green]").waitFor();
  await page.locator("#live[data-state=on]").waitFor();
  await withinTheLimit("noticed and shown on the ring after the kill", async () => {
    await cluster.killWorker("w5");
    const killed = Date.now();
    await page.locator("html[data-level=red]").waitFor();
    await page.locator(".topology .node.lost").waitFor();
    return Date.now() - killed;
  });
  assert.match(await verdict(page).innerText(), /7 of 8 workers ready; waiting for w5, last heard/);
  assert.equal(await page.locator("#verdict-word").innerText(), "Broken");
  assert.equal(await page.locator("#verdict-icon").innerText(), "✕");
  assert.equal(await page.locator(".topology .node.lost text").textContent(), "✕");
  assert.match(await page.locator("#verdict-reasons").innerText(), /group train is degraded: it has lost w5/);
  assert.match(await page.locator("#announce").textContent(), /lost w5/);
  await screenshot(page, "status_lost");
  await close(page);
});

test("a coordinator that is gone is said to be gone, and followed again when it is back", async () => {
  const page = await openPage(browser, cluster.url, {expected: /ERR_|Failed to fetch|status of 40[04]/});
  await page.locator("#live[data-state=on]").waitFor();
  await cluster.killCoordinator();
  await page.getByText("The coordinator does not answer").waitFor();
  await page.locator("#live[data-state=lost]").waitFor();
  await cluster.restartCoordinator();
  await page.locator("#live[data-state=on]").waitFor();
  await verdict(page).filter({hasText: "7 of 7 workers ready"}).waitFor();
  await close(page);
});
