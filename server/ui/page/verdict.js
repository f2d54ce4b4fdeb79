// The first block: one sentence, a mark that can be told without colour, and the reasons.
import {byId, h, keyed, setText} from "/ui/dom.js";
import {openTokenDialog} from "/ui/help.js";
import {count, seconds} from "/ui/units.js";

const signs = {green: ["✓", "Well"], amber: ["!", "Look"], red: ["✕", "Broken"]};
let announced = "";

// What the coordinator says of itself, or what can be said of it when it says nothing.
function verdictOf(state) {
  if (state.refused && !state.status)
    return {
      level: "amber",
      text: "This coordinator says how things stand only to those who have a token of the role read",
      reasons: [
        {level: "amber", text: state.refused.message},
        {level: "amber", text: "Whoever runs it makes one with `chorus token create --role read`"},
      ],
    };
  if (state.unreachableSince !== null) {
    const silent = seconds((Date.now() - state.unreachableSince) / 1000);
    return {
      level: "red",
      text: `The coordinator does not answer, for ${silent} by now; what is below is what it said last`,
      reasons: [],
    };
  }
  return state.status?.verdict ?? null;
}

// What stays the same while time passes.
function withoutSeconds(text) {
  return text.replace(/, last heard [\d.]+ s ago| for [\d.]+ s/g, "");
}

// The reasons that the sentence does not tell already.
function further(verdict) {
  return verdict.reasons.filter((reason) => !(reason.worker && verdict.text.includes(`${reason.worker}, last heard`)));
}

function offerToken(isWanted) {
  const offered = byId("enter-token");
  if (offered && !isWanted) offered.remove();
  if (offered || !isWanted) return;
  byId("verdict-text").after(
    h("button", {type: "button", id: "enter-token", onclick: openTokenDialog}, "Enter a token"),
  );
}

export function drawVerdict(state) {
  const verdict = verdictOf(state);
  if (!verdict) return;
  // Of whom nothing is told it must not look as if nothing were there.
  const isStranger = state.refused !== null && !state.status;
  byId("sections").hidden = isStranger;
  offerToken(isStranger);
  const [icon, word] = signs[verdict.level] ?? signs.red;
  document.documentElement.dataset.level = verdict.level;
  document.title = verdict.level === "green" ? "Chorus" : `${icon} ${word} – Chorus`;
  setText(byId("verdict-icon"), icon);
  setText(byId("verdict-word"), word);
  setText(byId("verdict-text"), verdict.text);
  keyed(
    byId("verdict-reasons"),
    further(verdict),
    (reason) => withoutSeconds(reason.text),
    () => h("li"),
    (item, reason) => {
      item.dataset.level = reason.level;
      setText(item, reason.text);
    },
  );
  // A screen reader hears of changes, not of every second that passes.
  const news = `${word}. ${
    verdict.reasons.map((reason) => withoutSeconds(reason.text)).join(". ") ||
    count(state.workers.length, "worker")
  }`;
  if (news !== announced) setText(byId("announce"), announced === "" ? "" : news);
  announced = news;
}
