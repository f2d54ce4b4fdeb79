// Keys, the dialog that lists them, and the one that asks for a token.
import {setToken} from "/ui/api.js";
import {byId, h} from "/ui/dom.js";
import {launchDemo} from "/ui/layout.js";
import {downloadReport} from "/ui/report.js";
import {everything, refresh} from "/ui/store.js";
import {toggleTheme} from "/ui/theme.js";

const keys = [
  ["?", "this help"],
  ["1 … 7", "to a section: plan, collectives, links, parameters, workers, events, settings"],
  ["n  p", "next and previous round of the plan"],
  ["space", "play or pause the plan (where no button has the focus)"],
  ["j  k", "next and previous collective"],
  ["d", "run a demo collective"],
  ["r", "download a report"],
  ["t", "light or dark"],
  ["Esc", "close"],
];

export function helpDialog() {
  const close = () => byId("help-dialog").close();
  return h(
    "dialog",
    {id: "help-dialog", "aria-labelledby": "help-title"},
    h("h2", {id: "help-title"}, "Keys"),
    h(
      "dl",
      {class: "keys"},
      keys.map(([key, what]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)]),
    ),
    h(
      "p",
      {class: "soft sentence"},
      "Everything on this page is JSON under /v1, and an event stream: curl -N …/v1/events",
    ),
    h("div", {class: "row"}, h("button", {type: "button", class: "primary", onclick: close}, "Close")),
  );
}

export function showHelp() {
  if (!byId("help-dialog").open) byId("help-dialog").showModal();
}

let hasDeclined = false;

// Asks by itself until somebody has closed the dialog without one; then there is a button.
export function askForToken() {
  if (!hasDeclined) openTokenDialog();
}

// What is entered is used for everything from then on, until the tab is closed.
export function openTokenDialog() {
  if (byId("token-dialog")) return;
  const input = h("input", {type: "password", autocomplete: "off", spellcheck: "false", id: "token", required: true});
  const dialog = h(
    "dialog",
    {id: "token-dialog", "aria-labelledby": "token-title"},
    h(
      "form",
      {
        method: "dialog",
        onsubmit: () => {
          hasDeclined = false;
          setToken(input.value.trim());
          dialog.remove();
          refresh(everything);
        },
      },
      h("h2", {id: "token-title"}, "This coordinator asks for a token"),
      h(
        "p",
        {class: "soft"},
        "One with the role read shows this page; submit lets it launch. It stays in this tab, and is forgotten with it.",
      ),
      h("label", {}, "Token", input),
      h("div", {class: "row"}, h("button", {type: "submit", class: "primary"}, "Use it")),
    ),
  );
  byId("dialogs").append(dialog);
  dialog.addEventListener("cancel", () => {
    hasDeclined = true;
  });
  dialog.addEventListener("close", () => dialog.remove());
  dialog.showModal();
}

function isTyping(target) {
  return target.closest?.("input, select, textarea, dialog") !== null;
}

export function addKeys(sections) {
  const send = (name) => document.dispatchEvent(new CustomEvent(`chorus:${name}`));
  const actions = {
    "?": showHelp,
    d: launchDemo,
    r: downloadReport,
    t: toggleTheme,
    n: () => send("next-round"),
    p: () => send("previous-round"),
    j: () => send("next-collective"),
    k: () => send("previous-collective"),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    const section = sections[Number(event.key) - 1];
    if (section) {
      section.node.focus({preventScroll: true});
      section.node.scrollIntoView({block: "start"});
    } else if (event.key === " " && !event.target.closest("button, a, [role=application]")) {
      send("play");
    } else if (actions[event.key]) {
      actions[event.key]();
    } else {
      return;
    }
    event.preventDefault();
  });
}
