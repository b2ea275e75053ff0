// A chart over time: lines or a stack, levels that they are held against, and a strip of drops on the same axis.

import { drawn, element, identity, mark, spoken, write } from "./dom.js";
import { moment, perSecond } from "./quantities.js";

const [HEIGHT, TOP, AXIS, STRIP, SPACE] = [220, 10, 22, 15, 8];
/** Least distance of labels at the right end, px. */
const LABEL = 15;
/** Two intervals with more than this between them are apart: nothing is known of the time between, ms. */
export const GAP = 2_500;
/** An interval that ended longer ago is not of now, ms. */
const RECENT = 30_000;
const SPANS = [["5 min", 300], ["1 h", 3_600]];

/** Time that charts show, s. */
let seconds = SPANS[0][1];
export const shownSeconds = () => seconds;

/** Buttons that choose the time that charts show. */
export function spanButtons(onChoose) {
  const nodes = SPANS.map(([text, length]) => {
    const node = element("button", { type: "button", on: { click: () => choose(length) } }, text);
    return { node, length };
  });
  const press = () => nodes.forEach(({ node, length }) => node.setAttribute("aria-pressed", String(length === seconds)));
  const choose = (length) => {
    seconds = length;
    press();
    onChoose();
  };
  press();
  return element("div", { class: "spans", role: "group", "aria-label": "Time shown" }, nodes.map((one) => one.node));
}

/**
 * `text` writes a value. `draw(now, data)` shows `data.times` (`{from, to}` of each interval, ms, oldest first), and for each of
 * `data.series`, `data.levels` and `data.drops` its `name`, `kind` (a class) and `values`, one for each interval; null is not known.
 * `detail` of a series may say more about an interval.
 */
export function chart({ caption, label = caption, text, isLog = false, isStacked = false }) {
  const svg = drawn("svg", { class: "plot", tabindex: "0", role: "img", "aria-describedby": identity("help") });
  const key = element("ul", { class: "key" });
  const live = spoken("");
  mark(live, "aria-live", "polite");
  const help = element("p", { class: "spoken", id: svg.getAttribute("aria-describedby") }, "Left and right arrow read the values at a moment, Escape those of now.");
  const node = element("figure", { class: "chart" }, element("figcaption", {}, caption), svg, key, help, live);
  const place = { grid: drawn("g"), marks: drawn("g"), labels: drawn("g"), cross: drawn("path", { class: "cross" }) };
  svg.append(place.grid, place.marks, place.labels, place.cross);
  mark(svg, "aria-label", label);
  let data = null;
  let at = null;
  let scales = null;

  const index = () => {
    const last = data.times.length - 1;
    if (at === null) return last;
    const found = data.times.findIndex((time) => time.to > at);
    return found < 0 ? last : found;
  };
  const read = (says) => {
    if (!data || data.times.length === 0) return;
    const found = index();
    const { from, to } = data.times[found];
    const entries = [...data.series, ...data.levels, ...data.drops.map((one) => ({ ...one, text: perSecond }))].map((one) => ({ ...one, words: `${wordsOf(one, found, text)}` }));
    showKey(key, at === null && Date.now() - to < RECENT ? "now" : moment((from + to) / 2), entries);
    if (scales) mark(place.cross, "d", at === null ? "" : `M${scales.x((from + to) / 2).toFixed(1)} ${TOP}V${scales.bottom}`);
    if (says) write(live, `${moment((from + to) / 2)}: ${entries.map((one) => `${one.name} ${one.words}`).join(", ")}`);
  };
  const point = (event) => {
    if (!scales) return;
    at = scales.moment(event.clientX - svg.getBoundingClientRect().left);
    read(false);
  };
  const leave = () => {
    at = null;
    read(false);
  };
  svg.addEventListener("pointermove", point);
  svg.addEventListener("pointerdown", point);
  svg.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && leave());
  svg.addEventListener("blur", leave);
  svg.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10, Home: -Infinity, End: Infinity };
    if (!data || data.times.length === 0 || !(event.key in steps || event.key === "Escape")) return;
    event.preventDefault();
    if (event.key === "Escape") return leave();
    const { from, to } = data.times[Math.max(0, Math.min(index() + steps[event.key], data.times.length - 1))];
    at = (from + to) / 2;
    read(true);
  });
  return {
    node,
    draw(now, shown) {
      data = within(shown, now - seconds * 1000);
      const width = svg.clientWidth;
      // What is far from view is not drawn.
      const box = svg.getBoundingClientRect();
      if (width > 0 && box.bottom > -innerHeight && box.top < 2 * innerHeight) {
        scales = scalesOf(width, now, data, { isLog, isStacked });
        paint(svg, place, data, scales, { text, isStacked });
      }
      read(false);
    },
  };
}

function wordsOf({ values, text: own, detail }, index, text) {
  const value = values[index] ?? null;
  return `${value === null ? "–" : (own ?? text)(value)}${detail?.(index) ?? ""}`;
}

/** The intervals that end after `from`. */
function within({ times, series, levels, drops }, from) {
  const first = times.findIndex((time) => time.to > from);
  const skipped = first < 0 ? times.length : first;
  const cut = (all) => all.map((one) => ({ ...one, values: one.values.slice(skipped), detail: one.detail && ((index) => one.detail(index + skipped)) }));
  return { times: times.slice(skipped), series: cut(series), levels: cut(levels), drops: cut(drops) };
}

/** Values under each interval of a series in a stack, and at its top. */
function stacked(series, length) {
  const sums = new Array(length).fill(0);
  return series.map((one) => one.values.map((value, index) => {
    const base = sums[index];
    sums[index] += value ?? 0;
    return value === null ? null : [base, sums[index]];
  }));
}

function scalesOf(width, now, data, { isLog, isStacked }) {
  const isNarrow = width < 640;
  const [left, right] = isNarrow ? [76, width - 92] : [80, width - 150];
  const [base, bottom] = [HEIGHT, HEIGHT + SPACE + data.drops.length * STRIP];
  const begin = now - seconds * 1000;
  const values = [...(isStacked ? stacked(data.series, data.times.length).flat().map((one) => one?.[1]) : data.series.flatMap((one) => one.values)), ...data.levels.flatMap((one) => one.values)].filter((value) => value > 0);
  const most = values.reduce((one, other) => Math.max(one, other), 0);
  const x = (at) => Math.max(left, left + ((at - begin) / (seconds * 1000)) * (right - left));
  const scale = isLog ? logarithmic(values, most) : linear(most);
  const y = (value) => base - Math.min(Math.max(scale.share(value), 0), 1) * (base - TOP);
  return { left, right, base, bottom, width, begin, now, x, y, ticks: scale.ticks, isNarrow, moment: (px) => begin + ((px - left) / (right - left)) * seconds * 1000 };
}

function linear(most) {
  const whole = most > 0 ? most * 1.06 : 1;
  const power = 10 ** Math.floor(Math.log10(whole / 4));
  const step = [1, 2, 5, 10].map((times) => times * power).find((one) => whole / one <= 6);
  const ticks = [];
  for (let value = 0; value <= whole; value += step) ticks.push(value);
  return { share: (value) => value / whole, ticks: most > 0 ? ticks : [0] };
}

function logarithmic(values, most) {
  const least = values.reduce((one, other) => Math.min(one, other), most || 1);
  const high = Math.ceil(Math.log10((most || 1e6) * 1.05));
  const low = Math.min(Math.floor(Math.log10(least || 1e3)), high - 2);
  const ticks = Array.from({ length: high - low + 1 }, (_, index) => 10 ** (low + index));
  return { share: (value) => (Math.log10(Math.max(value, 10 ** low)) - low) / (high - low), ticks };
}

/** Runs of intervals without a gap between them, of which something is known. */
function runs(times, values) {
  const found = [];
  times.forEach((time, index) => {
    if (values[index] === null || values[index] === undefined) return;
    const run = found.at(-1);
    const isNext = run && run.at(-1) === index - 1 && time.from - times[index - 1].to <= GAP;
    if (isNext) run.push(index);
    else found.push([index]);
  });
  return found;
}

/** A step for each interval: its value lasted from its begin to its end. */
function steps(times, values, x, y) {
  return runs(times, values).map((run) => run.map((index, nth) => {
    const from = nth === 0 ? times[index].from : times[index - 1].to;
    return `${nth === 0 ? "M" : "L"}${x(from).toFixed(1)} ${y(values[index]).toFixed(1)}H${x(times[index].to).toFixed(1)}`;
  }).join("")).join("");
}

/** The area between the bottom and the top of each interval. */
function areas(times, pairs, x, y) {
  return runs(times, pairs).map((run) => {
    const edge = (side, order) => order.map((index) => {
      const from = index === run[0] ? times[index].from : times[index - 1].to;
      const ends = [x(from), x(times[index].to)];
      return (side === 1 ? ends : ends.reverse()).map((one) => `${one.toFixed(1)} ${y(pairs[index][side]).toFixed(1)}`).join("L");
    }).join("L");
    return `M${edge(1, run)}L${edge(0, run.toReversed())}Z`;
  }).join("");
}

function paint(svg, place, data, scales, { text, isStacked }) {
  const { left, right, base, bottom, width, x, y } = scales;
  mark(svg, "viewBox", `0 0 ${width} ${bottom + AXIS}`);
  mark(svg, "height", bottom + AXIS);
  const pairs = isStacked ? stacked(data.series, data.times.length) : [];
  place.grid.replaceChildren(...axes(scales, text));
  place.marks.replaceChildren(
    ...data.series.map((one, index) => drawn("path", { class: `${isStacked ? "area" : "curve"} ${one.kind}`, "data-name": one.name, d: isStacked ? areas(data.times, pairs[index], x, y) : steps(data.times, one.values, x, y) })),
    ...data.levels.map((one) => drawn("path", { class: `level ${one.kind}`, "data-name": one.name, d: steps(data.times, one.values, x, y) })),
    ...data.drops.flatMap((one, index) => strip(one, index, data.times, scales)),
  );
  const last = data.times.length - 1;
  const isNow = last >= 0 && scales.now - data.times[last].to < RECENT;
  const ends = isNow ? [
    ...data.series.map((one, index) => ({ ...one, value: isStacked ? middle(pairs[index][last]) : one.values[last] ?? null })),
    ...data.levels.map((one) => ({ ...one, value: one.values[last] ?? null, isLevel: true })),
  ].filter((one) => one.value !== null && one.value !== undefined) : [];
  place.labels.replaceChildren(...labels(ends, scales, right, base, left));
}

/** A small line of the last five minutes, with a level. */
export function spark() {
  const [width, height, length] = [96, 20, 300_000];
  const [line, level] = [drawn("path", { class: "curve" }), drawn("path", { class: "level" })];
  const node = drawn("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" }, level, line);
  let shown = null;
  return {
    node,
    /** `times` and `values` as those of a chart; nothing is drawn where they are those drawn before. */
    show(now, times, values, limit) {
      if (shown === values) return;
      shown = values;
      const most = Math.max(limit * 1.25, ...values.map((value) => value ?? 0), 1);
      const x = (at) => Math.max(0, width - ((now - at) / length) * width);
      const y = (value) => height - 1 - (value / most) * (height - 2);
      mark(line, "d", steps(times, values, x, y));
      mark(level, "d", limit > 0 && times.length > 0 ? `M${x(times[0].from).toFixed(1)} ${y(limit).toFixed(1)}H${width}` : "");
    },
  };
}

const middle = (pair) => (pair ? (pair[0] + pair[1]) / 2 : null);

/** Grid and ticks: values at the left, times of day below. */
function axes({ left, right, base, bottom, x, y, ticks, begin, now, isNarrow }, text) {
  const nodes = ticks.flatMap((value) => [
    drawn("path", { class: "grid", d: `M${left} ${y(value).toFixed(1)}H${right}` }),
    drawn("text", { class: "tick-text end", x: left - 6, y: y(value) + 4, "data-value": value }, text(value)),
  ]);
  const step = (seconds <= 300 ? 60 : 600) * (isNarrow ? 2 : 1) * 1000;
  for (let at = Math.ceil(begin / step) * step; at <= now; at += step) {
    const place = x(at).toFixed(1);
    nodes.push(drawn("path", { class: "grid", d: `M${place} ${TOP}V${bottom}` }), drawn("text", { class: "tick-text middle", x: place, y: bottom + 16 }, clock(at)));
  }
  nodes.push(drawn("path", { class: "axis", d: `M${left} ${base}H${right}` }));
  return nodes;
}

const clock = (at) => new Date(at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });

/** Drops per second in a strip of its own below the plot: full height is the most of the time shown. */
function strip({ name, short = "drops", kind, values }, index, times, { base, left, right, x }) {
  const most = values.reduce((one, other) => Math.max(one, other ?? 0), 0);
  const foot = base + SPACE + (index + 1) * STRIP;
  const y = (value) => foot - (most > 0 ? Math.max(value > 0 ? 2 : 0, (value / most) * (STRIP - 4)) : 0);
  const pairs = values.map((value) => (value > 0 ? [0, value] : null));
  return [
    drawn("path", { class: "grid", d: `M${left} ${foot}H${right}` }),
    drawn("path", { class: `drops ${kind}`, "data-name": name, d: areas(times, pairs, x, y) }),
    drawn("text", { class: "tick-text end", x: left - 6, y: foot - 3 }, short),
    drawn("text", { class: "tick-text", x: right + 8, y: foot - 3 }, most > 0 ? `up to ${perSecond(most)}` : values.some((value) => value !== null) ? "none" : "–"),
  ];
}

/** Names at the right end of what they name, moved apart where they would overlap. */
function labels(ends, { y, width, isNarrow }, right, base) {
  const named = ends.map((one) => ({ ...one, label: isNarrow ? one.short ?? one.name : one.name, end: y(one.value), at: y(one.value) }));
  const isFirst = (one, index) => named.findIndex((other) => other.label === one.label && other.end === one.end) === index;
  const all = named.filter(isFirst).sort((one, other) => one.at - other.at);
  const [top, foot] = [TOP + 2, base - 4];
  all.forEach((one, index) => { one.at = Math.max(one.at, index > 0 ? all[index - 1].at + LABEL : top); });
  for (let index = all.length - 1; index >= 0; index -= 1) all[index].at = Math.min(all[index].at, index < all.length - 1 ? all[index + 1].at - LABEL : foot);
  const room = Math.floor((width - right - 22) / 6.6);
  return all.flatMap(({ label, kind, isLevel, end, at }) => [
    drawn("path", { class: `leader ${isLevel ? "" : kind}`, d: `M${right + 1} ${end.toFixed(1)}L${right + 12} ${at.toFixed(1)}` }),
    drawn("text", { class: "label", x: right + 15, y: at + 4 }, label.length > room ? `${label.slice(0, Math.max(room - 1, 1))}…` : label),
  ]);
}

/** What each colour and line is, and its value now or under the crosshair. */
function showKey(key, when, entries) {
  const wanted = entries.map((one) => `${one.kind} ${one.name}`).join("|");
  if (key.dataset.shown !== wanted) {
    key.dataset.shown = wanted;
    key.replaceChildren(element("li", { class: "when" }), ...entries.map(({ name, kind }) => element("li", {},
      drawn("svg", { class: "key-line", viewBox: "0 0 20 10", "aria-hidden": "true" }, drawn("path", { class: `sample ${kind}`, d: "M1 5H19" })), ` ${name}: `, element("span", { class: "value" }))));
  }
  write(key.firstChild, when);
  entries.forEach((one, index) => write(key.children[index + 1].lastChild, one.words));
}
