// Rates, sizes, times: as people write and read them. The API counts in bit/s, bytes and ns.

const RATES = { name: "rate", base: "bit/s", example: "10 Mbit/s", units: [["Tbit/s", 12], ["Gbit/s", 9], ["Mbit/s", 6], ["kbit/s", 3], ["bit/s", 0]] };
const SIZES = { name: "size", base: "B", example: "1500 B", units: [["GB", 9], ["MB", 6], ["kB", 3], ["B", 0]], more: { KiB: 1024n, MiB: 1024n ** 2n, GiB: 1024n ** 3n, byte: 1n, bytes: 1n } };
const TIMES = { name: "delay", base: "ns", example: "2 ms", units: [["s", 9], ["ms", 6], ["µs", 3], ["ns", 0]], more: { us: 1000n } };

/** Exact as far as JavaScript counts: what is larger is refused. */
const LARGEST = BigInt(Number.MAX_SAFE_INTEGER);

/** A text that is no quantity: `message` says what to write. */
export class NotAQuantity extends Error {}

function parse(text, quantity) {
  const { name, base, example, units, more = {} } = quantity;
  const [, whole, fraction = "", written] = /^([0-9][0-9_]*)(?:\.([0-9]+))?\s*(.*)$/.exec(text.trim()) ?? [];
  if (whole === undefined) throw new NotAQuantity(`“${shortened(text.trim())}” is not a ${name}: write for example ${example}`);
  const unit = written.trim().replace("\u03bc", "µ");
  const symbols = units.map(([symbol]) => symbol).reverse().join(", ");
  if (unit === "") throw new NotAQuantity(`a ${name} needs a unit: one of ${symbols}`);
  const power = units.find(([symbol]) => symbol === unit)?.[1];
  const factor = power === undefined ? more[unit] : 10n ** BigInt(power);
  if (factor === undefined) {
    const meant = units.find(([symbol]) => symbol.toLowerCase() === unit.toLowerCase());
    throw new NotAQuantity(`“${shortened(unit)}” is not a unit of a ${name}: ${meant ? `did you mean ${meant[0]}?` : `use one of ${symbols}`}`);
  }
  const scale = 10n ** BigInt(fraction.length);
  const scaled = BigInt(whole.replaceAll("_", "") + fraction) * factor;
  if (scaled % scale !== 0n) throw new NotAQuantity(`a ${name} is counted in whole ${base}`);
  if (scaled / scale > LARGEST) throw new NotAQuantity(`“${shortened(text)}” is too large for a ${name}`);
  return Number(scaled / scale);
}

const shortened = (text) => (text.length > 40 ? `${text.slice(0, 40)}…` : text);

export const parseRate = (text) => parse(text, RATES);
export const parseSize = (text) => parse(text, SIZES);
export const parseTime = (text) => parse(text, TIMES);

/** Every digit, in the largest unit that is not above the value: what can be read back. */
function exact(value, { units }) {
  const [symbol, power] = units.find(([, digits]) => value >= 10 ** digits) ?? units.at(-1);
  const digits = String(value).padStart(power + 1, "0");
  const [whole, fraction] = [digits.slice(0, digits.length - power), digits.slice(digits.length - power).replace(/0+$/, "")];
  return `${whole}${fraction && `.${fraction}`} ${symbol}`;
}

export const exactRate = (value) => exact(value, RATES);
export const exactSize = (value) => exact(value, SIZES);
export const exactTime = (value) => exact(value, TIMES);

/** Four digits of a whole number, rounded down or up: what is said to be accepted is. */
export const atMost = (value) => Math.floor(value / step(value)) * step(value);
export const atLeast = (value) => Math.ceil(value / step(value)) * step(value);
const step = (value) => 10 ** Math.max(String(Math.trunc(value)).length - 4, 0);

/** Three significant digits, and none less than the whole number has. */
function rounded(value, { units }) {
  if (value === 0) return `0 ${units.at(-1)[0]}`;
  const [symbol, power] = units.find(([, digits]) => value >= 10 ** digits) ?? units.at(-1);
  return `${digits3(value / 10 ** power)} ${symbol}`;
}

function digits3(value) {
  const decimals = Math.min(Math.max(2 - Math.floor(Math.log10(Math.abs(value))), 0), 3);
  const text = value.toFixed(decimals);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

export const rate = (value) => rounded(value, RATES);
export const size = (value) => rounded(value, SIZES);
export const time = (value) => rounded(value, TIMES);

/** "3.2 of 10 Mbit/s": both in the unit of the second. */
export function rateOf(value, whole) {
  const [symbol, power] = RATES.units.find(([, digits]) => whole >= 10 ** digits) ?? RATES.units.at(-1);
  const shown = value === 0 ? "0" : digits3(value / 10 ** power);
  return `${shown} of ${digits3(whole / 10 ** power)} ${symbol}`;
}

/** "0.4 of 2 ms". */
export function timeOf(value, whole) {
  const [symbol, power] = TIMES.units.find(([, digits]) => whole >= 10 ** digits) ?? TIMES.units.at(-1);
  return `${value === 0 ? "0" : digits3(value / 10 ** power)} of ${digits3(whole / 10 ** power)} ${symbol}`;
}

const numbers = new Intl.NumberFormat("en");
export const count = (value) => numbers.format(value);
export const counted = (value, noun) => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;

/** A number per second. */
export const perSecond = (value) => (value === 0 ? "0/s" : `${value >= 100 ? count(Math.round(value)) : digits3(value)}/s`);

export const percent = (ratio) => (ratio === 0 ? "0 %" : `${digits3(ratio * 100)} %`);

/** A moment, in the time of this place: today without its date. */
export function moment(text) {
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) return String(text);
  const today = new Date().toDateString() === at.toDateString();
  const clock = at.toLocaleTimeString("en-GB");
  return today ? clock : `${at.toLocaleDateString("en-CA")} ${clock}`;
}
