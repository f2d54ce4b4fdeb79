// The collectives, the newest first, and one of them in detail: why, how long, and who is waited for.
import {Problem, get} from "/ui/api.js";
import {empty, h, keyed, setText, state as stateMark} from "/ui/dom.js";
import {card} from "/ui/layout.js";
import {hasEnded, state} from "/ui/store.js";
import {algorithmName, bytes, count, rate, seconds} from "/ui/units.js";
import {rowsOfRecord, rowsOfTrace, waterfall} from "/ui/waterfall.js";
import {costBars} from "/ui/why.js";

const shown = 40;

// What nccl-tests calls bus bandwidth; null for operations and states that have none.
export function busBandwidth(one) {
  const p = one.ranks.length;
  const factor = {
    all_reduce: (2 * (p - 1)) / p,
    all_gather: (p - 1) / p,
    reduce_scatter: (p - 1) / p,
    all_to_all: (p - 1) / p,
    broadcast: 1,
    reduce: 1,
  }[one.request.op];
  return one.state === "succeeded" && one.seconds > 0 && one.bytes > 0 && p > 1 && factor
    ? (one.bytes * factor) / one.seconds
    : null;
}

// The ranks that have not ended, while others have, or that an error names.
export function awaitedRanks(one) {
  if (one.stalled?.waiting_for?.length) return one.stalled.waiting_for;
  if (one.error?.ranks?.length) return one.error.ranks;
  const open = one.ranks.filter((rank) => rank.state !== "succeeded").map((rank) => rank.rank);
  return hasEnded(one) || open.length === one.ranks.length ? [] : open;
}

function titleOf(one) {
  return one.request.op + (one.request.tensor ? ` of ${one.request.tensor}` : "");
}

function row(one, select) {
  return h(
    "tr",
    {class: "pick", onclick: () => select(one.id)},
    h("td", {}),
    h("td", {class: "name"}, h("button", {type: "button", class: "link"}, titleOf(one))),
    h("td"),
    h("td", {class: "n"}),
    h("td"),
    h("td", {class: "n"}),
    h("td", {class: "n"}),
  );
}

function updateRow(line, one, selected) {
  const [status, , group, size, algorithm, time, speed] = line.children;
  if (status.textContent !== one.state) status.replaceChildren(stateMark(one.state));
  setText(group, one.request.group);
  setText(size, one.bytes ? bytes(one.bytes) : "–");
  setText(algorithm, one.algorithm ? algorithmName(one) : "–");
  setText(time, one.seconds ? seconds(one.seconds) : "–");
  const bandwidth = busBandwidth(one);
  setText(speed, bandwidth ? rate(bandwidth) : "–");
  line.setAttribute("aria-selected", String(one.id === selected));
  line.dataset.tip = `${one.id}\n${one.created_at}\n${one.bytes.toLocaleString("en")} bytes per rank\n${one.seconds} s`;
}

// A format's name, or what has one.
function formatOf(compression) {
  return compression?.format ?? compression;
}

function curlOf(one) {
  const request = {
    group: one.request.group,
    op: one.request.op,
    ...(one.request.tensor && {tensor: one.request.tensor}),
    algorithm: one.request.algorithm,
    ...(one.request.compression && {compression: one.request.compression}),
    ...(one.request.error_feedback && {error_feedback: true}),
  };
  return `curl -X POST '${location.origin}/v1/collectives?wait=30s' -d '${JSON.stringify(request)}'`;
}

function copyLine(text) {
  const button = h(
    "button",
    {
      type: "button",
      "aria-label": "Copy the command",
      onclick: async () => {
        const copied = await navigator.clipboard?.writeText(text).then(
          () => true,
          () => false,
        );
        button.textContent = copied ? "Copied" : "Select it by hand";
      },
    },
    "Copy",
  );
  return h("div", {class: "curl"}, h("code", {tabindex: "0"}, text), button);
}

function troubleOf(one) {
  const named = (ranks) => ranks.map((rank) => `${rank} (${one.ranks[rank]?.worker ?? "?"})`).join(", ");
  const waited = awaitedRanks(one);
  if (one.error)
    return h(
      "p",
      {class: "trouble"},
      h("strong", {}, one.error.title || one.error.code),
      `: ${one.error.detail}`,
      waited.length ? ` Ranks: ${named(waited)}.` : "",
    );
  if (one.stalled) {
    const where = (one.stalled.ranks ?? [])
      .filter((rank) => rank.instruction)
      .map((rank) => h("li", {}, `rank ${rank.rank} (${rank.worker}), ${rank.state}: ${rank.instruction}`));
    return h(
      "div",
      {class: "trouble", "data-level": "amber"},
      h("strong", {}, "No progress"),
      `: ${one.stalled.text || `waiting for rank ${named(waited)}`}`,
      h("ul", {}, where),
    );
  }
  return waited.length
    ? h("p", {class: "trouble", "data-level": "amber"}, h("strong", {}, "Waiting"), ` for rank ${named(waited)}`)
    : null;
}

function factsOf(one) {
  const fact = (name, value, tip) => h("div", {"data-tip": tip}, h("dt", {}, name), h("dd", {}, value));
  const bandwidth = busBandwidth(one);
  const digests = new Set(one.ranks.map((rank) => rank.report?.output_digest).filter(Boolean));
  return h(
    "dl",
    {class: "facts"},
    fact("Took", one.seconds ? seconds(one.seconds) : "–", `${one.seconds} s from admission to commit`),
    fact("Predicted", seconds(one.predicted_seconds), `${one.predicted_seconds} s`),
    fact("Algorithm", one.algorithm ? algorithmName(one) : "–"),
    bandwidth && fact("Bus bandwidth", rate(bandwidth), "as nccl-tests defines it"),
    fact(
      "Arrival skew",
      seconds(one.arrival_skew_seconds),
      `${one.arrival_skew_seconds} s between the first and the last rank's start`,
    ),
    fact(
      "Per rank",
      bytes(one.bytes),
      `${one.bytes.toLocaleString("en")} bytes, ${one.dtype} [${one.shape.join(", ")}]`,
    ),
    one.wire_bytes > 0 &&
      fact(
        "Compressed",
        `${one.compression_ratio.toFixed(2)} : 1`,
        `${one.wire_format ?? formatOf(one.request.compression)}: ${one.wire_bytes.toLocaleString("en")} bytes of codes` +
          (one.request.error_feedback ? ", with error feedback" : ""),
      ),
    one.considered_formats &&
      !one.wire_format &&
      fact("Compressed", "no", "auto: no format allowed is faster than the elements"),
    digests.size > 0 &&
      one.request.op === "all_reduce" &&
      fact("Result", digests.size === 1 ? `✓ same on all ranks` : "✕ differs", [...digests].join("\n")),
  );
}

export function collectivesSection() {
  const {node, meta, body} = card("collectives", "Collectives", "wide");
  let selected = null,
    awaited = null, // is to be selected as soon as it is listed
    followNewest = true,
    shownDetail = "",
    traces = new Map();
  const rows = h("tbody");
  const head = ["State", "Operation", "Group", "Per rank", "Algorithm", "Took", "Bus"].map((title, i) =>
    h("th", {scope: "col", class: [3, 5, 6].includes(i) ? "n" : null}, title),
  );
  const table = h(
    "div",
    {class: "scroll of-collectives", tabindex: "0", role: "region", "aria-label": "Collectives, the newest first"},
    h("table", {}, h("thead", {}, h("tr", {}, head)), rows),
  );
  const detail = h("div", {id: "collective"});
  const bars = costBars(3);
  const nothing = empty(
    "No collective has run yet",
    "Run a demo with the button at the top, or launch one on a tensor that your workers hold:",
    `curl -X POST '${location.origin}/v1/collectives?wait=30s' -d '{"group":"train","op":"all_reduce","tensor":"x"}'`,
  );
  const grid = h("div", {class: "plan-grid"}, table, detail);
  body.append(nothing, grid);

  function select(id, byHand = true) {
    selected = id;
    followNewest = !byHand;
    draw(state);
  }
  function move(by) {
    const at = state.collectives.findIndex((one) => one.id === selected);
    const next = state.collectives[Math.min(Math.max(at + by, 0), Math.min(state.collectives.length, shown) - 1)];
    if (!next) return;
    select(next.id);
    rows.querySelector("[aria-selected=true]")?.scrollIntoView({block: "nearest"});
  }
  document.addEventListener("chorus:next-collective", () => move(1));
  document.addEventListener("chorus:previous-collective", () => move(-1));
  document.addEventListener("chorus:select", (event) => {
    awaited = event.detail;
    draw(state);
  });

  // Asked for once per collective that has ended; without it the record has to do.
  async function fetchTrace(one) {
    traces.set(one.id, null);
    try {
      traces.set(one.id, await get(`/v1/collectives/${encodeURIComponent(one.id)}/trace`));
      draw(state);
    } catch (failure) {
      if (!(failure instanceof Problem)) throw failure;
    }
    if (traces.size > shown) traces.delete(traces.keys().next().value);
  }

  function drawDetail(one) {
    const trace = traces.get(one.id);
    // The status, which says whether there are traces, may come after the first collective has been drawn.
    const now = JSON.stringify([one, state.status?.traces, trace ? trace.traceEvents?.length : 0]);
    if (now === shownDetail) return;
    shownDetail = now;
    if (state.status?.traces && hasEnded(one) && one.algorithm && !traces.has(one.id)) fetchTrace(one);
    const traced = trace ? rowsOfTrace(trace, one.ranks) : null;
    const hasTimes = traced !== null || one.ranks.some((rank) => rank.report);
    if (one.considered.length)
      bars.draw({
        considered: one.considered,
        chosen: one.algorithm,
        measured: one.state === "succeeded" ? one.seconds : null,
      });
    detail.replaceChildren(
      ...[
        h(
          "header",
          {},
          h(
            "h3",
            {},
            stateMark(one.state),
            ` ${titleOf(one)}, ${one.request.reduce}, in ${one.request.group} · ${one.id}`,
          ),
        ),
        troubleOf(one),
        factsOf(one),
        h("h3", {}, traced ? "Every rank's time, from the flight recorders" : "Every rank's time"),
        hasTimes
          ? waterfall(traced ?? rowsOfRecord(one))
          : h("p", {class: "soft"}, hasEnded(one) ? "No rank has reported." : "Ranks report when they have ended."),
        h("h3", {}, "Why this algorithm"),
        h("p", {class: "sentence"}, one.reason || "Not chosen yet."),
        one.considered.length ? bars.node : null,
        one.attempts.length
          ? h(
              "p",
              {class: "sentence"},
              "Attempts before this one: " +
                one.attempts.map((attempt) => `epoch ${attempt.epoch}: ${attempt.error.detail}`).join("; "),
            )
          : null,
        copyLine(curlOf(one)),
        h(
          "p",
          {class: "soft"},
          h("a", {href: `/v1/collectives/${encodeURIComponent(one.id)}`}, "The whole record as JSON"),
          traced
            ? [
                " · ",
                h(
                  "a",
                  {href: `/v1/collectives/${encodeURIComponent(one.id)}/trace`, download: `${one.id}.trace.json`},
                  "Chrome trace",
                ),
              ]
            : null,
        ),
      ].filter(Boolean),
    );
  }

  function draw(now) {
    const list = now.collectives.slice(0, shown);
    nothing.hidden = list.length > 0;
    grid.hidden = !nothing.hidden;
    const running = now.collectives.filter((one) => !hasEnded(one)).length;
    meta.textContent = list.length
      ? `${running ? `${running} under way · ` : ""}the last ${count(list.length, "record")}`
      : "";
    if (list.some((one) => one.id === awaited)) {
      selected = awaited;
      awaited = null;
      followNewest = false;
    }
    if (followNewest || !list.some((one) => one.id === selected)) selected = list[0]?.id ?? null;
    keyed(
      rows,
      list,
      (one) => one.id,
      (one) => row(one, select),
      (line, one) => updateRow(line, one, selected),
    );
    const one = list.find((other) => other.id === selected);
    if (one) drawDetail(one);
  }
  return {node, draw};
}
