// The last hour of a slice or link: bins of the controller, and each report since a view was opened.

import { address, read, slicePath } from "./api.js";
import { GAP } from "./chart.js";
import { joined } from "./counters.js";
import { DIRECTIONS } from "./measured.js";
import { model } from "./model.js";

/** Reports are kept in the page for so long, ms: as long as the short span of charts. */
const KEPT = 300_000;
/** Most numbers that are kept of the slices of a link. */
const MOST_NUMBERS = 4e6;
/** Bins are read so often, ms: as long as they are. */
const READ = 10_000;

/** Bytes that a layer counts of each frame beside those of L2 without FCS: FCS, preamble and gap; without the head of Ethernet. */
const OVERHEAD = { L1: 24, L2: 0, L3: -14 };
/** As the API writes what a rate counts: `L2 + 8 B`, `L3 + 40 B in ATM cells`. */
const COUNTS = /^(L[123])(?: ([+-]) (\d+) B)?( in ATM cells)?$/;

/** A moment of the controller as one of this browser. */
export const here = (at) => at + (Number.isFinite(model.shift) ? model.shift : 0);

const timesOf = ({ start_ms: starts, length_ms: lengths }) => starts.map((start, index) => ({ from: here(start), to: here(Math.min(start + lengths[index], Date.now() - here(0))) }));

/** Call `read` now and every 10 s while somebody looks; `again()` at once. Returns how to stop, too. */
function repeated(action) {
  const again = () => document.hidden || action().catch(() => {});
  const timer = setInterval(again, READ);
  again();
  return { again, stop: () => clearInterval(timer) };
}

/** Bins until the first report that the page has, then the reports. */
function continued(bins, samples) {
  const first = samples[0]?.from ?? Infinity;
  return [...bins.filter((bin) => bin.from < first).map((bin) => ({ ...bin, to: Math.min(bin.to, first) })), ...samples];
}

/** Add a sample of a report that is not known yet. Where the page missed reports before it, it begins anew: bins have those, and `again` reads them. */
function keep(samples, report, sample, again) {
  const to = here(report.at_ms);
  if (samples.at(-1)?.at_ms === report.at_ms) return;
  const from = Math.max(to - report.interval_ns / 1e6, samples.at(-1)?.to ?? -Infinity);
  if (from - samples.at(-1)?.to > GAP) {
    samples.length = 0;
    again();
  }
  samples.push({ at_ms: report.at_ms, from, to, ...sample });
  while (samples[0].to < to - KEPT) samples.shift();
}

/** Figures of a direction in each bin of a hop. */
function figures(hop, direction) {
  const counted = hop[direction];
  return hop.bins.counted_ns.map((nanoseconds, index) => {
    if (!counted || !(nanoseconds > 0)) return null;
    const seconds = nanoseconds / 1e9;
    const p99 = counted.p99_ns[index];
    return {
      rate_bps: (counted.sent_bytes[index] * 8) / seconds,
      sent_frames_ps: counted.sent_frames[index] / seconds,
      waiting_frames: 0,
      dropped_ps: { all: counted.dropped_frames[index] / seconds },
      delay_ns: p99 === null ? null : { p50: 0, p99, largest: counted.largest_ns[index] },
    };
  });
}

/** The past of a slice as intervals with figures of both directions, from end to end; a time that a gateway of the path does not know is a gap. */
export function spansOf({ hops }) {
  const [first, ...others] = hops.map((hop) => ({ hop, times: timesOf(hop.bins), figures: Object.fromEntries(DIRECTIONS.map((direction) => [direction, figures(hop, direction)])) }));
  if (!first) return [];
  return first.times.map((time, index) => {
    const places = others.map((other) => other.times.findIndex((one) => one.from <= time.from && time.from < one.to));
    if (places.includes(-1)) return null;
    const both = DIRECTIONS.map((direction) => {
      const all = [first.figures[direction][index], ...others.map((other, nth) => other.figures[direction][places[nth]])];
      return [direction, all.includes(null) ? null : joined(all)];
    });
    return { ...time, ...Object.fromEntries(both) };
  }).filter(Boolean);
}

/** The past of a slice, which `add` goes on with; `span()` says how many seconds are shown. */
export function slicePast(name, span, onRead) {
  let bins = [];
  const samples = [];
  const reading = repeated(async () => {
    bins = spansOf(await read(address(`${slicePath(name)}/counters/history`, { seconds: span() })));
    onRead();
  });
  return {
    ...reading,
    add(report, counters) {
      if (report?.at_ms && counters) keep(samples, report, counters, reading.again);
    },
    spans: () => continued(bins, samples),
  };
}

/** The last five minutes of slices that are on the screen, by name: intervals, and rates of both directions. */
export async function loadPasts(names) {
  const found = await read(address("/v1/counters/history", { slices: names.join(","), seconds: KEPT / 1000 }));
  const at = Date.now();
  return new Map(found.map((one) => {
    const spans = spansOf(one);
    const rates = Object.fromEntries(DIRECTIONS.map((direction) => [direction, spans.map((span) => span[direction]?.rate_bps ?? null)]));
    return [one.name, { at, spans, rates }];
  }));
}

/** Bytes that a link counts of frames. The last ATM cell of a frame is taken to be half full: 23.5 of its 48 bytes are padding on average. */
function countedBytes(counts, bytes, frames) {
  const [, layer, sign, added, inCells] = COUNTS.exec(counts) ?? [null, "L2"];
  const all = bytes + (OVERHEAD[layer] + Number(`${sign ?? ""}${added ?? 0}`)) * frames;
  return inCells ? ((all + 23.5 * frames) * 53) / 48 : all;
}

/** Rates in the bytes that a link counts. */
const rateOn = (side, { sent_bytes: bytes, sent_frames: frames }, nanoseconds) => (countedBytes(side.counts, bytes, frames) * 8e9) / nanoseconds;
const dropsOf = (counted) => Object.values(counted?.dropped ?? {}).reduce((sum, number) => sum + number, 0);

/** The past of a link, which `add` goes on with. */
export function linkPast(name, span, onRead) {
  let history = null;
  const samples = [];
  const numbers = new Map();
  const reading = repeated(async () => {
    history = await read(address(`/v1/links/${encodeURIComponent(name)}/counters/history`, { seconds: span() }));
    onRead();
  });
  const rates = (link, report, direction) => {
    const found = new Float32Array(numbers.size);
    for (const [slice, counted] of report.slices) {
      if (counted[direction]) found[numbers.get(slice)] = rateOn(link[direction], counted[direction], report.interval_ns);
    }
    return found;
  };
  return {
    ...reading,
    /** Keep the report of a link as it is now. */
    add(link, report) {
      if (!report?.at_ms || !(report.interval_ns > 0) || samples.at(-1)?.at_ms === report.at_ms) return;
      for (const slice of report.slices.keys()) if (!numbers.has(slice)) numbers.set(slice, numbers.size);
      const sides = DIRECTIONS.map((direction) => [direction, {
        rate_bps: link[direction].rate_bps,
        promised_bps: link[direction].promised?.link_rate_bps ?? 0,
        total: rateOn(link[direction], report[direction], report.interval_ns),
        dropped_ps: (dropsOf(report[direction]) * 1e9) / report.interval_ns,
        rates: rates(link, report, direction),
      }]);
      keep(samples, report, Object.fromEntries(sides), reading.again);
      while (samples.length > 1 && samples.length * numbers.size * 2 > MOST_NUMBERS) samples.shift();
    },
    /** Intervals of a direction, and the slices that sent most, with a rate for each interval; what the others sent is the rest of the total. */
    spans(link, direction) {
      const [side, past] = [link[direction], history?.[direction]];
      const nanoseconds = history?.bins.counted_ns ?? [];
      const bins = history ? timesOf(history.bins).map((time, index) => ({ ...time, index })) : [];
      const at = (counters, index) => (nanoseconds[index] > 0 ? rateOn(side, { sent_bytes: counters.sent_bytes[index], sent_frames: counters.sent_frames[index] }, nanoseconds[index]) : null);
      const times = continued(bins, samples);
      const of = (fromBin, fromSample) => times.map((time) => (time.index === undefined ? fromSample(time[direction]) : fromBin(time.index)));
      return {
        times,
        rate_bps: of((index) => past.rate_bps[index], (one) => one.rate_bps),
        promised_bps: of((index) => past.promised_bps[index], (one) => one.promised_bps),
        total: of((index) => at(past.total, index), (one) => one.total),
        dropped_ps: of((index) => (nanoseconds[index] > 0 ? (past.total.dropped_frames[index] * 1e9) / nanoseconds[index] : null), (one) => one.dropped_ps),
        slices: (past?.slices ?? []).map((slice) => ({ name: slice.name, values: of((index) => at(slice.counters, index), (one) => one.rates[numbers.get(slice.name)] ?? 0) })),
      };
    },
  };
}
