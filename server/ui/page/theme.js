// Light or dark: as the system has it, until somebody says otherwise.
import {h, icon} from "/ui/dom.js";

const key = "chorus-theme";
const systemIsDark = matchMedia("(prefers-color-scheme: dark)");
let button = null;

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : systemIsDark.matches;
}

function show() {
  if (!button) return;
  button.replaceChildren(icon(isDark() ? "sun" : "moon"));
  button.setAttribute("aria-label", isDark() ? "Use light colours" : "Use dark colours");
}

export function startTheme() {
  const chosen = localStorage.getItem(key);
  if (chosen) document.documentElement.dataset.theme = chosen;
  systemIsDark.addEventListener("change", show);
}

export function toggleTheme() {
  const chosen = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = chosen;
  localStorage.setItem(key, chosen);
  show();
}

export function themeButton() {
  button = h("button", {class: "icon", type: "button", onclick: toggleTheme, "data-tip": "Light or dark (t)"});
  show();
  return button;
}
