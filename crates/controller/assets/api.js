// Requests to the controller that served this page. A token, where one is needed, is kept for this tab only.

const TOKEN = "slicewise-token";
/** Longest time for an answer to be there whole. */
const LONGEST_READ_MS = 30_000;
/** Silence after which the controller counts as away, if something is awaited of it. Its stream of events speaks every second. */
const AWAY_MS = 3_000;
/** Silence after which a stream is given up and opened anew. */
const STREAM_MS = 10_000;

/** An answer that is not what was asked for: the problem document of the controller (RFC 9457). */
export class Problem extends Error {
  constructor(status, document) {
    super(document.detail || document.title || `the controller answered ${status}`);
    this.status = status;
    this.document = document;
  }
}

/** No answer at all. */
export class Away extends Error {
  constructor() {
    super("The controller does not answer.");
  }
}

let onUnauthorized = () => {};
let onReach = () => {};

/** `unauthorized` is called at 401, `reach` with true or false after each request. */
export function listen({ unauthorized, reach }) {
  onUnauthorized = unauthorized;
  onReach = reach;
}

/** When each thing that is awaited was asked for, and when the controller last said anything. */
const waits = new Set();
let lastWord = -Infinity;

setInterval(() => {
  const since = Math.max(lastWord, Math.min(...[...waits].map((wait) => wait.since)));
  if (waits.size > 0 && performance.now() - since >= AWAY_MS) onReach(false);
}, 250);

function hear() {
  lastWord = performance.now();
  onReach(true);
}

async function awaited(promise) {
  const wait = { since: performance.now() };
  waits.add(wait);
  try {
    return await promise;
  } finally {
    waits.delete(wait);
  }
}

export const token = () => sessionStorage.getItem(TOKEN);

export function setToken(text) {
  if (text) sessionStorage.setItem(TOKEN, text);
  else sessionStorage.removeItem(TOKEN);
}

/** Answer of a request: its body as JSON, its ETag, and the controller's time in ms (NaN: not said). Throws a `Problem`, or `Away`. */
export async function request(method, path, { body, headers = {}, signal } = {}) {
  const signals = signal ? [signal] : [];
  // Others wait for what is read; a change is not given up.
  if (method === "GET") signals.push(AbortSignal.timeout(LONGEST_READ_MS));
  const response = await send(method, path, { body, headers, signal: AbortSignal.any(signals) });
  const text = await heard(response.text());
  return { body: text ? JSON.parse(text) : null, etag: response.headers.get("etag"), at: Date.parse(response.headers.get("date")) };
}

/** What was to come of the controller. Throws `Away` where it did not come. */
async function heard(promise) {
  try {
    return await awaited(promise);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    onReach(false);
    throw new Away();
  }
}

export const read = async (path, options) => (await request("GET", path, options)).body;

/** The response itself, once its status says that it is an answer. */
export async function send(method, path, { body, headers = {}, signal } = {}) {
  const all = { accept: "application/json", ...headers };
  if (token()) all.authorization = `Bearer ${token()}`;
  if (body !== undefined) all["content-type"] = "application/json";
  const content = body === undefined ? undefined : JSON.stringify(body);
  const response = await heard(fetch(path, { method, headers: all, body: content, signal, cache: "no-store" }));
  hear();
  if (response.ok) return response;
  const problem = new Problem(response.status, await problemOf(response));
  if (response.status === 401) onUnauthorized(problem);
  throw problem;
}

async function problemOf(response) {
  const text = await response.text().catch(() => "");
  try {
    const document = JSON.parse(text);
    return document && typeof document === "object" ? document : { title: String(document) };
  } catch {
    return { title: response.statusText, detail: text.slice(0, 300) };
  }
}

/** Repeating a request with the same key changes nothing more. */
export function idempotencyKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** A path with parameters; those without a value are left out. */
export function address(path, parameters) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== ""));
  return query.size > 0 ? `${path}?${query}` : path;
}

export const slicePath = (name) => `/v1/slices/${encodeURIComponent(name)}`;

/**
 * Follow the stream of events from after number `last`. `onEvent` gets each; `onOpen` is called at each connection.
 * It connects again by itself until `signal` aborts.
 */
export async function follow(last, { onEvent, onOpen, signal }) {
  let wait = 500;
  while (!signal.aborted) {
    try {
      const headers = { accept: "text/event-stream" };
      headers["last-event-id"] = String(last);
      const response = await opened(address("/v1/events", { after: last }), headers, signal);
      wait = 500;
      onOpen();
      for await (const [id, data] of messages(response.body)) {
        if (id !== null) last = id;
        onEvent(JSON.parse(data));
      }
      onReach(false);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Problem && error.status === 401) return;
      if (!(error instanceof Problem) && !(error instanceof Away)) onReach(false);
    }
    await new Promise((done) => setTimeout(done, wait));
    wait = Math.min(wait * 2, 5_000);
  }
}

/** A stream whose first answer comes within the time that it may be silent. */
async function opened(path, headers, signal) {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(new Away()), STREAM_MS);
  try {
    return await send("GET", path, { headers, signal: AbortSignal.any([signal, late.signal]) });
  } finally {
    clearTimeout(timer);
  }
}

/** Messages of a stream of server-sent events (HTML standard, 9.2.6): number and data of each. */
async function* messages(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let [rest, id, data] = ["", null, []];
  for (;;) {
    const silent = setTimeout(() => reader.cancel(), STREAM_MS);
    const { value, done } = await awaited(reader.read()).finally(() => clearTimeout(silent));
    if (done) return;
    hear();
    const lines = (rest + value).split(/\r\n|\n|\r/);
    rest = lines.pop();
    for (const line of lines) {
      if (line === "") {
        if (data.length > 0) yield [id, data.join("\n")];
        data = [];
      } else if (line.startsWith("data:")) {
        data.push(line.slice(5).replace(/^ /, ""));
      } else if (line.startsWith("id:")) {
        id = line.slice(3).trim();
      }
    }
  }
}
