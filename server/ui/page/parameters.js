// Parameters: where their shards stand, how far they are, and whose clock holds the others up.
import {empty, h, state as stateMark, whenChanged} from "/ui/dom.js";
import {card} from "/ui/layout.js";
import {bytes, count} from "/ui/units.js";

const consistency = (staleness) =>
  staleness < 0 ? "asynchronous" : staleness === 0 ? "bulk-synchronous" : `at most ${count(staleness, "clock")} apart`;

// A client's clock is the lowest of all shards': it has done it everywhere.
function clocksOf(shards) {
  const clocks = new Map();
  for (const shard of shards)
    for (const {client, clocks_done: done} of shard.clocks ?? [])
      clocks.set(client, Math.min(clocks.get(client) ?? Infinity, done));
  return [...clocks].map(([client, done]) => ({client, done}));
}

// Bars from just below the slowest client on; the dashed window is what the staleness allows.
function clockBars(clocks, staleness) {
  const slowest = Math.min(...clocks.map((one) => one.done)),
    fastest = Math.max(...clocks.map((one) => one.done));
  const from = Math.max(slowest - 2, 0),
    to = Math.max(fastest, slowest + staleness + 1, from + 4);
  const percent = (clock) => `${((clock - from) / (to - from)) * 100}%`;
  return h(
    "div",
    {class: "clocks"},
    clocks.flatMap(({client, done}) => [
      h("span", {}, client),
      h(
        "span",
        {
          class: done === slowest && slowest < fastest ? "track slowest" : "track",
          "data-tip": `${client} has done ${count(done, "clock")}\n${done - slowest} ahead of the slowest`,
        },
        h("span", {
          class: "window",
          style: {
            left: percent(slowest),
            width: `calc(${percent(Math.min(slowest + staleness + 1, to))} - ${percent(slowest)})`,
          },
        }),
        h("span", {class: "done", style: {width: percent(done)}}),
      ),
      h("span", {}, `clock ${done}${done === slowest && slowest < fastest ? " ◂ slowest" : ""}`),
    ]),
  );
}

function parameter([one, shards]) {
  const owners = one.endpoints.filter((endpoint) => endpoint.role === "owner");
  const backups = one.endpoints.length - owners.length;
  const workers = [...new Set(owners.map((owner) => owner.worker))].join(", ") || "nobody";
  const clocks = clocksOf(shards);
  const versions = shards.map((shard) => shard.version);
  const version = versions.length
    ? Math.min(...versions) === Math.max(...versions)
      ? `version ${versions[0]}`
      : `versions ${Math.min(...versions)} to ${Math.max(...versions)}`
    : "version unknown: no owner answered";
  const incomplete = shards.reduce(
    (sum, shard) => sum + (one.replicas > 1 && shard.backups_complete.length < one.replicas - 1 ? 1 : 0),
    0,
  );
  return h(
    "div",
    {class: "parameter"},
    h("h3", {}, stateMark(one.state), ` ${one.name}`),
    h(
      "p",
      {class: "soft"},
      `${one.dtype} [${one.shape.join(", ")}], ${bytes(one.bytes)} in ${count(owners.length, "shard")}` +
        `${backups ? ` with ${count(backups, "backup")}` : ""} on ${workers} · ${one.optimizer.name}` +
        ` · ${consistency(one.staleness)} · ${version}`,
    ),
    one.why ? h("p", {class: "trouble", "data-level": one.state === "degraded" ? "amber" : "red"}, one.why) : null,
    incomplete > 0
      ? h("p", {class: "trouble", "data-level": "amber"}, `${count(incomplete, "shard")} without a complete backup`)
      : null,
    clocks.length ? clockBars(clocks, one.staleness) : null,
  );
}

export function parametersSection() {
  const {node, meta, body} = card("parameters", "Parameters", "");
  const nothing = empty(
    "No parameters",
    "A parameter is an array that is sharded over a group's workers, changed by pushes and read by pulls.",
    `curl -X PUT ${location.origin}/v1/parameters/w -d '{"group":"train","dtype":"f32","shape":[1000]}'`,
  );
  const list = h("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "Parameters"});
  body.append(nothing, list);
  const draw = whenChanged((items) => list.replaceChildren(...items.map(parameter)));
  return {
    node,
    draw(state) {
      nothing.hidden = state.parameters.length > 0;
      list.hidden = !nothing.hidden;
      meta.textContent = state.parameters.length
        ? `${count(state.parameters.length, "parameter")}, ${bytes(state.parameters.reduce((sum, one) => sum + one.bytes, 0))}`
        : "";
      draw(state.parameters.map((one) => [one, state.shards.get(one.name) ?? []]));
    },
  };
}
