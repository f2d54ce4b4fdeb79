// Elements from values. Text is always set as text: what comes from outside can never become markup.

const svgNamespace = "http://www.w3.org/2000/svg";

function build(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(node.style, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

// h("p", {class: "soft"}, "text", node, [nodes])
export function h(tag, attributes, ...children) {
  return build(document.createElement(tag), attributes, children);
}

// The same for SVG.
export function s(tag, attributes, ...children) {
  return build(document.createElementNS(svgNamespace, tag), attributes, children);
}

export function byId(id) {
  return document.getElementById(id);
}

// Sets the text only where it differs: selections and screen readers are left in peace.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Calls draw(value) only when the value differs, as JSON, from that of the call before.
export function whenChanged(draw) {
  let before;
  return (value, ...rest) => {
    const now = JSON.stringify(value);
    if (now === before) return;
    before = now;
    draw(value, ...rest);
  };
}

// One child per item, kept and updated where it was there before, so that focus and hover stay.
export function keyed(parent, items, keyOf, create, update) {
  const known = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  let place = null;
  for (const item of items) {
    const key = String(keyOf(item));
    let child = known.get(key);
    known.delete(key);
    if (!child) {
      child = create(item);
      child.dataset.key = key;
    }
    update?.(child, item);
    const next = place ? place.nextElementSibling : parent.firstElementChild;
    if (next !== child) parent.insertBefore(child, next);
    place = child;
  }
  for (const gone of known.values()) gone.remove();
}

// An empty state: what is not there yet, and how to get it.
export function empty(title, text, command) {
  return h("div", {class: "empty"}, h("strong", {}, title), text, command && h("code", {}, command));
}

const shapes = {
  first: "M2 2h2v10H2z M12 2v10L5 7z",
  previous: "M11 2v10L4 7z",
  play: "M4 2v10l7-5z",
  pause: "M3 2h3v10H3z M8 2h3v10H8z",
  next: "M3 2v10l6-5z M10 2h2v10h-2z",
  moon: "M11.5 8.6A5 5 0 0 1 5.4 2.5 5 5 0 1 0 11.5 8.6z",
  sun:
    "M7 4.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6z M6.4 0.6h1.2v2H6.4z M6.4 11.4h1.2v2H6.4z " +
    "M0.6 6.4h2v1.2h-2z M11.4 6.4h2v1.2h-2z",
};

// A small drawing in the colour of the text, for buttons that have a label of their own.
export function icon(name) {
  return s(
    "svg",
    {viewBox: "0 0 14 14", width: 14, height: 14, "aria-hidden": "true", class: "glyph"},
    s("path", {d: shapes[name], fill: "currentColor"}),
  );
}

export function state(word) {
  return h("span", {class: "state", "data-state": word}, word);
}
