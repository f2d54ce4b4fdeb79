// What the page knows, and when it asks again. Sections subscribe and draw; only this file decides what is fetched.
import {Problem, get, list} from "/ui/api.js";

const limits = {workers: 1000, groups: 500, collectives: 60, parameters: 200, events: 400};
const ranksWithTraffic = 64;

export const state = {
  status: null,
  workers: [],
  groups: [],
  collectives: [],
  measured: [],
  parameters: [],
  shards: new Map(),
  events: [],
  traffic: null,
  before: null, // two answers of /v1/links/traffic: their difference is the rate
  group: null, // the name of the group that is looked at
  unreachableSince: null,
  refused: null,
};

const listeners = new Set();
let announced = false;

export function subscribe(draw) {
  listeners.add(draw);
}

// Draws once per frame, however much has changed.
export function changed() {
  if (announced) return;
  announced = true;
  setTimeout(() => {
    announced = false;
    for (const draw of listeners) draw(state);
  }, 30);
}

export function selectedGroup() {
  return state.groups.find((group) => group.name === state.group) ?? null;
}

export function workerOf(id) {
  return state.workers.find((worker) => worker.id === id) ?? null;
}

// "ready", "late" (silent for half its lease), "lost".
export function workerState(worker) {
  if (!worker || worker.state !== "ready") return "lost";
  return worker.heard_ms_ago * 2 > worker.lease_ms ? "late" : "ready";
}

export function hasEnded(collective) {
  return ["succeeded", "failed", "cancelled"].includes(collective.state);
}

export function selectGroup(name) {
  if (state.group === name) return;
  state.group = name;
  state.traffic = state.before = null;
  refresh(["traffic"]);
  changed();
}

function chooseGroup() {
  if (selectedGroup()) return;
  const best = [...state.groups].sort((a, b) => b.members.length - a.members.length)[0];
  selectGroup(best?.name ?? null);
}

const readers = {
  async status() {
    state.status = await get("/v1/status");
  },
  async workers() {
    state.workers = await list("/v1/workers", limits.workers);
  },
  async groups() {
    state.groups = await list("/v1/groups", limits.groups);
    chooseGroup();
  },
  async collectives() {
    state.collectives = await list(`/v1/collectives`, limits.collectives);
  },
  async measured() {
    state.measured = (await get("/v1/links")).items;
  },
  async parameters() {
    state.parameters = await list("/v1/parameters", limits.parameters);
    for (const {name} of state.parameters.slice(0, 20))
      state.shards.set(name, (await get(`/v1/parameters/${encodeURIComponent(name)}/shards`)).items);
  },
  async traffic() {
    const group = selectedGroup();
    if (!group || group.members.length > ranksWithTraffic) return;
    const traffic = await get(`/v1/links/traffic?group=${encodeURIComponent(group.name)}`);
    if (group.name !== state.group || traffic.at_s === state.traffic?.at_s) return;
    state.before = state.traffic;
    state.traffic = traffic;
  },
};

const wanted = new Set();
const running = new Set();

// Reads these again: at once, or when the reading that is under way has ended.
export function refresh(kinds) {
  for (const kind of kinds) wanted.add(kind);
  for (const kind of [...wanted]) {
    if (running.has(kind)) continue;
    wanted.delete(kind);
    running.add(kind);
    read(kind).finally(() => {
      running.delete(kind);
      if (wanted.has(kind)) setTimeout(() => refresh([kind]), 100);
    });
  }
}

async function read(kind) {
  try {
    await readers[kind]();
    state.unreachableSince = null;
    state.refused = null;
  } catch (failure) {
    if (!(failure instanceof Problem)) throw failure;
    if (failure.status === 0) state.unreachableSince ??= Date.now();
    if (failure.status === 401 || failure.status === 403) state.refused = failure;
  }
  changed();
}

export function heard(event) {
  state.events.unshift(event);
  state.events.length = Math.min(state.events.length, limits.events);
  const worker = event.type === "worker.lost" ? workerOf(event.worker) : null;
  if (worker && worker.incarnation === event.incarnation) worker.state = "lost"; // known now; the rest when it is read again
  const kinds = {
    worker: ["workers", "groups", "status"],
    group: ["groups", "workers", "status"],
    collective: ["collectives", "status"],
  };
  refresh(kinds[event.type.split(".")[0]] ?? ["status"]);
  changed();
}

export const everything = Object.keys(readers);

// What no event tells: signs of life, bytes, clocks. Not while nobody looks.
export function keepCurrent() {
  const every = (milliseconds, kinds) =>
    setInterval(() => {
      if (!document.hidden) refresh(kinds());
    }, milliseconds);
  every(1000, () => ["status", "workers", ...(state.collectives.some((one) => !hasEnded(one)) ? ["collectives"] : [])]);
  every(2000, () => ["traffic"]);
  every(3000, () => ["parameters"]);
  every(10000, () => everything);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) refresh(everything);
  });
}

// Bytes per second from one worker to another between the last two answers; null where that is not known.
export function trafficRate(from, to) {
  const link = (traffic) => traffic?.items.find((item) => item.from === from && item.to === to);
  const now = link(state.traffic),
    before = link(state.before);
  if (!now || !state.before) return null;
  const bytes = now.sent_bytes - (before?.sent_bytes ?? 0);
  return bytes < 0 ? null : bytes / (state.traffic.at_s - state.before.at_s);
}

export function trafficOf(from, to) {
  return state.traffic?.items.find((item) => item.from === from && item.to === to) ?? null;
}
