// Who sends how much to whom, and which link is slow: a matrix whose rows send and whose columns receive.
import {empty, h, s, setText, whenChanged} from "/ui/dom.js";
import {card} from "/ui/layout.js";
import {selectedGroup, state, trafficOf, trafficRate} from "/ui/store.js";
import {sharedLevel} from "/ui/topology.js";
import {bytes, count, rate, seconds} from "/ui/units.js";

const slowBelow = 0.4; // of the median of the links of the same level
const comparableLinks = 3; // fewer say nothing about a median
const enoughBytes = 1 << 20; // below, latency is all that a speed shows

// Bytes per second while something was queued: how fast the link really is. Null where too little was sent.
function speed(link) {
  return link && link.sent_bytes >= enoughBytes && link.send_busy_seconds > 0
    ? link.sent_bytes / link.send_busy_seconds
    : null;
}

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

function localityOf(id) {
  const worker = state.workers.find((one) => one.id === id);
  return worker ? {locality: worker.locality} : null;
}

function levelOf(from, to) {
  const a = localityOf(from),
    b = localityOf(to);
  return a && b ? sharedLevel(a, b) : "world";
}

let medians = new Map(); // by level, of the answer below
let mediansOf = null;

function compare() {
  if (mediansOf === state.traffic) return;
  mediansOf = state.traffic;
  const speeds = new Map();
  for (const link of state.traffic?.items ?? []) {
    const level = levelOf(link.from, link.to),
      value = speed(link);
    if (value !== null) speeds.set(level, [...(speeds.get(level) ?? []), value]);
  }
  medians = new Map(
    [...speeds]
      .filter(([, values]) => values.length >= comparableLinks)
      .map(([level, values]) => [level, median(values)]),
  );
}

// {rate: bytes/s now or 0, slow, text} of a link that has been used; null of one that has not.
export function speedOfLink(from, to) {
  const link = trafficOf(from, to);
  if (!link) return null;
  compare();
  const own = speed(link),
    level = levelOf(from, to),
    usual = medians.get(level);
  const slow = own !== null && usual !== undefined && own < slowBelow * usual;
  const against = usual ? `, ${(own / usual).toFixed(2)} of the median between neighbours of one ${level}` : "";
  const text = `${link.link}, ${own === null ? `${bytes(link.sent_bytes)} so far` : `${rate(own)} while busy${against}`}`;
  return {rate: trafficRate(from, to) ?? 0, slow, text, own, link};
}

const modes = {
  speed: {
    title: "Speed",
    what: "bytes per second while the link was busy",
    value: (link) => link?.own ?? null,
    show: rate,
  },
  now: {
    title: "Now",
    what: "bytes per second in the last two seconds",
    value: (link) => link?.rate || null,
    show: rate,
  },
  sent: {
    title: "Sent",
    what: "bytes since the workers began",
    value: (link) => link?.link.sent_bytes || null,
    show: bytes,
  },
};

export function linksSection() {
  const {node, meta, body} = card("links", "Links", "");
  let chosen = null,
    at = null,
    ids = [],
    cells = [];
  const buttons = Object.entries(modes).map(([name, one]) =>
    h(
      "button",
      {
        type: "button",
        "data-tip": one.what,
        onclick: () => {
          chosen = name;
          draw(state);
        },
      },
      one.title,
    ),
  );
  node
    .querySelector("header")
    .append(h("div", {class: "segments", role: "group", "aria-label": "What the cells show"}, buttons));
  const matrix = s("svg", {
    class: "matrix",
    tabindex: "0",
    role: "application",
    "aria-label": "Link matrix; arrow keys move",
    "aria-describedby": "matrix-read",
  });
  const read = h("p", {class: "matrix-read", id: "matrix-read", "aria-live": "polite"});
  const nothing = empty(
    "Nothing has been sent yet",
    "As soon as members talk to each other, every pair shows here how fast it really is.",
  );
  const measured = h("div");
  body.append(nothing, matrix, read, measured);

  function describe(row, column) {
    const from = ids[row],
      to = ids[column];
    if (from === undefined || to === undefined) return "";
    if (row === column) return `${from}: itself`;
    const link = speedOfLink(from, to);
    if (!link) return `${from} → ${to} (${levelOf(from, to)}): not used`;
    const {sent_bytes: sent, connections, why_not_shm: whyNot} = link.link;
    return [
      `${from} → ${to} (${levelOf(from, to)}): ${link.text}`,
      `${sent.toLocaleString("en")} bytes on ${count(connections, "connection")}, ${rate(link.rate)} now`,
      link.slow && "SLOW",
      whyNot && `no shared memory: ${whyNot}`,
    ]
      .filter(Boolean)
      .join("; ");
  }

  matrix.addEventListener("keydown", (event) => {
    const turn = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
    if (!turn || ids.length === 0) return;
    event.preventDefault();
    const limit = (value) => Math.min(Math.max(value, 0), ids.length - 1);
    at = at ? [limit(at[0] + turn[0]), limit(at[1] + turn[1])] : [0, Math.min(1, ids.length - 1)];
    mark();
  });
  matrix.addEventListener("pointerover", (event) => {
    const cell = event.target.closest("[data-at]");
    if (cell) setText(read, describe(...cell.dataset.at.split(",").map(Number)));
  });

  function mark() {
    for (const cell of cells)
      cell.rect.classList.toggle("current", at !== null && cell.row === at[0] && cell.column === at[1]);
    setText(read, at ? describe(...at) : "");
  }

  const lay = whenChanged((names) => {
    ids = names;
    at = null;
    const size = names.length,
      short = (id, i) => `${i}  ${id.length > 10 ? `${id.slice(0, 9)}…` : id}`;
    const left = Math.max(...names.map((id, i) => short(id, i).length)) * 6 + 12,
      top = 20;
    const width = Math.max(innerWidth < 640 ? 340 : 460, left + size * 9),
      cell = Math.min((width - left) / size, 84),
      height = Math.min(cell, 32);
    matrix.setAttribute("viewBox", `0 0 ${width} ${top + size * height + 2}`);
    const every = Math.ceil(size / 32);
    const labels = names.flatMap((id, i) =>
      i % every
        ? []
        : [
            s(
              "text",
              {class: "axis", x: left - 6, y: top + i * height + height / 2 + 4, "text-anchor": "end"},
              short(id, i),
            ),
            s("text", {class: "axis", x: left + i * cell + cell / 2, y: top - 6, "text-anchor": "middle"}, String(i)),
          ],
    );
    cells = names.flatMap((_, row) =>
      names.map((_, column) => {
        const x = left + column * cell,
          y = top + row * height;
        const rect = s("rect", {
          class: row === column ? "cell self" : "cell",
          x: x + 1,
          y: y + 1,
          width: cell - 2,
          height: height - 2,
          rx: 2,
        });
        const value = size <= 10 ? s("text", {class: "value", x: x + cell / 2, y: y + height / 2}) : null;
        return {row, column, rect, value, node: s("g", {"data-at": `${row},${column}`}, rect, value)};
      }),
    );
    matrix.replaceChildren(...labels, ...cells.map((one) => one.node));
  });

  function draw(now) {
    const group = selectedGroup();
    const used = (now.traffic?.items ?? []).filter((link) => link.sent_bytes > 0);
    nothing.hidden = used.length > 0;
    matrix.style.display = nothing.hidden ? "" : "none";
    if (used.length && group) {
      lay(group.members.map((member) => member.worker));
      // Speeds say most, but only where enough has been sent for one.
      const mode = chosen ?? (used.some((link) => speed(link) !== null) ? "speed" : "sent");
      for (const [i, name] of Object.keys(modes).entries())
        buttons[i].setAttribute("aria-pressed", String(name === mode));
      const kind = modes[mode];
      const links = cells.map((cell) =>
        cell.row === cell.column ? null : speedOfLink(ids[cell.row], ids[cell.column]),
      );
      const most = Math.max(...links.map((link) => kind.value(link) ?? 0), 0);
      cells.forEach((cell, i) => {
        const value = kind.value(links[i]);
        const strength = value === null || most === 0 ? 0 : 0.12 + (0.88 * value) / most;
        const slow = links[i]?.slow === true;
        cell.rect.classList.toggle("some", value !== null && !slow);
        cell.rect.classList.toggle("slow", slow);
        cell.rect.style.fillOpacity = slow || value === null ? "1" : String(strength);
        if (!cell.value) return;
        setText(
          cell.value,
          value === null
            ? ""
            : `${slow ? "! " : ""}${kind
                .show(value)
                .replace(/ (.?)i?B(\/s)?$/, " $1")
                .trim()}`,
        );
        cell.value.classList.toggle("on-strong", !slow && strength > 0.62);
      });
      if (at) setText(read, describe(...at));
      else if (!read.textContent)
        setText(
          read,
          "Rows send, columns receive. Point at a cell, or use the arrow keys, for exact values; " +
            "! marks a link at less than 0.4 of the speed of its like.",
        );
    }
    meta.textContent = !group
      ? ""
      : group.members.length > 64
        ? "not asked for above 64 ranks"
        : `${kindOf(used)}${now.traffic?.silent.length ? ` · silent: ${now.traffic.silent.join(", ")}` : ""}`;
    drawMeasured(now.measured);
  }

  function kindOf(used) {
    const kinds = new Map();
    for (const link of used) if (link.connections > 0) kinds.set(link.link, (kinds.get(link.link) ?? 0) + 1);
    return [...kinds].map(([kind, n]) => `${n} ${kind}`).join(", ");
  }

  const drawMeasured = whenChanged((list) => {
    if (list.length === 0) return measured.replaceChildren();
    const byLevel = Object.groupBy(list, (link) => link.level);
    const rows = Object.entries(byLevel).map(([level, links]) =>
      h(
        "tr",
        {},
        h("td", {}, level),
        h("td", {class: "n"}, String(links.length)),
        h("td", {class: "n"}, seconds(median(links.map((link) => link.latency_s)))),
        h("td", {class: "n"}, rate(median(links.map((link) => link.bytes_per_s)))),
      ),
    );
    measured.replaceChildren(
      h("h3", {}, "Measured over HTTP when workers joined, medians"),
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ["Between places of one", "Links", "Latency", "Bandwidth"].map((title, i) =>
              h("th", {class: i ? "n" : "", scope: "col"}, title),
            ),
          ),
        ),
        h("tbody", {}, rows),
      ),
    );
  });
  return {node, draw};
}
