// What the page knows of the controller: links, the slices looked for, counters; kept up to date by its stream of events.

import { Away, address, follow, read, slicePath } from "./api.js";

/** Slices of the first request: enough for the first screen. */
const FIRST_PAGE = 100;
/** Slices of each request after it. */
const PAGE = 1000;
/** Slices that the list holds at most; who looks for others narrows the search. */
export const MOST_SLICES = 50_000;
/** Slices kept for when the controller is away and the page is loaded again. */
const MOST_KEPT = 1000;
const KEPT = "slicewise-last";

export const model = {
  links: [],
  /** Whether links, and the list of slices, have been read: until then they are those of an earlier page, or not known. */
  knowsLinks: false,
  isRead: false,
  /** When gateways that are not connected were last heard of, by name. */
  away: new Map(),
  /** Why the last announcement of gateways was refused. */
  refused: [],
  /** Slices that the filter lets through, in order of their names. */
  slices: [],
  filter: { name_contains: "", state: "", link: "", tenant: "" },
  /** Whether `slices` is all of them, is being read, or is cut off. */
  reading: false,
  cut: false,
  /** By name of a link: what its gateway counted last. */
  reports: new Map(),
  /** What this browser's clock shows more than the controller's, ms. */
  shift: null,
  events: [],
  lastEvent: null,
  /** When the controller was last heard, and whether it answers now. */
  heard: null,
  isAway: false,
};

const listeners = new Map();

/** Call `listener` when `topic` changed: links, slices, counters, events, away. Returns how to stop that. */
export function on(topic, listener) {
  if (!listeners.has(topic)) listeners.set(topic, new Set());
  listeners.get(topic).add(listener);
  return () => listeners.get(topic).delete(listener);
}

export function changed(topic) {
  for (const listener of listeners.get(topic) ?? []) listener();
}

export function onReach(reached) {
  if (reached) model.heard = new Date();
  if (model.isAway === !reached) return;
  model.isAway = !reached;
  changed("away");
}

/** Failures of background work: `Away` is shown by the page already. */
export const quietly = (promise) => promise.catch((error) => {
  if (!(error instanceof Away) && error.name !== "AbortError" && error.status !== 401) console.warn(error);
});

export const linkNamed = (name) => model.links.find((link) => link.name === name);

/** The links of a slice, in order. An empty path means the only link. */
export function pathOf(slice) {
  if (slice.path?.length > 0) return slice.path;
  return model.links.length === 1 ? [model.links[0].name] : [];
}

export async function loadLinks() {
  // Not every token may see gateways.
  const [links, gateways] = await Promise.all([read("/v1/links"), read("/v1/gateways").catch(() => [])]);
  model.links = links;
  model.knowsLinks = true;
  model.away = new Map(gateways.filter((gateway) => !gateway.connected).map((gateway) => [gateway.name, gateway.seen_at_ms]));
  model.refused = gateways.map((gateway) => gateway.problem).filter(Boolean);
  changed("links");
  keepForLater();
}

let search = null;
/** Slices that went while the list is read: pages that were asked for before still name them. */
const gone = new Set();

/** Read all slices that the filter lets through, page by page; the first page is shown at once. */
export async function loadSlices({ keep = false } = {}) {
  search?.abort();
  search = new AbortController();
  const { signal } = search;
  model.reading = true;
  gone.clear();
  let [after, found] = [null, []];
  try {
    do {
      const limit = after === null ? FIRST_PAGE : PAGE;
      const page = await read(address("/v1/slices", { ...model.filter, after, limit }), { signal });
      found = found.concat(page.items).filter((slice) => !gone.has(slice.name));
      after = page.next ?? null;
      model.cut = after !== null && found.length >= MOST_SLICES;
      // A list that is read again stays whole until the new one is.
      if (!keep || after === null) {
        // Single slices are put into it while further pages are read.
        model.slices = found.slice();
        changed("slices");
      }
    } while (after !== null && !model.cut);
    model.slices = found;
    model.isRead = true;
  } finally {
    if (search.signal === signal) model.reading = false;
  }
  changed("slices");
  keepForLater();
}

export function setFilter(filter) {
  model.filter = { ...model.filter, ...filter };
  return quietly(loadSlices());
}

/** Whether a slice is one that the list shows. */
function isLookedFor(slice) {
  const { name_contains: part, state, link, tenant } = model.filter;
  return (!part || slice.name.includes(part)) && (!state || slice.state === state) && (!tenant || slice.tenant === tenant) &&
    (!link || pathOf(slice).includes(link));
}

/** Put what is now known of one slice into the list; `null` is a slice that is gone. */
export function place(name, slice) {
  const at = model.slices.findIndex((one) => one.name >= name);
  const index = at < 0 ? model.slices.length : at;
  const known = model.slices[index]?.name === name;
  if (slice && isLookedFor(slice)) model.slices.splice(index, known ? 1 : 0, slice);
  else if (known) model.slices.splice(index, 1);
  changed("slices");
}

/** By name of a slice: the newest question about it that is not answered. */
const asked = new Map();
let questions = 0;

/** What is in force at the controller of one slice; it is put into the list, too, unless it is out of date by then. */
export async function loadSlice(name) {
  const question = (questions += 1);
  asked.set(name, question);
  const isNewest = () => asked.get(name) === question;
  try {
    const slice = await read(slicePath(name));
    if (isNewest()) place(name, slice);
    return slice;
  } catch (error) {
    if (error.status === 404 && isNewest()) place(name, null);
    throw error;
  } finally {
    if (isNewest()) asked.delete(name);
  }
}

const dirty = new Set();
let timer = 0;
let lastWhole = 0;
/** More changed slices than this in one go, and the whole list is read again. */
const FEW = 12;

function catchUp() {
  // What is read of one slice is newer than a list that was asked for before.
  if (model.reading) {
    timer = setTimeout(catchUp, 300);
    return;
  }
  timer = 0;
  const names = [...dirty];
  dirty.clear();
  quietly(loadLinks());
  if (names.length <= FEW) {
    for (const name of names) quietly(loadSlice(name).catch((error) => (error.status === 404 ? null : Promise.reject(error))));
  } else if (Date.now() - lastWhole > 3_000) {
    lastWhole = Date.now();
    quietly(loadSlices({ keep: true }));
  } else {
    for (const name of names) dirty.add(name);
    timer = setTimeout(catchUp, 1_000);
  }
}

/** Events kept in memory. */
const MOST_EVENTS = 5000;

function onEvent(event) {
  model.lastEvent = event.number;
  model.events.unshift(event);
  if (model.events.length > MOST_EVENTS) model.events.length = MOST_EVENTS;
  const isEnd = event.slice && event.kind === "slice_gone";
  if (isEnd) {
    dirty.delete(event.slice);
    // An answer that is on its way is of before.
    asked.delete(event.slice);
    if (model.reading) gone.add(event.slice);
  }
  changed("events");
  if (isEnd) {
    place(event.slice, null);
  } else if (event.slice) {
    dirty.add(event.slice);
  }
  if (!timer) timer = setTimeout(catchUp, 300);
}

/** Follow the controller from now on. */
export async function start() {
  restore();
  const signal = new AbortController().signal;
  quietly(loadLinks());
  let first = true;
  while (!(await loadRecentEvents())) {
    first = false;
    await new Promise((done) => setTimeout(done, 2_000));
  }
  follow(model.lastEvent, {
    signal,
    onEvent,
    onOpen() {
      // Whatever was missed while the controller was away.
      if (!first) {
        quietly(loadLinks());
        quietly(loadSlices({ keep: true }));
      }
      first = false;
    },
  });
}

/** The newest events, which the stream goes on from; false if there was no answer. */
async function loadRecentEvents() {
  try {
    const { items } = await read(address("/v1/events", { newest: 1000 }));
    model.events = items.slice().sort((one, other) => other.number - one.number);
    model.lastEvent = model.events[0]?.number ?? 0;
    changed("events");
    return true;
  } catch (error) {
    if (!(error instanceof Away)) throw error;
    return false;
  }
}

function keepForLater() {
  if (!model.isRead || model.reading) return;
  try {
    const slices = model.slices.slice(0, MOST_KEPT);
    sessionStorage.setItem(KEPT, JSON.stringify({ at: new Date(), links: model.links, slices }));
  } catch {
    // A full storage keeps the older data.
  }
}

/** What this tab knew before it was loaded again. */
function restore() {
  try {
    const { at, links, slices } = JSON.parse(sessionStorage.getItem(KEPT)) ?? {};
    if (!links) return;
    model.heard = new Date(at);
    model.links = links;
    model.knowsLinks = true;
    model.slices = slices;
    changed("links");
    changed("slices");
  } catch {
    sessionStorage.removeItem(KEPT);
  }
}

export function forget() {
  sessionStorage.removeItem(KEPT);
}
