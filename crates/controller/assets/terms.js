// What a slice gets in one direction: each number with its place in the API, its field of the form and its words.

import { wholeNumber } from "./fields.js";
import { flowWords } from "./flow_fields.js";
import { exactRate, exactSize, exactTime, parseRate, parseSize, parseTime, rate, size, time } from "./quantities.js";

const RATE = { show: rate, parse: parseRate, exact: exactRate };
const SIZE = { show: size, parse: parseSize, exact: exactSize };
const TIME = { show: time, parse: parseTime, exact: exactTime };

/** `label` is that of a form, `head` that of a table; a table leaves out what is `rare` where no slice states it. */
export const TERMS = [
  { part: "guarantee", key: "rate_bps", label: "Guaranteed rate", ...RATE, placeholder: "10 Mbit/s" },
  { part: "guarantee", key: "burst_bytes", label: "Burst", ...SIZE },
  { part: "guarantee", key: "delay_ns", label: "Delay at most", head: "Delay objective", ...TIME, placeholder: "2 ms" },
  { part: "guarantee", key: "smallest_frame_bytes", label: "Smallest frame", rare: true, ...SIZE, placeholder: "any" },
  { part: "maximum", key: "rate_bps", label: "Maximum rate", ...RATE, placeholder: "no maximum" },
  { part: "maximum", key: "burst_bytes", label: "Maximum burst", rare: true, ...SIZE },
  { key: "weight", label: "Weight in the excess", head: "Weight", usual: 1, show: String, parse: wholeNumber(1, 65_535), exact: String },
];

/** What `terms` of the API state of a member; undefined where they say nothing. */
export const stated = (terms, { part, key, usual }) => (part ? terms?.[part] : terms)?.[key] ?? usual;

/** [name, words] of all members that `terms` state. */
export function termWords(terms) {
  const words = TERMS.map((one) => [one.head ?? one.label, stated(terms, one), one.show]).filter(([, value]) => value !== undefined && value !== null);
  const flows = flowWords(terms.flows);
  return [...words.map(([name, value, show]) => [name, show(value)]), ...(flows ? [["Flows", flows]] : [])];
}
