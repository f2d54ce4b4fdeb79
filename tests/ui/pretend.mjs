// A group of many ranks (none: nobody is there) without as many processes: what the coordinator says of members is replaced, its plans are real.
// `rateOf`: how many bytes per second rank i sends to each of its peers; without it nothing moves any more.

export async function pretendGroup(page, cluster, ranks, rateOf = null) {
  const localities = Array.from({length: ranks}, (_, i) => ({
    region: "eu",
    zone: `eu-${1 + Math.floor((i * 2) / ranks)}`,
    rack: `r${1 + Math.floor((i * 4) / ranks)}`,
    host: `h${1 + Math.floor((i * Math.min(ranks, 16)) / ranks)}`,
  }));
  const workers = localities.map((locality, i) => ({
    id: `worker-${i}`,
    incarnation: "1",
    url: `http://10.0.0.${i}:7071`,
    locality,
    version: "0.2.0",
    state: "ready",
    lease_ms: 5000,
    heard_ms_ago: 40 * (i % 40),
    groups: ["pretended"],
  }));
  const group = {
    name: "pretended",
    epoch: 1,
    state: "ready",
    lost: [],
    requested: {on_failure: "fail", min_ranks: 1},
    stretch: {arrival_order: 1.4, assigned: 0.3},
    selection: [],
    members: workers.map((worker, rank) => ({
      rank,
      worker: worker.id,
      incarnation: "1",
      url: worker.url,
      locality: worker.locality,
      roles: [],
    })),
  };
  const begun = Date.now() / 1000;
  const links = (now) =>
    workers.flatMap((from, i) =>
      [1, 2, 4, 8].map((step) => {
        const sent = 4e8 / step + (rateOf ? rateOf(i) * (now - begun) : 0);
        return {
          from: from.id,
          to: workers[(i + step) % ranks].id,
          link: "tcp",
          connections: 1,
          sent_bytes: sent,
          send_busy_seconds: sent / (i === 5 && step === 1 ? 1e8 : 1e9), // the link from rank 5 to 6 is slow
        };
      }),
    );
  const answer = (body) => (route) => route.fulfill({json: body});
  await page.route("**/v1/workers?*", answer({items: workers, next_cursor: null}));
  await page.route("**/v1/groups?*", answer({items: ranks > 0 ? [group] : [], next_cursor: null}));
  await page.route("**/v1/links/traffic?*", (route) => {
    const now = Date.now() / 1000;
    return route.fulfill({json: {at_s: now, items: links(now).filter((link) => link.from !== link.to), silent: []}});
  });
  await page.route("**/v1/plans", async (route) => {
    const {group: _, ...request} = route.request().postDataJSON();
    const texts = localities.map((place) =>
      Object.entries(place)
        .map(([level, name]) => `${level}=${name}`)
        .join(","),
    );
    const response = await fetch(`${cluster.url}/v1/plans`, {
      method: "POST",
      body: JSON.stringify({...request, localities: texts}),
    });
    await route.fulfill({status: response.status, contentType: "application/json", body: await response.text()});
  });
}

// As if this worker had told of GPUs of these names.
export async function pretendGpus(page, worker, names) {
  const gpus = names.map((name, i) => ({
    uuid: `GPU-${i}`,
    pci_address: `0000:${17 + i}:00.0`,
    name,
    memory_gbyte_per_s: 3352.32,
    pcie_generation: 5,
    pcie_width: 16,
    nvlinks: [{to: "0000:10:00.0", is_switch: true, links: 18, gbyte_per_s: 450}],
  }));
  await page.route("**/v1/workers?*", async (route) => {
    const list = await (await route.fetch()).json();
    await route.fulfill({json: {...list, items: list.items.map((one) => (one.id === worker ? {...one, gpus} : one))}});
  });
}

// The trace of a run of `ranks`, as GET /v1/collectives/{id}/trace has it (docs/guides/diagnosis.md), of every collective.
export async function pretendTrace(page, ranks) {
  const span = (pid, tid, cat, name, ts, dur) => ({
    ph: "X",
    pid,
    tid,
    cat,
    name,
    ts,
    dur,
    args: {round: 0, bytes: 4096},
  });
  const traceEvents = Array.from({length: ranks}, (_, rank) => [
    {ph: "M", name: "process_name", pid: rank, tid: 0, args: {name: `rank ${rank}`}},
    span(rank, 0, "run", "all_reduce ring succeeded", 0, 9000),
    span(rank, 100, "instruction", `recv_reduce from ${(rank + ranks - 1) % ranks}`, 0, 4000),
    span(rank, 100, "wait", "wait", 0, 1500),
    span(rank, 100, "instruction", `recv from ${(rank + ranks - 1) % ranks}`, 4500, 4000),
    span(rank, 300, "instruction", `send to ${(rank + 1) % ranks}`, 1000, 2000),
    {ph: "s", pid: rank, tid: 300, cat: "message", name: "message", ts: 3000, id: `${rank}>${(rank + 1) % ranks}#0`},
  ]).flat();
  await page.route("**/v1/status", async (route) => {
    const status = await (await route.fetch()).json();
    await route.fulfill({json: {...status, traces: true}});
  });
  await page.route("**/v1/collectives/*/trace", (route) => route.fulfill({json: {traceEvents, displayTimeUnit: "ms"}}));
}
