// Numbers as people read them. Exact values belong in tooltips.

function scaled(value, units, step) {
  let i = 0;
  while (Math.abs(value) >= step && i + 1 < units.length) {
    value /= step;
    ++i;
  }
  const digits = i === 0 || Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return `${value.toFixed(digits).replace(/\.0+$/, "")} ${units[i]}`;
}

export function bytes(value) {
  return scaled(value, ["B", "KiB", "MiB", "GiB", "TiB"], 1024);
}

export function rate(bytesPerSecond) {
  return scaled(bytesPerSecond, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"], 1000);
}

export function seconds(value) {
  if (!Number.isFinite(value)) return "–";
  if (value === 0) return "0 s";
  const magnitude = Math.abs(value);
  if (magnitude < 1e-3) return `${(value * 1e6).toFixed(magnitude < 1e-5 ? 1 : 0)} µs`;
  if (magnitude < 1) return `${(value * 1e3).toFixed(magnitude < 1e-2 ? 2 : 1)} ms`;
  if (magnitude < 120) return `${value.toFixed(magnitude < 10 ? 2 : 1)} s`;
  if (magnitude < 7200) return `${Math.round(value / 60)} min`;
  return `${(value / 3600).toFixed(1)} h`;
}

export function ago(milliseconds) {
  return milliseconds < 119950 ? `${(milliseconds / 1000).toFixed(1)} s ago` : `${seconds(milliseconds / 1000)} ago`;
}

export function count(n, thing) {
  return `${n} ${thing}${n === 1 ? "" : "s"}`;
}

export function place(locality) {
  return (
    ["region", "zone", "rack", "host"]
      .map((level) => locality?.[level])
      .filter(Boolean)
      .join(" / ") || "unknown"
  );
}

// "tree, 4-ary" and such: an algorithm with what it was given.
export function algorithmName(choice) {
  const shape = choice.algorithm_shape?.length
    ? ` ${choice.algorithm_shape.length > 6 ? "own shape" : choice.algorithm_shape.join("×")}`
    : "";
  const arity = /tree/.test(choice.algorithm) && choice.arity ? ` arity ${choice.arity}` : "";
  return choice.algorithm + (shape || arity);
}
