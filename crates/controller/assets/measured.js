// What gateways count, as rates and bars: throughput against guarantee, delay against bound, drops by reason.

import { spark } from "./chart.js";
import { element, icon, mark, spoken, write } from "./dom.js";
import { count, moment, perSecond, rate, rateOf, time, timeOf } from "./quantities.js";

export const DIRECTIONS = ["forward", "backward"];
export const ARROWS = { forward: "→", backward: "←" };

/** The arrow of a direction, and its word for who cannot see it. */
export const arrow = (direction) => [element("span", { class: "arrow", "aria-hidden": "true" }, ARROWS[direction]), spoken(`${direction}: `)];

/** A bar: filled to `fill` of its width, with a tick at `tick`; both from 0 to 1. */
export function bar() {
  const filled = element("i", { class: "fill" });
  const tick = element("i", { class: "tick" });
  const node = element("span", { class: "bar", "aria-hidden": "true" }, filled, tick);
  return {
    node,
    show(fill, at = null, sign = "") {
      filled.style.transform = `scaleX(${Math.min(Math.max(fill, 0), 1).toFixed(4)})`;
      tick.hidden = at === null;
      if (at !== null) tick.style.left = `${(Math.min(at, 1) * 100).toFixed(2)}%`;
      if (node.dataset.sign !== sign) node.dataset.sign = sign;
    },
  };
}

/** A line for a direction: arrow, bar (or what stands for it) and text. */
function line(direction, track = bar()) {
  const text = element("span", { class: "value" });
  const node = element("div", { class: "line" }, arrow(direction), track.node, text);
  return { node, track, text };
}

const NONE = [];

/** Throughput of a direction over the last five minutes and now, beside what is guaranteed. */
export function throughputLine(direction) {
  const { node, track, text } = line(direction, spark());
  return {
    node,
    show(terms, counted, past) {
      mark(node, "hidden", !terms);
      if (!terms) return;
      const guaranteed = terms.guarantee?.rate_bps ?? 0;
      const sent = counted?.rate_bps ?? null;
      track.show(past?.at ?? 0, past?.spans ?? NONE, past?.rates[direction] ?? NONE, guaranteed);
      const shown = sent === null ? "–" : guaranteed > 0 ? rateOf(sent, guaranteed) : rate(sent);
      write(text, sent === null && guaranteed > 0 ? `– of ${rate(guaranteed)}` : shown);
    },
  };
}

/** The 99th percentile of delay of a direction beside its bound, if the bound applies. */
export function delayLine(direction) {
  const { node, track, text } = line(direction);
  const [measured, note] = [element("span", {}), element("span", {}, element("span", { class: "long" }, ", bound does not apply"), element("span", { class: "short" }, ", no bound"))];
  text.append(measured, note);
  return {
    node,
    show(terms, counted, bound) {
      mark(node, "hidden", !terms);
      if (!terms) return;
      const p99 = counted?.delay_ns?.p99 ?? null;
      const [largest, known] = [counted?.delay_ns?.largest ?? 0, bound !== null && bound !== undefined];
      const beyond = known ? beyondGuarantee(terms, counted) : "";
      track.node.hidden = !known || Boolean(beyond);
      if (known) track.show((p99 ?? 0) / bound, null, largest > bound && !beyond ? "beyond" : "");
      mark(node, "data-sign", beyond ? "void" : null);
      node.title = beyond;
      note.hidden = !beyond;
      const bounded = known && !beyond;
      write(measured, p99 === null ? (bounded ? `– of ${time(bound)}` : "–") : bounded ? timeOf(p99, bound) : time(p99));
    },
  };
}

/** Drops per second of a direction, and the reason of most of them. */
export function dropLine(direction) {
  const text = element("span", { class: "value" });
  const node = element("div", { class: "line" }, arrow(direction), text);
  return {
    node,
    show(terms, counted) {
      mark(node, "hidden", !terms);
      if (!terms) return;
      const reasons = reasonsOf(counted);
      const [main] = reasons;
      mark(node, "data-sign", main && ["attention", "below"].includes(counted.verdict) ? "broken" : null);
      write(text, counted ? (main ? `${perSecond(counted.dropped_frames_ps)} ${reasonWords(main[0])}${reasons.length > 1 ? " …" : ""}` : "none") : "–");
    },
  };
}

/** Reasons of drops and how many per second, most first. */
export const reasonsOf = (counted) =>
  Object.entries(counted?.dropped_ps ?? {}).filter(([, number]) => number > 0).sort(([, one], [, other]) => other - one);

export const reasonWords = (reason) => reason.replaceAll("_", " ");

const STATES = {
  admitted: ["waits", "admitted", "Its capacity is promised; not every gateway of its path has put it in force yet."],
  installed: ["holds", "installed", ""],
  draining: ["drains", "draining", "Removed; its capacity stays promised until its last frames have left."],
};

/** State of a slice as a symbol and a word, unless it is installed. */
export function stateSign() {
  const word = element("span", {});
  const node = element("span", { class: "verdict" });
  let shown = "";
  return {
    node,
    show({ state, problems = [] }) {
      const [problem] = problems;
      node.hidden = state === "installed" && !problem;
      const key = `${state} ${problem?.gateway ?? ""} ${problem?.reason ?? ""}`;
      if (key === shown) return;
      shown = key;
      const [sign, text, why] = problem
        ? ["broken", `refused by ${problem.gateway}`, problem.reason]
        : STATES[state] ?? ["attention", state, ""];
      node.className = `verdict state-${problem ? "refused" : state}`;
      node.title = why;
      node.replaceChildren(icon(sign), word);
      write(word, text);
    },
  };
}

const VERDICTS = {
  holds: ["holds", "holds"],
  above: ["above", "above its guarantee"],
  attention: ["attention", "loses frames"],
  late: ["attention", "beyond its bound"],
  below: ["attention", "below its guarantee"],
  quiet: ["quiet", "no traffic"],
  free: ["quiet", "no guarantee"],
  unknown: ["unknown", "unknown"],
};

/** What the counters of both directions say about the promise; `since` is from when nothing is known of it, ms. */
export function verdictSign() {
  const word = element("span", {});
  const node = element("span", { class: "verdict" });
  let shown = "";
  return {
    node,
    show([verdict, why = () => "", since = null]) {
      node.title = why();
      const key = `${verdict} ${since}`;
      if (key === shown) return;
      shown = key;
      node.hidden = !verdict;
      if (!verdict) return;
      const [sign, words] = VERDICTS[verdict];
      const text = since === null ? words : `${words} since ${moment(since)}`;
      node.className = `verdict is-${verdict}`;
      node.replaceChildren(icon(sign), word);
      write(word, text);
    },
  };
}

/** What was offered, bit/s. Lengths of dropped frames are not counted; those sent say how long a frame is. */
function offeredOf({ rate_bps: sent, sent_frames_ps: frames, dropped_frames_ps: dropped }) {
  return sent + dropped * (frames > 0 ? sent / frames : 12_000);
}

/** Why the bound of delay does not apply: it is one of what sends no more than its guarantee. Empty if it does. */
export function beyondGuarantee(terms, counted) {
  const guaranteed = terms?.guarantee?.rate_bps;
  const offered = counted && guaranteed ? offeredOf(counted) : 0;
  return offered > (guaranteed ?? 0) ? `bound does not apply: sends ${rateOf(offered, guaranteed)}` : "";
}

/**
 * What one interval of a direction says: `holds` (within its guarantee nothing was lost and nothing came later than the bound),
 * `above` (more was offered than is guaranteed), `attention`, `quiet`, `free` (nothing is guaranteed).
 */
export function verdictOf(terms, counted, bound) {
  if (!terms || !counted) return [null];
  if (!terms.guarantee) return ["free", () => "Nothing is guaranteed to it: it takes what others leave."];
  const dropped = counted.dropped_frames_ps;
  if (counted.sent_frames_ps === 0 && dropped === 0) return ["quiet", () => "No frame in the last interval."];
  const sent = counted.rate_bps;
  const guaranteed = terms.guarantee.rate_bps;
  const offered = offeredOf(counted);
  if (offered > guaranteed) {
    if (sent >= guaranteed * 0.98) return ["above", () => `About ${rate(offered)} is offered, more than the guarantee of ${rate(guaranteed)}; the guarantee is used.`];
    return ["below", () => `Only ${rate(sent)} of a guarantee of ${rate(guaranteed)} was sent while ${perSecond(dropped)} frames were dropped.`];
  }
  if (dropped > 0) return ["attention", () => `${perSecond(dropped)} frames were dropped although less than the guarantee was offered; bursts above the guaranteed burst may be the reason.`];
  const largest = counted.delay_ns?.largest ?? 0;
  if (bound && largest > bound) return ["late", () => `A frame took ${time(largest)}, longer than the bound of ${time(bound)}; a burst above the guaranteed burst may be the reason.`];
  return ["holds", () => "Within its guarantee nothing was lost, and nothing came later than the bound."];
}

/** The tiles of the list: their words, and the verdicts that each counts. The last is shown only where there are any. */
export const GROUPS = [
  ["holds", "holds", ["holds"]],
  ["above", "above its guarantee", ["above"]],
  ["breach", "breach", ["below", "late", "attention", "refused"]],
  ["unknown", "unknown", ["unknown"]],
  ["idle", "idle", ["quiet"]],
  ["free", "no guarantee", ["free"]],
];
const GROUP_OF = Object.fromEntries(GROUPS.flatMap(([group, , verdicts]) => verdicts.map((verdict) => [verdict, group])));

/** The group of a slice by its verdict: what a gateway refused is not in force. */
export const groupOf = (slice, [verdict]) => (slice.problems?.length > 0 ? "breach" : GROUP_OF[verdict] ?? "changes");

const ORDER = ["below", "late", "attention", "above", "holds", "free", "quiet"];

/** The verdict of a slice, the reason, and for one that is not known since when. */
export function judged(slice, counters, silent) {
  if (silent) return ["unknown", () => silent.why, silent.since];
  if (slice.state === "draining") return [null];
  return worst(DIRECTIONS.map((direction) => verdictOf(slice[direction], counters?.[direction], slice.bound_ns?.[direction])));
}

/** The more remarkable of the verdicts of the directions. */
function worst(verdicts) {
  const known = verdicts.filter(([verdict]) => verdict);
  return ORDER.map((verdict) => known.find(([one]) => one === verdict)).find(Boolean) ?? [null];
}

/** Totals of frames for a sentence. */
export const frames = (number) => `${count(number)} ${number === 1 ? "frame" : "frames"}`;
