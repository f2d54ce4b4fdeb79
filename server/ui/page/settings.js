// Who is here, and how the coordinator was started.
import {empty, h, keyed, setText, state as stateMark, whenChanged} from "/ui/dom.js";
import {card} from "/ui/layout.js";
import {workerState} from "/ui/store.js";
import {ago, count, place, seconds} from "/ui/units.js";

function workerRow(worker) {
  return h("tr", {}, h("td", {class: "name"}, worker.id), h("td"), h("td", {class: "n"}), h("td"), h("td"), h("td"));
}

// Of releases that do not tell there are none.
const gpusOf = (worker) => worker.gpus ?? [];

// "2 × NVIDIA H100 80GB HBM3", or one such for each kind.
function gpuKinds(worker) {
  const kinds = new Map();
  for (const {name} of gpusOf(worker)) kinds.set(name || "GPU", (kinds.get(name || "GPU") ?? 0) + 1);
  return [...kinds].map(([name, number]) => (number > 1 ? `${number} × ${name}` : name)).join(", ");
}

// One line of each, in the worker's order.
function gpuLines(worker) {
  return gpusOf(worker).map((gpu) =>
    [
      `GPU ${gpu.pci_address}`,
      gpu.name,
      gpu.memory_gbyte_per_s > 0 ? `${Math.round(gpu.memory_gbyte_per_s)} GB/s` : "",
      gpu.nvlinks.length > 0 ? count(gpu.nvlinks.reduce((sum, to) => sum + to.links, 0), "NVLink") : "",
    ]
      .filter(Boolean)
      .join(", "),
  );
}

function updateRow(row, worker) {
  const [, state, heard, where, gpus, groups] = row.children;
  const word = workerState(worker);
  if (state.textContent !== word) state.replaceChildren(stateMark(word));
  setText(heard, ago(worker.heard_ms_ago));
  setText(where, place(worker.locality));
  setText(gpus, gpuKinds(worker) || "–");
  setText(groups, worker.groups.join(", ") || "–");
  row.dataset.tip = [
    worker.id,
    worker.url,
    `incarnation ${worker.incarnation}`,
    `version ${worker.version}`,
    `last heard ${worker.heard_ms_ago} ms ago, lease ${worker.lease_ms} ms`,
    ...gpuLines(worker),
  ].join("\n");
}

const order = {lost: 0, late: 1, ready: 2};

export function workersSection() {
  const {node, meta, body} = card("workers", "Workers", "");
  const rows = h("tbody");
  const head = ["Worker", "State", "Heard", "Where", "GPUs", "Groups"].map((title, i) =>
    h("th", {class: i === 2 ? "n" : null, scope: "col"}, title),
  );
  const table = h(
    "div",
    {class: "scroll of-workers without-gpus", tabindex: "0", role: "region", "aria-label": "Workers"},
    h("table", {}, h("thead", {}, h("tr", {}, head)), rows),
  );
  const nothing = empty(
    "No worker has joined yet",
    "Start one beside this coordinator; it appears here at once.",
    `chorus-worker --coordinator ${location.origin}`,
  );
  body.append(nothing, table);
  return {
    node,
    draw(state) {
      nothing.hidden = state.workers.length > 0;
      table.hidden = !nothing.hidden;
      table.classList.toggle("without-gpus", !state.workers.some((worker) => gpusOf(worker).length > 0));
      const sorted = [...state.workers].sort(
        (a, b) => order[workerState(a)] - order[workerState(b)] || a.id.localeCompare(b.id, [], {numeric: true}),
      );
      keyed(rows, sorted, (worker) => worker.id, workerRow, updateRow);
      meta.textContent = state.status ? `${state.status.ready} of ${count(state.workers.length, "worker")} ready` : "";
    },
  };
}

function setting(one) {
  return h(
    "div",
    {class: one.is_default ? "" : "changed"},
    h("dt", {}, `--${one.name}`),
    h("dd", {}, one.value || "–"),
    h("dd", {class: "help"}, one.is_default ? one.help : `${one.help}; default ${one.default_value || "none"}`),
  );
}

export function settingsSection() {
  const {node, meta, body} = card("settings", "Settings", "wide");
  let all = false;
  const list = h("dl", {class: "settings-list"});
  const note = h("p", {class: "soft sentence"});
  const more = h(
    "button",
    {
      type: "button",
      "aria-pressed": "false",
      onclick: () => {
        all = !all;
        more.setAttribute("aria-pressed", String(all));
        show();
      },
    },
    "Show all",
  );
  node.querySelector("header").append(more);
  body.append(note, list);
  let settings = [];
  const show = () => {
    const shown = settings.filter((one) => all || !one.is_default);
    list.replaceChildren(...shown.map(setting));
    note.textContent = shown.length ? "" : "Every flag has its default.";
  };
  const draw = whenChanged((now) => {
    settings = now;
    show();
  });
  return {
    node,
    draw(state) {
      if (!state.status) return;
      draw(state.status.settings);
      const changed = state.status.settings.filter((one) => !one.is_default).length;
      meta.textContent = [
        changed ? `${changed} not at the default` : "all at their defaults",
        `up for ${seconds(Math.floor(state.status.uptime_s))}`,
        state.status.journal ? "journal on disk" : "no journal: a restart forgets",
      ].join(" · ");
    },
  };
}
