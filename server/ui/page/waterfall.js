// Where each rank's time went: from the trace of a run where workers keep one, otherwise from the record.
import {h, s} from "/ui/dom.js";
import {bytes, seconds} from "/ui/units.js";

const left = 92,
  right = 78,
  rowHeight = 20;

const kinds = {
  wait: "waiting",
  receive: "receiving",
  reduce: "reducing",
  send: "sending",
  work: "moving and reducing",
  failed: "failed",
};

// What an event of a trace (docs/guides/diagnosis.md) is, as one of the kinds above; null for what is drawn otherwise.
function kindOf(event) {
  if (event.cat === "wait") return "wait";
  if (event.cat !== "instruction") return null;
  const word = event.name.split(" ")[0];
  return {recv: "receive", recv_reduce: "reduce", reduce: "reduce", send: "send"}[word] ?? "work";
}

// Rows of threads from 300 on send; what arrives and what is worked on share the upper half of a rank.
const isSending = (event) => event.tid >= 300 && event.tid < 400;

// {rows: [{rank, label, spans: [{kind, lane, begin, end, tip}], total}], end} in seconds from a Chrome trace.
export function rowsOfTrace(trace, ranks) {
  const complete = (trace.traceEvents ?? []).filter((event) => event.ph === "X" && kindOf(event) !== null);
  if (complete.length === 0) return null;
  const begin = Math.min(...complete.map((event) => event.ts));
  const rows = ranks.map((rank) => ({
    rank: rank.rank,
    label: rank.worker,
    state: rank.state,
    spans: [],
    total: rank.report?.seconds ?? 0,
  }));
  const waitsLast = complete.toSorted((a, b) => (a.cat === "wait") - (b.cat === "wait"));
  for (const event of waitsLast) {
    const row = rows.find((one) => one.rank === event.pid);
    if (!row) continue;
    const span = {
      kind: kindOf(event),
      lane: isSending(event) ? "lower" : "upper",
      begin: (event.ts - begin) / 1e6,
      end: (event.ts + event.dur - begin) / 1e6,
    };
    const about = event.args
      ? `\n${["round", "chunk", "bytes"]
          .filter((name) => name in event.args)
          .map((name) => `${name} ${event.args[name]}`)
          .join(", ")}`
      : "";
    row.spans.push({
      ...span,
      tip: `${event.name}: ${seconds(span.end - span.begin)}\nfrom ${seconds(span.begin)} on${about}`,
    });
  }
  return {rows, end: Math.max(...rows.flatMap((row) => row.spans.map((span) => span.end)), 1e-9)};
}

export function rowsOfRecord(collective) {
  const rows = collective.ranks.map((rank) => {
    const report = rank.report;
    const row = {rank: rank.rank, label: rank.worker, state: rank.state, spans: [], total: report?.seconds ?? 0};
    if (!report) return row;
    const wait = Math.min(report.wait_seconds, report.seconds);
    if (wait > 0)
      row.spans.push({kind: "wait", begin: 0, end: wait, tip: `waited ${seconds(wait)} for peers, all in all`});
    row.spans.push({
      kind: report.state === "failed" ? "failed" : "work",
      begin: wait,
      end: report.seconds,
      tip: [
        `${seconds(report.seconds - wait)} moving and reducing`,
        `${bytes(report.bytes_sent)} sent, ${bytes(report.bytes_received)} received`,
        `${report.steps} instructions`,
      ].join("\n"),
    });
    return row;
  });
  return {rows, end: Math.max(...rows.map((row) => row.total), 1e-9)};
}

function swatch(kind) {
  return s(
    "svg",
    {class: "waterfall", viewBox: "0 0 14 10", "aria-hidden": "true"},
    s("rect", {class: kind, width: 14, height: 10, rx: 2}),
  );
}

// "1, 2 or 5 times a power of ten" below the end, so that four or so lines fit.
function tickOf(end, ticksMax) {
  const power = 10 ** Math.floor(Math.log10(end / 3));
  return [1, 2, 5, 10].map((factor) => factor * power).find((tick) => end / tick <= ticksMax) ?? end;
}

export function waterfall({rows, end}) {
  const width = innerWidth < 640 ? 360 : 620; // in its own units: fewer make everything larger
  const x = (at) => left + (at / end) * (width - left - right);
  const height = 20 + rows.length * rowHeight;
  const tick = tickOf(end, width > 500 ? 5 : 2);
  const ticks = Array.from({length: Math.floor(end / tick) + 1}, (_, i) => i * tick);
  const hatch = s(
    "defs",
    {},
    s(
      "pattern",
      {id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)"},
      s("rect", {class: "hatch-ground", width: 6, height: 6}),
      s("line", {class: "hatch", x1: 0, y1: 0, x2: 0, y2: 6}),
    ),
  );
  const longest = Math.max(...rows.map((row) => row.total));
  const drawn = rows.map((row, i) => {
    const y = 20 + i * rowHeight;
    const label = `${row.rank}  ${row.label.length > 11 ? `${row.label.slice(0, 10)}…` : row.label}`;
    const full = rowHeight - 7;
    const spans = row.spans.map((span) =>
      s("rect", {
        class: `span ${span.kind}`,
        x: x(span.begin),
        y: y + 3 + (span.lane === "lower" ? full / 2 + 0.5 : 0),
        width: Math.max(x(span.end) - x(span.begin), 1),
        height: span.lane ? full / 2 - 0.5 : full,
        rx: 1.5,
        "data-tip": span.tip,
      }),
    );
    const note =
      row.state === "failed"
        ? "✕ failed"
        : row.spans.length === 0
          ? row.state
          : `${seconds(row.total)}${rows.length > 1 && row.total === longest ? " ◂" : ""}`;
    return s(
      "g",
      {},
      s("text", {x: left - 8, y: y + 14, "text-anchor": "end"}, label),
      s("rect", {class: "row-ground", x: left, y: y + 3, width: width - left - right, height: rowHeight - 7, rx: 2}),
      ...spans,
      s("text", {class: row.state === "failed" ? "" : "soft", x: width - right + 8, y: y + 14}, note),
    );
  });
  const present = Object.keys(kinds).filter((kind) => rows.some((row) => row.spans.some((span) => span.kind === kind)));
  const figure = s(
    "svg",
    {
      class: "waterfall",
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": `Time of ${rows.length} ranks; the slowest took ${seconds(longest)}`,
    },
    hatch,
    ...ticks.flatMap((at) => [
      s("line", {class: "grid", x1: x(at), x2: x(at), y1: 16, y2: height}),
      s("text", {class: "soft", x: x(at), y: 11, "text-anchor": "middle"}, seconds(at)),
    ]),
    ...drawn,
  );
  return h(
    "div",
    {},
    h(
      "p",
      {class: "key"},
      present.map((kind) => h("span", {}, swatch(kind), kinds[kind])),
      h("span", {}, "◂ slowest"),
    ),
    figure,
  );
}
