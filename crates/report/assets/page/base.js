// What every part of the page needs: the results, numbers as text, elements, colours.

const results = JSON.parse(document.getElementById("results").textContent);

/** An element with attributes and children; texts are always texts, never markup. */
function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    } else if (value !== null && value !== undefined && value !== false) {
      node.setAttribute(name, value === true ? "" : value);
    }
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined)
    .map((child) => (typeof child === "string" ? unbroken(child) : child)));
  return node;
}

/** A number stays on one line with its unit. */
function unbroken(text) {
  return text.replace(/(\d) (%|points|n?s\b|µs|ms²?\b|[kMG]?bit\/s)/g, "$1\u00a0$2").replace(/± (?=\d)/g, "±\u00a0");
}

function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  use.setAttribute("href", `#icon-${name}`);
  svg.setAttribute("aria-hidden", "true");
  svg.append(use);
  return svg;
}

const byId = (id) => document.getElementById(id);

/** `value` with `digits` significant digits, without an exponent. */
function significant(value, digits = 4) {
  if (value === 0) return "0";
  const magnitude = Math.floor(Math.log10(Math.abs(value)));
  const decimals = Math.min(Math.max(digits - 1 - magnitude, 0), 12);
  const text = value.toFixed(decimals);
  return (text.includes(".") ? text.replace(/\.?0+$/, "") : text).replace("-", "−");
}

/** The unit of `units` ([symbol, factor] from large to small) in which `value` is at least 1. */
function unitFor(value, units) {
  return units.find(([, factor]) => Math.abs(value) >= factor) ?? units[units.length - 1];
}

const RATES = [["Gbit/s", 1e9], ["Mbit/s", 1e6], ["kbit/s", 1e3], ["bit/s", 1]];
const TIMES = [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]];

function quantity(value, units, digits) {
  const [symbol, factor] = value === 0 ? units[units.length - 1] : unitFor(value, units);
  return `${significant(value / factor, digits)} ${symbol}`;
}
const rate = (bitsPerSecond, digits) => quantity(bitsPerSecond, RATES, digits);
const time = (ns, digits) => quantity(ns, TIMES, digits);
const percent = (ratio, digits = 3) => `${significant(ratio * 100, digits)} %`;

/** [mean, low, high] as "mean ± half width", in the unit that fits. */
function estimateText(estimate, units) {
  if (!estimate) return "–";
  const [symbol, factor] = estimate[0] === 0 ? units[units.length - 1] : unitFor(estimate[0], units);
  return `${estimateIn(estimate, factor)} ${symbol}`;
}

/**
 * The same in a unit of `factor`, without naming it. Four significant digits at most: what is smaller decides nothing,
 * and data/ has it. An interval below the last digit is left out.
 */
function estimateIn(estimate, factor) {
  if (!estimate) return "–";
  const [mean, low, high] = estimate.map((value) => (value === null ? null : value / factor));
  const half = low === null || high === null ? 0 : (high - low) / 2;
  const magnitude = Math.floor(Math.log10(Math.max(Math.abs(mean), half))) || 0;
  const finest = Math.min(Math.max(3 - magnitude, 0), 6);
  const decimals = half > 0 ? Math.min(Math.max(1 - Math.floor(Math.log10(half)), 0), finest) : finest;
  return half < 10 ** -decimals / 2
    ? significant(mean, 4)
    : `${mean.toFixed(decimals).replace("-", "−")} ± ${half.toFixed(decimals)}`;
}

const PERCENTS = [["%", 0.01]];

const UNITS = {
  "bit/s": { units: RATES, text: rate },
  ns: { units: TIMES, text: time },
  ratio: { units: PERCENTS, text: percent },
};

/** How each measured quantity is written and drawn. */
const METRICS = Object.fromEntries(results.quantities
  .map(({ name, title, unit }) => [name, { title, ...(UNITS[unit] ?? { units: [[unit, 1]], text: significant }) }]));

const scenarioLabel = (scenario) =>
  scenario.title && scenario.title !== scenario.name ? `${scenario.name}: ${scenario.title}` : scenario.name;

/** Fill a `select` with names, choose one, and call back on change. */
function choices(id, labels, chosen, onChange) {
  const select = byId(id);
  if (!select) return;
  select.append(...labels.map((label, index) => element("option", { value: index }, label)));
  select.value = chosen;
  select.addEventListener("change", () => onChange(Number(select.value)));
}

/** Colours of the page as it is shown now: light, dark or on paper. Those of policies and slices never change. */
function theme() {
  const style = getComputedStyle(document.documentElement);
  const names = ["ink", "quiet", "rule", "faint", "paper", "raised", "transient"];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

/** True while the page is being printed. */
const isOnPaper = () => document.documentElement.dataset.theme === "paper";

/** A whole number with its thousands set apart. */
const grouped = (number) => (number < 10000 ? significant(number, 4) : number.toLocaleString("en").replaceAll(",", "\u202f"));

/** What the `index`th policy is drawn with: colour, outline of its marker, dashes of its lines. */
const signOf = (index) => sign(results.signs.policies, index);

/** The same of slices and back ends, which never have the colour of a policy. */
const sliceSign = (index) => sign(results.signs.slices, index);
const sideSign = (index) => sign(results.signs.slices, index);

function sign(colours, index) {
  const { markers, dashes } = results.signs;
  return {
    colour: colours[index % colours.length],
    marker: markers[(index + (markers.length % colours.length ? 0 : Math.floor(index / colours.length))) % markers.length],
    dash: dashes[index % dashes.length] ?? "solid",
  };
}

/** A marker of `radius` as an element of a custom series. */
function markerShape({ marker, colour }, x, y, radius, outline) {
  return {
    type: "path", x, y, shape: { pathData: marker, x: -radius, y: -radius, width: 2 * radius, height: 2 * radius },
    style: { fill: colour, stroke: outline ?? "none", lineWidth: outline ? 1 : 0 },
  };
}

/** The same as the name of a symbol. */
const symbolOf = ({ marker }) => `path://${marker}`;

/** The same as an element of the page. */
function markerIcon({ marker, colour }) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  svg.setAttribute("viewBox", "-1.1 -1.1 2.2 2.2");
  svg.setAttribute("class", "marker");
  svg.setAttribute("aria-hidden", "true");
  path.setAttribute("d", marker);
  path.setAttribute("fill", colour);
  svg.append(path);
  return svg;
}

/** Rows of a table whose first names are not repeated from row to row. */
function groupedTable(head, rows, names) {
  let above = [];
  const body = rows.map((cells) => {
    let same = true;
    const begins = cells.slice(0, names - 1).some((cell, index) => cell !== above[index]);
    const row = element("tr", { class: begins ? "begins" : null }, cells.map((cell, index) => {
      if (index >= names) return cell instanceof Node ? cell : element("td", { class: "number" }, cell);
      same = same && cell === above[index];
      return element("th", { scope: "row" }, same ? "" : cell);
    }));
    above = cells;
    return row;
  });
  return element("table", {}, element("thead", {}, element("tr", {}, head.map((text, index) =>
    element("th", { scope: "col", class: index >= names ? "number" : null }, text)))), element("tbody", {}, body));
}

/** A button that copies the table in `frame` as CSV (RFC 4180). */
function copyButton(frame) {
  const quoted = (cell) => `"${cell.textContent.replaceAll('"', '""')}"`;
  return element("button", { type: "button", class: "copy", on: { click: (event) => {
    const text = [...frame.querySelectorAll("tr")].map((row) => [...row.cells].map(quoted).join(",")).join("\r\n");
    // Pages from a file have no other clipboard in every browser.
    const area = element("textarea", {});
    area.value = text;
    document.body.append(area);
    area.select();
    event.target.textContent = document.execCommand("copy") ? "Copied" : "Not copied";
    area.remove();
  } } }, "Copy as CSV");
}

/** A table of a name column and numbers. */
function numberTable(head, rows) {
  return element("table", {},
    element("thead", {}, element("tr", {}, head.map((text, index) =>
      element("th", { scope: "col", class: index ? "number" : null }, text)))),
    element("tbody", {}, rows.map(([name, ...cells]) =>
      element("tr", {}, element("th", { scope: "row" }, name),
        cells.map((text) => element("td", { class: "number" }, text))))));
}
