// The last line: which coordinator leads, and where its state is kept.
import {byId, setText} from "/ui/dom.js";

function storeText(store) {
  if (store.kind === "etcd") return `etcd cluster ${store.cluster}`;
  if (store.kind === "sqlite") return `journal ${store.place}`;
  return "no journal";
}

export function drawLead(state) {
  const lead = state.status?.coordinator; // former releases do not tell
  if (!lead) return;
  const parts = [storeText(lead.store)];
  if (lead.url) parts.unshift(`led by coordinator ${lead.url}`);
  setText(byId("lead"), parts.join(" · "));
}
