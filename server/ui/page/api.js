// The public JSON, asked for as anybody would. A token, where one is needed, is kept for this tab only.

const tokenKey = "chorus-token";
let askForToken = () => {};

export function onTokenNeeded(ask) {
  askForToken = ask;
}

export function setToken(token) {
  if (token) sessionStorage.setItem(tokenKey, token);
  else sessionStorage.removeItem(tokenKey);
}

export function hasToken() {
  return sessionStorage.getItem(tokenKey) !== null;
}

// What a service answered that it did not like, or that it did not answer (status 0).
export class Problem extends Error {
  constructor(status, body) {
    super(body?.detail || body?.title || (status ? `status ${status}` : "the coordinator does not answer"));
    this.status = status;
    this.code = body?.code ?? "";
  }
}

function headers(extra) {
  const all = {Accept: "application/json", ...extra};
  const token = sessionStorage.getItem(tokenKey);
  if (token) all.Authorization = `Bearer ${token}`;
  return all;
}

// A response with status 2xx, or a thrown Problem.
export async function request(path, options = {}) {
  let response;
  try {
    response = await fetch(path, {...options, headers: headers(options.headers), cache: "no-store", redirect: "error"});
  } catch (failure) {
    if (failure.name === "AbortError") throw failure;
    throw new Problem(0);
  }
  if (response.ok) return response;
  const body = await response.json().catch(() => null);
  if (response.status === 401) askForToken();
  throw new Problem(response.status, body);
}

const patienceMs = 8000;

export async function get(path) {
  try {
    return await (await request(path, {signal: AbortSignal.timeout(patienceMs)})).json();
  } catch (failure) {
    throw failure instanceof Problem ? failure : new Problem(0); // it was cut off, or took too long
  }
}

export async function post(path, body, extra) {
  const options = {method: "POST", body: JSON.stringify(body), headers: {"Content-Type": "application/json", ...extra}};
  return (await request(path, options)).json();
}

// For Idempotency-Key: a browser may send a request twice.
export function drawnKey() {
  const words = crypto.getRandomValues(new Uint32Array(4));
  return Array.from(words, (word) => word.toString(16).padStart(8, "0")).join("");
}

// Everything that a list has, page by page, up to a limit.
export async function list(path, limit) {
  const items = [];
  let cursor = null;
  do {
    const mark = path.includes("?") ? "&" : "?";
    const page = await get(
      `${path}${mark}limit=${Math.min(limit, 200)}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ""}`,
    );
    items.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor && items.length < limit);
  return items;
}
