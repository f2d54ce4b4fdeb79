// A group as a ring of ranks: places around it (host, rack, zone), the edges of a plan inside.
import {h, s} from "/ui/dom.js";
import {workerOf, workerState} from "/ui/store.js";
import {ago, bytes, place, rate} from "/ui/units.js";

const levels = ["host", "rack", "zone", "region"]; // from the inside
const gapAt = {host: 0.22, rack: 0.22, zone: 0.4, region: 0.5};
const bandWidth = 16;
const arrowsUpTo = 700; // edges
const wide = 340,
  narrow = 235; // half the figure's width in its own units: fewer make everything larger
const flatNamesUpTo = 16; // above, names stand along the radius

const key = (member, level) =>
  levels
    .slice(levels.indexOf(level))
    .map((one) => member.locality?.[one] ?? "")
    .join("\n");

// What two members share: "host" ... "region", or "world".
export function sharedLevel(a, b) {
  return levels.find((level) => key(a, level) === key(b, level)) ?? "world";
}

// The angle of each member, with gaps where a place ends.
function anglesOf(members) {
  const gaps = members.map((member, i) => {
    const next = members[(i + 1) % members.length];
    return levels.reduce((sum, level) => sum + (key(member, level) === key(next, level) ? 0 : gapAt[level]), 0);
  });
  const slot = (2 * Math.PI) / (members.length + gaps.reduce((sum, gap) => sum + gap, 0));
  let at = -Math.PI / 2 + (slot * gaps.at(-1)) / 2;
  return {
    slot,
    angles: members.map((_, i) => {
      const here = at;
      at += slot * (1 + gaps[i]);
      return here;
    }),
  };
}

const point = (angle, radius) => [Math.cos(angle) * radius, Math.sin(angle) * radius];
const xy = ([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`;

// The levels that tell members apart, or that they name at all where there is only one place.
function shownLevels(members) {
  const named = levels.filter((level) => members.some((member) => member.locality?.[level]));
  return named.filter(
    (level) => level !== "region" || new Set(members.map((member) => member.locality?.region)).size > 1,
  );
}

function geometryOf(members, half) {
  const bands = shownLevels(members);
  const longest = Math.max(...members.map((member) => Math.min(member.worker.length, 14)), 2);
  const outer = half - 14 - longest * 6.2;
  const nodesAt = outer - bands.length * (bandWidth + 1) - 14;
  const {slot, angles} = anglesOf(members);
  const roomy = members.length === 1 ? 20 : Math.sin(Math.min(slot, Math.PI) / 2) * nodesAt * 0.82;
  const radius = Math.max(Math.min(roomy, 19), 4.5);
  return {bands, slot, angles, nodesAt: nodesAt - radius, radius, bandsAt: nodesAt + 6, outer};
}

// Runs of neighbours in one place, as an arc each.
function placesOf(members, level, geometry, depth) {
  const arcs = [];
  members.forEach((member, i) => {
    const last = arcs.at(-1);
    if (last && key(member, level) === last.key) last.end = i;
    else arcs.push({key: key(member, level), begin: i, end: i, name: member.locality?.[level] ?? ""});
  });
  const inner = geometry.bandsAt + depth * (bandWidth + 1),
    outer = inner + bandWidth;
  const margin = Math.min(geometry.slot * 0.5, Math.PI * 0.92);
  return arcs
    .filter((arc) => arc.name)
    .map((arc, n) => {
      const from = geometry.angles[arc.begin] - margin,
        to = geometry.angles[arc.end] + margin;
      const large = to - from > Math.PI ? 1 : 0;
      const ring = `M ${xy(point(from, inner))} A ${inner} ${inner} 0 ${large} 1 ${xy(point(to, inner))}
      L ${xy(point(to, outer))} A ${outer} ${outer} 0 ${large} 0 ${xy(point(from, outer))} Z`;
      const middle = (from + to) / 2,
        flipped = Math.sin(middle) > 0.2;
      const line = flipped ? inner + 11.5 : inner + 4.5;
      const path = flipped
        ? `M ${xy(point(to, line))} A ${line} ${line} 0 ${large} 0 ${xy(point(from, line))}`
        : `M ${xy(point(from, line))} A ${line} ${line} 0 ${large} 1 ${xy(point(to, line))}`;
      const id = `place-${level}-${n}`;
      const fits = (to - from) * line > arc.name.length * 6 + 8;
      return s(
        "g",
        {"data-tip": `${level} ${arc.name}\n${arc.end - arc.begin + 1} of ${members.length} ranks`},
        s("path", {d: ring, class: `place level-${depth}`}),
        fits && s("path", {d: path, id, fill: "none"}),
        fits &&
          s(
            "text",
            {class: "place-name"},
            s("textPath", {href: `#${id}`, startOffset: "50%", "text-anchor": "middle"}, arc.name),
          ),
      );
    });
}

function curve(geometry, from, to) {
  const a = point(geometry.angles[from], geometry.nodesAt),
    b = point(geometry.angles[to], geometry.nodesAt);
  const length = Math.hypot(b[0] - a[0], b[1] - a[1]) || 1;
  const side = [-(b[1] - a[1]) / length, (b[0] - a[0]) / length];
  const bend = Math.min(length * 0.09, 26);
  const control = [0, 1].map((i) => ((a[i] + b[i]) / 2) * 0.66 + side[i] * bend);
  const trim = (end, room) => {
    const away = Math.hypot(control[0] - end[0], control[1] - end[1]) || 1;
    return [0, 1].map((i) => end[i] + ((control[i] - end[i]) / away) * room);
  };
  const start = trim(a, geometry.radius + 1),
    tip = trim(b, geometry.radius + 2);
  return {
    d: `M ${xy(start)} Q ${xy(control)} ${xy(tip)}`,
    tip,
    angle: Math.atan2(tip[1] - control[1], tip[0] - control[0]),
  };
}

function arrowHead({tip, angle}, size) {
  const corner = (turn) => [tip[0] - Math.cos(angle + turn) * size, tip[1] - Math.sin(angle + turn) * size];
  return `M ${xy(tip)} L ${xy(corner(0.42))} L ${xy(corner(-0.42))} Z`;
}

function nodeOf(member, i, geometry, root) {
  const [x, y] = point(geometry.angles[i], geometry.nodesAt);
  const node = s(
    "g",
    {class: "node", tabindex: "0", role: "img", transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`},
    s("circle", {r: geometry.radius}),
  );
  if (geometry.radius >= 7)
    node.append(
      s(
        "text",
        {"font-size": Math.min(geometry.radius * 0.95, 13.5)},
        member.rank === null ? "–" : String(member.rank),
      ),
    );
  if (member.rank !== null && member.rank === root) node.classList.add("root");
  return node;
}

function nameOf(member, i, geometry) {
  const angle = geometry.angles[i],
    left = Math.cos(angle) < -1e-9;
  const [x, y] = point(angle, geometry.outer);
  const turn = (angle * 180) / Math.PI + (left ? 180 : 0);
  const flat = geometry.angles.length <= flatNamesUpTo;
  const name = member.worker.length > 14 ? `${member.worker.slice(0, 13)}…` : member.worker;
  return s(
    "text",
    {
      class: "worker-name",
      "dominant-baseline": "central",
      "text-anchor": flat && Math.abs(Math.cos(angle)) < 0.25 ? "middle" : left ? "end" : "start",
      transform: `translate(${x.toFixed(1)} ${y.toFixed(1)}) rotate(${flat ? 0 : turn.toFixed(1)})`,
    },
    name,
  );
}

// The edges of one plan. `edges`: [{from, to, bytes, rounds}] by rank.
function drawEdges(edges, geometry) {
  const most = Math.max(...edges.map((edge) => edge.bytes), 1);
  const many = edges.length > 120;
  const base = edges.length > 400 ? 0.5 : many ? 0.7 : 1.5;
  return edges.map((edge) => {
    const line = curve(geometry, edge.from, edge.to);
    const path = s("path", {class: "edge", d: line.d});
    path.style.strokeWidth = String(base + ((many ? 0.9 : 2.6) * edge.bytes) / most);
    const head =
      edges.length <= arrowsUpTo
        ? s("path", {class: "arrow", d: arrowHead(line, geometry.radius > 9 ? 9 : 5.5)})
        : null;
    return {...edge, path, head, base, more: many ? 1.6 : 3.4};
  });
}

// {node, show(members, edges, root), mark(round), refresh(rates)}
export function topologyFigure() {
  const node = s("svg", {class: "topology", role: "group", "aria-label": "The group's ranks and the plan's edges"});
  let members = [],
    nodes = [],
    names = [],
    edges = [],
    geometry = null;

  function show(nextMembers, nextEdges, root, caption) {
    members = nextMembers;
    if (members.length === 0) {
      nodes = names = edges = [];
      return node.replaceChildren();
    }
    const half = innerWidth < 640 ? narrow : wide;
    node.setAttribute("viewBox", `${-half} ${-half} ${2 * half} ${2 * half}`);
    geometry = geometryOf(members, half);
    edges = drawEdges(nextEdges, geometry);
    nodes = members.map((member, i) => nodeOf(member, i, geometry, root));
    names = members.map((member, i) => nameOf(member, i, geometry));
    node.replaceChildren(
      ...geometry.bands.flatMap((level, depth) => placesOf(members, level, geometry, depth)),
      ...edges.map((edge) => edge.path),
      ...edges.map((edge) => edge.head).filter(Boolean),
      ...nodes,
      ...names,
      ...(caption ? [s("text", {class: "center"}, caption)] : []),
    );
    node.setAttribute("aria-label", `${members.length} ranks, ${edges.length} edges`);
  }

  // What every second changes: who is there, how fast the edges are. `speeds`: by edge, {rate, slow} or null.
  function refresh(speedOf) {
    members.forEach((member, i) => {
      const worker = workerOf(member.worker);
      const word =
        worker && member.incarnation && worker.incarnation !== member.incarnation ? "lost" : workerState(worker);
      for (const mark of ["lost", "late"]) {
        nodes[i].classList.toggle(mark, word === mark);
        names[i].classList.toggle(mark, word === mark);
      }
      const circle = nodes[i].querySelector("text");
      if (circle)
        circle.textContent =
          word === "lost" ? "✕" : word === "late" ? "!" : member.rank === null ? "–" : String(member.rank);
      const rank = member.rank === null ? "in no group" : `rank ${member.rank}`;
      const heard = worker ? `\nlast heard ${ago(worker.heard_ms_ago)}` : "";
      const text = `${member.worker}, ${rank}: ${word}\n${place(member.locality)}${heard}`;
      nodes[i].dataset.tip = text;
      nodes[i].setAttribute("aria-label", text);
    });
    const speeds = edges.map((edge) => speedOf(members[edge.from], members[edge.to]));
    const fastest = Math.max(...speeds.map((speed) => speed?.rate ?? 0), 0);
    edges.forEach((edge, i) => {
      const speed = speeds[i];
      if (fastest > 0) edge.path.style.strokeWidth = String(edge.base + (edge.more * (speed?.rate ?? 0)) / fastest);
      edge.path.classList.toggle("quick", (speed?.rate ?? 0) > 0);
      for (const part of [edge.path, edge.head]) part?.classList.toggle("slow", speed?.slow === true);
      edge.path.dataset.tip =
        `${members[edge.from].worker} → ${members[edge.to].worker}\n${bytes(edge.bytes)} per run` +
        (speed?.rate ? `\n${rate(speed.rate)} now` : "") +
        (speed?.text ? `\n${speed.text}` : "");
    });
    return fastest;
  }

  // Brings out what moves in a round: a map from "from,to" to whether it is reduced on arrival; null for all edges.
  function mark(moving) {
    node.classList.toggle("playing", moving !== null);
    const busy = new Set();
    for (const edge of edges) {
      const reducing = moving?.get(`${edge.from},${edge.to}`);
      for (const part of [edge.path, edge.head]) {
        part?.classList.toggle("moving", reducing !== undefined);
        part?.classList.toggle("reducing", reducing === true);
      }
      if (reducing !== undefined) busy.add(edge.from).add(edge.to);
    }
    nodes.forEach((one, i) => one.classList.toggle("busy", busy.has(i)));
    travel(moving);
  }

  // A dot on each moving edge, for those who like motion.
  function travel(moving) {
    for (const old of node.querySelectorAll(".traveller")) old.remove();
    if (moving === null || moving.size > 64 || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    for (const edge of edges) {
      const reducing = moving.get(`${edge.from},${edge.to}`);
      if (reducing === undefined) continue;
      const dot = s("circle", {
        class: `traveller${reducing ? " reducing" : ""}`,
        r: Math.max(geometry.radius * 0.28, 3),
      });
      node.append(dot);
      const length = edge.path.getTotalLength();
      const frames = [0, 0.25, 0.5, 0.75, 1].map((part) => {
        const at = edge.path.getPointAtLength(length * part);
        return {transform: `translate(${at.x}px, ${at.y}px)`};
      });
      dot.animate(frames, {duration: 700, easing: "ease-in-out", fill: "both"}).onfinish = () => dot.remove();
    }
  }

  return {node: h("div", {}, node), show, refresh, mark};
}
