// The group that is looked at, with the plan drawn on it, played round by round, and why it was chosen.
import {post} from "/ui/api.js";
import {empty, h, icon, s, setText, whenChanged} from "/ui/dom.js";
import {card} from "/ui/layout.js";
import {speedOfLink} from "/ui/links.js";
import {edgesOf, holdingsOf, movesOf} from "/ui/playback.js";
import {selectGroup, selectedGroup, state} from "/ui/store.js";
import {topologyFigure} from "/ui/topology.js";
import {bytes, count} from "/ui/units.js";
import {costBars} from "/ui/why.js";

const operations = [
  "all_reduce",
  "reduce",
  "broadcast",
  "all_gather",
  "reduce_scatter",
  "gather",
  "scatter",
  "all_to_all",
  "barrier",
];
const sizes = [4, 1024, 65536, 1 << 20, 16 << 20, 256 << 20];
const stepMs = 1100;
const movesShown = 80;

function selection(label, onchange) {
  const select = h("select", {"aria-label": label, onchange: () => onchange(select.value)});
  return {select, node: h("label", {}, label, select)};
}

function stretchOf(group) {
  const {assigned, arrival_order: before} = group.stretch;
  return group.order === "measured"
    ? ` · a hop of a ring takes ${assigned.toFixed(2)} times the fastest, as measured (${before.toFixed(2)} by locality)`
    : ` · a hop of a ring is ${assigned.toFixed(2)} levels long (${before.toFixed(2)} in order of arrival)`;
}

function fillSelect(select, options, value) {
  const now = options.map(([key, text]) => `${key}\n${text}`).join("\n\n");
  if (select.dataset.options !== now) {
    select.replaceChildren(...options.map(([key, text]) => h("option", {value: key}, text)));
    select.dataset.options = now;
  }
  if (select.value !== value) select.value = value;
}

export function planSection() {
  const {node, meta, body} = card("plan", "Topology and plan", "wide");
  const wish = {op: "all_reduce", bytes: 1 << 20, algorithm: "auto"};
  let plan = null,
    candidates = [],
    problem = null,
    asked = "",
    asking = 0;
  let round = -1,
    timer = null,
    rounds = [],
    holdings = null;

  const group = selection("Group", (name) => selectGroup(name));
  const op = selection("Operation", (value) => ask({op: value, algorithm: "auto"}));
  const size = selection("Size per rank", (value) => ask({bytes: Number(value)}));
  const algorithm = selection("Algorithm", (value) => ask({algorithm: value}));
  const choices = h("div", {class: "choices"}, group.node, op.node, size.node, algorithm.node);
  fillSelect(
    op.select,
    operations.map((name) => [name, name]),
    wish.op,
  );
  fillSelect(
    size.select,
    sizes.map((value) => [String(value), bytes(value)]),
    String(wish.bytes),
  );

  const figure = topologyFigure();
  const spare = h("p", {class: "spare"});
  const button = (shape, label, tip, onclick) =>
    h("button", {type: "button", class: "icon", "aria-label": label, "data-tip": tip, onclick}, icon(shape));
  const play = button("play", "Play the plan", "Play or pause (space)", () => toggle());
  const slider = h("input", {
    type: "range",
    min: "0",
    value: "0",
    "aria-label": "Round",
    oninput: () => step(Number(slider.value) - 1, true),
  });
  const where = h("output", {"aria-live": "off"});
  const moves = h("ul", {class: "moves", tabindex: "0", "aria-label": "What moves in this round"});
  const player = h(
    "div",
    {class: "player", role: "group", "aria-label": "The plan round by round"},
    h(
      "div",
      {class: "buttons"},
      button("first", "To the beginning", "The whole plan", () => step(-1, true)),
      button("previous", "Previous round", "Previous round (p)", () => step(round - 1, true)),
      play,
      button("next", "Next round", "Next round (n)", () => step(round + 1, true)),
    ),
    slider,
    where,
    moves,
  );
  const held = h("div", {class: "holdings"});
  const why = h("p", {class: "sentence"});
  const bars = costBars(7);
  const nothing = empty(
    "No group yet",
    "A group gives workers their ranks by where they stand; then plans can be drawn on it. Run a demo, or make one:",
    `curl -X PUT ${location.origin}/v1/groups/train -d '{"size":4}'`,
  );
  const right = h("div", {}, player, held, h("h3", {}, "Why this algorithm"), why, bars.node);
  body.append(choices, h("div", {class: "plan-grid"}, h("div", {}, figure.node, spare), h("div", {}, nothing, right)));

  document.addEventListener("chorus:next-round", () => step(round + 1, true));
  document.addEventListener("chorus:previous-round", () => step(round - 1, true));
  document.addEventListener("chorus:play", () => toggle());

  function ask(change) {
    Object.assign(wish, change);
    draw(state);
  }

  async function fetchPlan(now, request) {
    const turn = ++asking;
    try {
      const [chosen, auto] = await Promise.all([
        post("/v1/plans", request),
        request.algorithm === "auto" ? null : post("/v1/plans", {...request, algorithm: "auto"}),
      ]);
      if (turn !== asking) return;
      plan = chosen;
      candidates = (auto ?? chosen).considered;
      problem = null;
    } catch (failure) {
      if (turn !== asking) return;
      plan = null;
      problem = failure.message;
    }
    asked = now;
    present();
    draw(state);
  }

  // Without rounds (above 64 ranks) the edges are those of the members' roles.
  function edgesOfRoles(members) {
    return members.flatMap((member) => {
      const role = member.roles?.find((one) => one.algorithm === plan.algorithm);
      return (role?.sends_to ?? []).map((to) => ({from: member.rank, to, bytes: wish.bytes}));
    });
  }

  function present() {
    const current = selectedGroup();
    const members = current
      ? current.members
      : [...state.workers]
          .filter((one) => one.state === "ready")
          .map((one) => ({rank: null, worker: one.id, locality: one.locality}))
          .sort((a, b) => JSON.stringify(a.locality).localeCompare(JSON.stringify(b.locality)));
    rounds = plan?.rounds ?? [];
    const edges = !plan ? [] : rounds.length ? edgesOf(rounds, wish.bytes) : edgesOfRoles(members);
    const rooted =
      edges.length > 0 &&
      (["reduce", "broadcast", "gather", "scatter"].includes(wish.op) || /tree|centralized/.test(plan.algorithm));
    figure.show(members, edges, rooted ? plan.root : null);
    holdings = plan && wish.op === "all_reduce" && rounds.length > 0 ? holdingsOf(rounds, members.length) : null;
    slider.max = String(rounds.length);
    step(-1, false);
    nothing.hidden = current !== null;
    right.hidden = current === null;
    choices.hidden = state.groups.length === 0;
    player.hidden = rounds.length === 0;
    if (problem) setText(why, `No plan: ${problem}`);
    else if (plan)
      setText(
        why,
        `${plan.reason}. ${plan.verified ? "Proved" : "Not proved here"}: ${plan.verification}. Lower bound: ${count(
          plan.lower_bound.rounds,
          "round",
        )} and ${bytes(plan.lower_bound.bytes_per_rank)} per rank.`,
      );
    else setText(why, "");
    if (plan) bars.draw({considered: candidates, chosen: plan.algorithm});
  }

  function step(to, byHand) {
    if (byHand) stop();
    round = Math.min(Math.max(to, -1), rounds.length - 1);
    slider.value = String(round + 1);
    setText(where, round < 0 ? count(rounds.length, "round") : `round ${round + 1} of ${rounds.length}`);
    slider.setAttribute("aria-valuetext", where.textContent);
    const now = round < 0 ? null : movesOf(rounds[round]);
    figure.mark(now && new Map(now.map((move) => [`${move.from},${move.to}`, move.reduces])));
    const parts = (move) =>
      move.chunks > 1 ? `chunks ${move.chunk} to ${move.chunk + move.chunks - 1}` : `chunk ${move.chunk}`;
    const lines = (now ?? [])
      .slice(0, movesShown)
      .map((move) =>
        h(
          "li",
          {class: move.reduces ? "reducing" : "copying"},
          `${move.from} → ${move.to}, ${parts(move)}${move.reduces ? ", reduced on arrival" : ""}`,
        ),
      );
    if (now && now.length > movesShown) lines.push(h("li", {}, `and ${now.length - movesShown} more`));
    moves.replaceChildren(
      ...(now
        ? lines
        : [
            h("li", {}, "All rounds at once. Play, or step through them, to see what moves when:"),
            h("li", {class: "copying"}, "sent, and kept as it comes"),
            h("li", {class: "reducing"}, "sent, and added to what is there"),
          ]),
    );
    drawHoldings();
  }

  // Ranks from top to bottom, chunks from left to right: how much of the sum each holds.
  function drawHoldings() {
    if (!holdings) return held.replaceChildren();
    const now = holdings[round + 1],
      ranks = now.length,
      chunks = now[0].length;
    const left = 26,
      width = 460,
      cellWidth = (width - left) / chunks,
      cellHeight = ranks > 16 ? 6 : ranks > 8 ? 10 : 13;
    const cells = now.flatMap((row, rank) =>
      row.map((has, chunk) => {
        const x = left + chunk * cellWidth,
          y = 14 + rank * cellHeight,
          part = has / ranks;
        return s(
          "g",
          {"data-tip": `rank ${rank}, chunk ${chunk}: ${has} of ${ranks} contributions`},
          s("rect", {class: "cell", x, y, width: cellWidth - 1.5, height: cellHeight - 1.5, rx: 1.5}),
          s("rect", {
            class: part === 1 ? "full" : "have",
            x,
            y,
            width: (cellWidth - 1.5) * part,
            height: cellHeight - 1.5,
            rx: 1.5,
          }),
        );
      }),
    );
    const labels = now.map((_, rank) =>
      ranks > 16 && rank % 4
        ? null
        : s("text", {x: left - 6, y: 14 + rank * cellHeight + cellHeight / 2 + 3, "text-anchor": "end"}, String(rank)),
    );
    held.replaceChildren(
      h(
        "h3",
        {},
        round < 0 ? "What each rank holds before the first round" : `What each rank holds after round ${round + 1}`,
      ),
      s(
        "svg",
        {
          viewBox: `0 0 ${width} ${18 + ranks * cellHeight}`,
          role: "img",
          "aria-label": `${now.flat().filter((has) => has === ranks).length} of ${ranks * chunks} parts are complete`,
        },
        s("text", {x: left, y: 9}, `${count(chunks, "chunk")} →`),
        ...labels.filter(Boolean),
        ...cells,
      ),
    );
  }

  function stop() {
    clearInterval(timer);
    timer = null;
    play.replaceChildren(icon("play"));
    play.setAttribute("aria-label", "Play the plan");
  }

  function toggle() {
    if (timer) return stop();
    if (rounds.length === 0) return;
    if (round >= rounds.length - 1) step(-1, false);
    play.replaceChildren(icon("pause"));
    play.setAttribute("aria-label", "Pause");
    const advance = () => {
      if (round >= rounds.length - 1) return stop();
      step(round + 1, false);
    };
    advance();
    timer = setInterval(advance, stepMs);
  }

  const spareWorkers = whenChanged((names) => {
    setText(
      spare,
      names.length
        ? `Not in this group: ${names.slice(0, 12).join(", ")}${names.length > 12 ? ` and ${names.length - 12} more` : ""}`
        : "",
    );
  });
  const members = whenChanged(() => present());

  function draw(now) {
    const current = selectedGroup();
    fillSelect(
      group.select,
      now.groups.map((one) => [
        one.name,
        `${one.name} (${count(one.members.length, "rank")}${one.state === "ready" ? "" : `, ${one.state}`})`,
      ]),
      now.group ?? "",
    );
    fillSelect(
      algorithm.select,
      [
        ["auto", plan && wish.algorithm === "auto" ? `auto: ${plan.algorithm}` : "auto"],
        ...[...new Set(candidates.map((one) => one.algorithm))].sort().map((name) => [name, name]),
      ],
      wish.algorithm,
    );
    if (size.select.value !== String(wish.bytes)) size.select.value = String(wish.bytes);
    // A coordinator that starts afresh may number another group's epoch alike: the members tell.
    const who = current
      ? [current.name, current.epoch, current.members.map((one) => [one.worker, one.incarnation])]
      : now.workers.map((one) => [one.id, one.state]);
    if (current) {
      const request = {
        group: current.name,
        op: wish.op,
        bytes: wish.op === "barrier" ? 0 : wish.bytes,
        algorithm: wish.algorithm,
      };
      const wanted = JSON.stringify([request, who]);
      if (wanted !== asked) {
        asked = wanted;
        plan = null;
        fetchPlan(wanted, request);
      }
      const inside = new Set(current.members.map((member) => member.worker));
      spareWorkers(now.workers.filter((worker) => !inside.has(worker.id)).map((worker) => worker.id));
    } else {
      plan = null;
      asked = "";
      asking++; // an answer on its way is of a group that is gone
      spareWorkers([]);
    }
    members(who);
    const fastest = figure.refresh((from, to) => speedOfLink(from.worker, to.worker));
    const stretch = current ? stretchOf(current) : "";
    meta.textContent = current
      ? `epoch ${current.epoch} · ${count(current.members.length, "rank")}${stretch} · edges: ${
          fastest > 0 ? "as wide as their bytes per second, dashed where slow" : "as wide as the bytes they carry"
        }`
      : "";
  }
  return {node, draw};
}
