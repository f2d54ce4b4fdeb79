// The page as one file: what is shown, the style it is shown in, and the data behind it. It needs no server and no script.
import {byId, h} from "/ui/dom.js";
import {say} from "/ui/layout.js";
import {state} from "/ui/store.js";

async function styles() {
  const sheets = [...document.querySelectorAll("link[rel=stylesheet]")].map((link) =>
    fetch(link.href).then((response) => response.text()),
  );
  return (await Promise.all(sheets)).join("\n");
}

function data() {
  const {status, workers, groups, collectives, measured, parameters, shards, events, traffic} = state;
  return {
    made_at: new Date().toISOString(),
    from: location.origin,
    status,
    workers,
    groups,
    collectives,
    measured_links: measured,
    traffic,
    parameters,
    shards: Object.fromEntries(shards),
    events,
  };
}

export async function reportText() {
  const copy = document.documentElement.cloneNode(true);
  for (const gone of copy.querySelectorAll(
    "script, link, noscript, .actions, .tip, .toast, dialog, .skip, .traveller, .brand img",
  ))
    gone.remove();
  for (const button of copy.querySelectorAll("button")) button.replaceWith(...button.childNodes);
  for (const control of copy.querySelectorAll("input, select")) control.setAttribute("disabled", "");
  copy.querySelector("#live")?.replaceChildren(`report of ${new Date().toLocaleString()} from ${location.origin}`);
  const style = document.createElement("style");
  style.textContent = await styles();
  // "<" as an escape of JSON: the data cannot end the element that it lies in.
  const block = document.createElement("script");
  block.type = "application/json";
  block.id = "data";
  block.textContent = JSON.stringify(data()).replaceAll("<", "\\u003c");
  copy.querySelector("head").append(style);
  copy.querySelector("body").append(block);
  return `<!doctype html>\n${copy.outerHTML}`;
}

export async function downloadReport() {
  const button = byId("report");
  if (button.disabled) return;
  button.disabled = true;
  const url = URL.createObjectURL(new Blob([await reportText()], {type: "text/html"}));
  const stamp = new Date().toISOString().slice(0, 19).replaceAll(":", "");
  const link = h("a", {href: url, download: `chorus-${stamp}.html`});
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
  button.disabled = false;
  say("The report is in your downloads. It holds everything that is on this page, also the names and addresses.");
}
