// What has happened, the newest first, as it comes in.
import {empty, h, keyed} from "/ui/dom.js";
import {card} from "/ui/layout.js";
import {count} from "/ui/units.js";

const shown = 150;
const levels = {
  "worker.lost": "red",
  "group.degraded": "red",
  "collective.failed": "red",
  "collective.begun_again": "amber",
  "collective.cancelled": "amber",
  "worker.left": "amber",
  "collective.stalled": "amber",
};

function subject(event) {
  if (event.collective) return `${event.collective}${event.group ? ` in ${event.group}` : ""}`;
  return event.worker ?? (event.group ? `${event.group}${event.epoch ? `, epoch ${event.epoch}` : ""}` : "");
}

function line(event) {
  const time = new Date(event.at);
  const what = [event.code, event.detail].filter(Boolean).join(": ");
  return h(
    "li",
    {"data-level": levels[event.type] ?? "note"},
    h(
      "time",
      {datetime: event.at, "data-tip": `${event.at}\nevent ${event.sequence}`},
      time.toLocaleTimeString([], {hour12: false}),
    ),
    h(
      "span",
      {},
      h("span", {class: "type"}, event.type),
      ` ${subject(event)}`,
      what && h("span", {class: "detail"}, ` ${what}`),
    ),
  );
}

export function eventsSection() {
  const {node, meta, body} = card("events", "Events", "");
  const list = h("ol", {class: "events", reversed: true, tabindex: "0", "aria-label": "Events, the newest first"});
  const nothing = empty(
    "Nothing has happened yet",
    "Workers that join, groups, collectives and failures appear here as they happen.",
  );
  body.append(nothing, list);
  return {
    node,
    draw(state) {
      nothing.hidden = state.events.length > 0;
      list.hidden = !nothing.hidden;
      meta.textContent = state.events.length ? `${count(state.events.length, "event")}, newest first` : "";
      keyed(list, state.events.slice(0, shown), (event) => event.sequence, line);
    },
  };
}
