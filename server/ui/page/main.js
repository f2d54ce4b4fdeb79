// The status page: wires the sections to what is known, and starts to follow.
import {hasToken, onTokenNeeded} from "/ui/api.js";
import {collectivesSection} from "/ui/collectives.js";
import {byId, h, setText} from "/ui/dom.js";
import {eventsSection} from "/ui/events.js";
import {addKeys, askForToken, helpDialog} from "/ui/help.js";
import {addActions, addTooltips} from "/ui/layout.js";
import {drawLead} from "/ui/lead.js";
import {linksSection} from "/ui/links.js";
import {parametersSection} from "/ui/parameters.js";
import {planSection} from "/ui/plan.js";
import {settingsSection, workersSection} from "/ui/settings.js";
import {changed, everything, heard, keepCurrent, refresh, state, subscribe} from "/ui/store.js";
import {follow} from "/ui/stream.js";
import {startTheme} from "/ui/theme.js";
import {drawVerdict} from "/ui/verdict.js";

const recentEvents = 200;

startTheme();
addTooltips();
addActions();
onTokenNeeded(askForToken);

const [plan, collectives, links, parameters, workers, events, settings] = [
  planSection(),
  collectivesSection(),
  linksSection(),
  parametersSection(),
  workersSection(),
  eventsSection(),
  settingsSection(),
];
const sections = [plan, collectives, links, parameters, workers, events, settings];
const column = (...parts) =>
  h(
    "div",
    {class: "column half"},
    parts.map((part) => part.node),
  );
byId("sections").append(plan.node, collectives.node, column(links, parameters), column(workers, events), settings.node);
byId("dialogs").append(helpDialog());
addKeys(sections);

subscribe((now) => {
  drawVerdict(now);
  drawLead(now);
  for (const section of sections) section.draw(now);
});

function liveness(word) {
  byId("live").dataset.state = word;
  setText(
    byId("live-text"),
    word === "on" ? "live" : hasToken() || state.refused === null ? "reconnecting" : "needs a token",
  );
}

refresh(everything);
keepCurrent();

async function begin() {
  // The page opens with what happened shortly before; the stream goes on from there.
  const {get} = await import("/ui/api.js");
  const status = await get("/v1/status").catch(() => null);
  const since = status ? Math.max(status.last_event - recentEvents, 0) : null;
  await follow(since, {event: heard, state: liveness, begun: () => refresh(everything)});
}

begin();
changed();
