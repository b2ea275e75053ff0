// Reports of gateways: what each link counted last, and for how long a gateway has been silent.

import { address, read, request, slicePath } from "./api.js";
import { countersOf, flowsOf } from "./counters.js";
import { changed, linkNamed, model, pathOf } from "./model.js";

/** Reports are asked for so often, ms: gateways count every second. */
const INTERVAL = 1_000;
/** The time between two questions is at least so many times that of their answers. */
const SHARE = 4;
/** A gateway without counters for so long is silent, ms. */
const SILENCE = 10_000;

/** Time between two questions, ms. */
let gap = INTERVAL;

/** Ask for the reports of all links from now on, but not while nobody looks. */
export function startReports() {
  let timer = 0;
  const ask = async () => {
    clearTimeout(timer);
    const begun = performance.now();
    if (!document.hidden) {
      await Promise.all(model.links.map((link) => load(link.name).catch(() => {})));
      gap = Math.max(INTERVAL, (performance.now() - begun) * SHARE);
      changed("counters");
    }
    clearTimeout(timer);
    timer = setTimeout(ask, model.links.length > 0 ? gap : INTERVAL / 4);
  };
  document.addEventListener("visibilitychange", ask);
  ask();
}

async function load(link) {
  const asked = Date.now();
  const known = model.reports.get(link) ?? { at_ms: null, seen: asked, answered: asked, slices: new Map() };
  model.reports.set(link, known);
  const { body, at } = await request("GET", `/v1/links/${encodeURIComponent(link)}/counters`);
  const now = Date.now();
  // The controller's clock says whole seconds: the least difference is nearest.
  model.shift = Math.min(model.shift ?? Infinity, now - at);
  const isKnown = known.at_ms === (body.at_ms ?? null);
  // Clocks of controller and browser are not compared: the controller says how old a report is.
  const age = body.at_ms ? Math.max(0, at - body.at_ms) || 0 : 0;
  model.reports.set(link, { ...body, at_ms: body.at_ms ?? null, seen: isKnown ? known.seen : now - age, answered: now, slices: new Map(body.slices.map((one) => [one.name, one])) });
}

/** Since when (ms, or null) nothing is known of these links, and why; null while all are known. */
export function silence(links) {
  if (model.isAway) return { since: model.heard?.getTime() ?? null, why: "The controller does not answer." };
  const found = links.map(silenceOf).filter(Boolean);
  return found.reduce((oldest, one) => (oldest && oldest.since <= one.since ? oldest : one), null);
}

function silenceOf(name) {
  const gateway = linkNamed(name)?.gateway;
  if (!gateway) return model.knowsLinks ? { gateway, since: null, why: `No gateway has the link ${name}.` } : null;
  const report = model.reports.get(name);
  const why = `Gateway ${gateway} reports no counters.`;
  if (model.away.has(gateway)) return { gateway, since: report?.seen ?? model.away.get(gateway), why };
  if (!report) return null;
  const isSilent = report.answered - report.seen >= SILENCE || Date.now() - report.seen >= SILENCE + 2 * gap;
  return isSilent ? { gateway, since: report.seen, why } : null;
}

/** Since when each silent gateway is silent, by name. */
export const silentGateways = () => new Map(model.links.map((link) => silenceOf(link.name)).filter(Boolean).map(({ gateway, since }) => [gateway, since]));

/** What was counted last of a slice; null if that is not known. */
export function countersFor(slice) {
  const links = pathOf(slice);
  const reports = links.map((link) => model.reports.get(link));
  if (links.length === 0 || !reports.every((report) => report?.at_ms) || silence(links)) return null;
  return countersOf(reports.map((report) => ({ interval_ns: report.interval_ns, ...report.slices.get(slice.name) })));
}

/** Flows of a slice; gateways report them while they are asked for. */
export const loadFlows = async (name) => flowsOf(await read(address(`${slicePath(name)}/counters`, { flows: true })));
