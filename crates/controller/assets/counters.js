// What gateways posted of a slice, as figures per second for each direction, from end to end.

import { DIRECTIONS } from "./measured.js";

/** Frames of a direction that a gateway does not name. */
const NOTHING = { sent_frames: 0, sent_bytes: 0 };

/**
 * Figures of both directions of what was counted at each gateway of the path. Throughput is that of the gateway that sent least; drops
 * and delays add up (a sum of percentiles is at least the percentile of the sum for delays that are long together).
 */
export const countersOf = (hops) => Object.fromEntries(DIRECTIONS.map((direction) => [direction, joined(hops.map((hop) => figures(hop, direction)).filter(Boolean))]));

/** Flows of the first gateway of the path that reports them. */
export function flowsOf({ hops }) {
  const { flows = [], interval_ns: interval } = hops.find((hop) => hop.flows?.length > 0) ?? {};
  return flows.map((flow) => ({ ...flow, rate_bps: (flow.bytes * 8e9) / interval, frames_ps: (flow.frames * 1e9) / interval }));
}

function figures(hop, direction) {
  const counted = hop[direction] ?? NOTHING;
  if (!(hop.interval_ns > 0)) return null;
  const seconds = hop.interval_ns / 1e9;
  return {
    rate_bps: (counted.sent_bytes * 8) / seconds,
    sent_frames_ps: counted.sent_frames / seconds,
    waiting_frames: counted.waiting_frames ?? 0,
    dropped_ps: Object.fromEntries(Object.entries(counted.dropped ?? {}).map(([reason, number]) => [reason, number / seconds])),
    delay_ns: counted.delay_ns ?? null,
  };
}

/** What was counted at each gateway, as from end to end. */
export function joined(hops) {
  if (hops.length === 0) return null;
  const least = hops.reduce((one, other) => (other.rate_bps < one.rate_bps ? other : one));
  const dropped = {};
  for (const hop of hops) {
    for (const [reason, number] of Object.entries(hop.dropped_ps)) dropped[reason] = (dropped[reason] ?? 0) + number;
  }
  const delays = hops.map((hop) => hop.delay_ns).filter(Boolean);
  const sum = (name) => delays.reduce((total, delay) => total + delay[name], 0);
  return {
    ...least,
    waiting_frames: hops.reduce((total, hop) => total + hop.waiting_frames, 0),
    dropped_ps: dropped,
    dropped_frames_ps: Object.values(dropped).reduce((total, number) => total + number, 0),
    delay_ns: delays.length > 0 ? { p50: sum("p50"), p99: sum("p99"), largest: sum("largest") } : null,
  };
}
