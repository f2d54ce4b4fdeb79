// Why this algorithm, and what the others would have cost.
import {h, whenChanged} from "/ui/dom.js";
import {algorithmName, bytes, count, seconds} from "/ui/units.js";

// The best candidate of each algorithm, the fastest first.
export function bestOfEach(considered) {
  const best = new Map();
  for (const one of considered)
    if (!best.has(one.algorithm) || one.predicted_seconds < best.get(one.algorithm).predicted_seconds)
      best.set(one.algorithm, one);
  return [...best.values()].sort((a, b) => a.predicted_seconds - b.predicted_seconds);
}

// Bars of predicted cost. `chosen`: the name of the algorithm that is used; `measured`: seconds, or nothing.
export function costBars(shownAtFirst) {
  const node = h("div");
  let all = false;
  let last = null;
  const draw = whenChanged(({considered, chosen, measured}) => {
    last = {considered, chosen, measured};
    show();
  });
  function show() {
    const {considered, chosen, measured} = last;
    const best = bestOfEach(considered);
    if (best.length === 0) return node.replaceChildren();
    const rows = best.filter((one, i) => all || i < shownAtFirst || one.algorithm === chosen);
    const reference = best.find((one) => one.algorithm === chosen) ?? best[0];
    const longest = Math.max(...rows.map((one) => one.predicted_seconds), measured ?? 0);
    const bar = (name, value, isChosen, tip, note) => [
      h("span", {class: isChosen ? "chosen" : "", "data-tip": tip}, `${isChosen ? "▸ " : ""}${name}`),
      h(
        "span",
        {class: "bar-track"},
        h("span", {class: "bar-fill", style: {width: `${Math.max((value / longest) * 100, 0.5)}%`}}),
      ),
      h("span", {class: "number"}, seconds(value)),
      h("span", {class: "times"}, note),
    ];
    const cells = rows.flatMap((one) =>
      bar(
        algorithmName(one),
        one.predicted_seconds,
        one.algorithm === chosen,
        `${one.predicted_seconds} s predicted\n${count(one.rounds, "round")}, ${bytes(one.bytes_per_rank)} per rank`,
        one.algorithm === chosen ? "" : `×${(one.predicted_seconds / reference.predicted_seconds).toFixed(2)}`,
      ),
    );
    if (measured) cells.push(...bar("measured", measured, false, `${measured} s from admission to commit`, ""));
    const more =
      best.length > rows.length || all
        ? h(
            "button",
            {
              type: "button",
              class: "bars-more",
              "aria-expanded": String(all),
              onclick: () => {
                all = !all;
                show();
              },
            },
            all ? "Fewer" : `All ${best.length} algorithms`,
          )
        : null;
    node.replaceChildren(h("div", {class: "bars"}, cells), ...(more ? [more] : []));
  }
  return {node, draw};
}
