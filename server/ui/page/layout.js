// The frame that all sections share: cards, tooltips, short messages, and the buttons at the top.
import {drawnKey, get, post} from "/ui/api.js";
import {byId, h, setText} from "/ui/dom.js";
import {showHelp} from "/ui/help.js";
import {downloadReport} from "/ui/report.js";
import {refresh, state} from "/ui/store.js";
import {themeButton} from "/ui/theme.js";

// {node, meta, body}: a section with its title; `meta` is the soft text to the right of it.
export function card(id, title, width) {
  const meta = h("span", {class: "meta"});
  const body = h("div");
  const node = h(
    "section",
    {class: `card ${width}`, id, tabindex: "-1", "aria-labelledby": `${id}-title`},
    h("header", {}, h("h2", {id: `${id}-title`}, title), meta),
    body,
  );
  return {node, meta, body};
}

// Shows the data-tip of what is pointed at or has the focus.
export function addTooltips() {
  const tip = h("div", {class: "tip", hidden: true, role: "tooltip", id: "tip"});
  document.body.append(tip);
  const hide = () => {
    tip.hidden = true;
  };
  const show = (event) => {
    const target = event.target.closest?.("[data-tip]");
    if (!target) return hide();
    setText(tip, target.dataset.tip);
    tip.hidden = false;
    const box = target.getBoundingClientRect();
    const own = tip.getBoundingClientRect();
    const left = Math.min(Math.max(box.left + box.width / 2 - own.width / 2, 8), innerWidth - own.width - 8);
    const above = box.top - own.height - 8;
    tip.style.left = `${Math.max(left, 4)}px`;
    tip.style.top = `${above > 4 ? above : Math.min(box.bottom + 8, innerHeight - own.height - 4)}px`;
  };
  document.addEventListener("pointerover", show);
  document.addEventListener("focusin", show);
  document.addEventListener("focusout", hide);
  document.addEventListener("scroll", hide, {capture: true, passive: true});
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
}

const toastMs = 6000;
let toastTimer;

export function say(text, level = "note") {
  let toast = byId("toast");
  if (!toast) {
    toast = h("div", {class: "toast", id: "toast", role: "status"});
    document.body.append(toast);
  }
  toast.dataset.level = level;
  toast.hidden = false;
  setText(toast, text);
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => {
    toast.hidden = true;
  }, toastMs);
}

// Puts a tensor on every worker and adds them up; in the group that is looked at, or in one of all that are ready.
export async function launchDemo() {
  const button = byId("demo");
  if (button.disabled) return;
  button.disabled = true;
  try {
    const group = state.groups.find((one) => one.name === state.group && one.state === "ready");
    const key = {"Idempotency-Key": drawnKey()};
    const launched = await post("/v1/demo", group ? {group: group.name} : {}, key);
    say(`Launched ${launched.id}: all_reduce of 1 MiB in ${launched.request.group}`);
    document.dispatchEvent(new CustomEvent("chorus:select", {detail: launched.id}));
    refresh(["collectives", "groups", "status"]);
    await get(`/v1/collectives/${encodeURIComponent(launched.id)}?wait=4s`);
    refresh(["collectives", "status", "traffic"]);
  } catch (failure) {
    say(`No demo: ${failure.message}`, "red");
  }
  button.disabled = false;
}

export function addActions() {
  byId("actions").append(
    h(
      "button",
      {
        class: "primary",
        type: "button",
        id: "demo",
        onclick: launchDemo,
        "data-tip": "Puts 1 MiB of i32 on every worker and runs an all_reduce (d)",
      },
      "Run a demo",
    ),
    h(
      "button",
      {
        type: "button",
        id: "report",
        onclick: downloadReport,
        "data-tip": "This page as one file that needs no server, with all data (r)",
      },
      "Download report",
    ),
    themeButton(),
    h(
      "button",
      {
        class: "icon",
        type: "button",
        id: "help",
        onclick: showHelp,
        "aria-label": "Keys and help",
        "data-tip": "Keys and help (?)",
      },
      "?",
    ),
  );
}
