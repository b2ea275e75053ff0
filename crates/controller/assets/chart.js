// A line over the last minutes, drawn as it comes.

import { drawn, element, mark, write } from "./dom.js";

const [WIDTH, HEIGHT] = [600, 150];
const [LEFT, RIGHT, TOP, BOTTOM] = [4, 4, 14, 20];

/**
 * Lines `names` over the last `seconds`, and a level (guarantee, bound) for each. `text` writes a value.
 * `add(at, values, levels, voids)` draws another moment; a value may be null. A level with a reason in `voids` does not apply now.
 */
export function chart({ caption, names, levelName, seconds, text }) {
  const lines = names.map((_, index) => drawn("path", { class: `curve curve-${index}`, fill: "none" }));
  const levels = names.map((_, index) => drawn("path", { class: `level curve-${index}`, fill: "none" }));
  const top = drawn("text", { class: "tick-text", x: LEFT, y: TOP - 4 });
  const grid = drawn("path", { class: "grid", d: `M${LEFT} ${TOP}H${WIDTH - RIGHT}M${LEFT} ${HEIGHT - BOTTOM}H${WIDTH - RIGHT}` });
  const from = drawn("text", { class: "tick-text", x: LEFT, y: HEIGHT - 5 }, `${seconds / 60} min ago`);
  const to = drawn("text", { class: "tick-text end", x: WIDTH - RIGHT, y: HEIGHT - 5 }, "now");
  const svg = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "plot", "aria-hidden": "true" }, grid, levels, lines, top, from, to);
  const values = names.map((name, index) => {
    const value = element("span", { class: "value" }, "–");
    return { value, node: element("span", { class: "key-entry" }, drawn("svg", { class: "key-line", viewBox: "0 0 20 10", "aria-hidden": "true" }, drawn("path", { class: `curve curve-${index}`, d: "M1 5H19" })), ` ${name}: `, value) };
  });
  const note = element("span", { class: "key-entry quiet" }, drawn("svg", { class: "key-line", viewBox: "0 0 20 10", "aria-hidden": "true" }, drawn("path", { class: "level", d: "M1 5H19" })), ` ${levelName}`);
  const node = element("figure", {}, element("figcaption", {}, caption), svg, element("p", { class: "key" }, values.map((one) => one.node), note));
  let samples = [];
  return {
    node,
    add(at, now, limits, voids = []) {
      samples.push({ at, now });
      samples = samples.filter((sample) => sample.at > at - seconds * 1000);
      const most = Math.max(...samples.flatMap((sample) => sample.now.map((value) => value ?? 0)), ...limits.map((limit) => limit ?? 0), 1) * 1.08;
      const x = (moment) => (WIDTH - RIGHT - ((at - moment) / (seconds * 1000)) * (WIDTH - LEFT - RIGHT)).toFixed(1);
      const y = (value) => (HEIGHT - BOTTOM - (value / most) * (HEIGHT - TOP - BOTTOM)).toFixed(1);
      lines.forEach((line, index) => line.setAttribute("d", path(samples, index, x, y)));
      levels.forEach((level, index) => level.setAttribute("d", limits[index] === null || limits[index] === undefined ? "" : `M${LEFT} ${y(limits[index])}H${WIDTH - RIGHT}`));
      write(top, text(most));
      levels.forEach((level, index) => mark(level, "data-sign", voids[index] ? "void" : null));
      now.forEach((value, index) => write(values[index].value, `${value === null ? "–" : text(value)}${voids[index] ? ` (${voids[index]})` : ""}`));
    },
  };
}

/** A line through the values, interrupted where there is none. */
function path(samples, index, x, y) {
  let draws = false;
  return samples.map(({ at, now }) => {
    const value = now[index];
    const command = value === null ? "" : `${draws ? "L" : "M"}${x(at)} ${y(value)}`;
    draws = value !== null;
    return command;
  }).join("");
}
