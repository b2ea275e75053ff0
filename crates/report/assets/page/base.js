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

/** The same in a unit of `factor`, without naming it. */
function estimateIn(estimate, factor) {
  if (!estimate) return "–";
  const [mean, low, high] = estimate;
  const half = low === null || high === null ? null : (high - low) / 2;
  const decimals = half ? Math.min(Math.max(1 - Math.floor(Math.log10(half / factor)), 0), 6) : 3;
  return half === null || half / factor < 10 ** -decimals / 2
    ? significant(mean / factor, 5)
    : `${(mean / factor).toFixed(decimals)} ± ${(half / factor).toFixed(decimals)}`;
}

const PERCENTS = [["%", 0.01]];

/** How each measured quantity is written and drawn. */
const METRICS = {
  throughput: { title: "throughput", units: RATES, text: rate },
  loss: { title: "loss", units: PERCENTS, text: percent },
  delay_mean: { title: "mean delay", units: TIMES, text: time },
  delay_p50: { title: "median delay", units: TIMES, text: time },
  delay_p90: { title: "90th percentile of delay", units: TIMES, text: time },
  delay_p95: { title: "95th percentile of delay", units: TIMES, text: time },
  delay_p99: { title: "99th percentile of delay", units: TIMES, text: time },
  delay_p999: { title: "99.9th percentile of delay", units: TIMES, text: time },
  delay_p9999: { title: "99.99th percentile of delay", units: TIMES, text: time },
  delay_p99999: { title: "99.999th percentile of delay", units: TIMES, text: time },
  delay_max: { title: "largest delay of a run", units: TIMES, text: time },
  pdv_mean: { title: "PDV: mean delay above the smallest", units: TIMES, text: time },
  pdv_p50: { title: "PDV: median", units: TIMES, text: time },
  pdv_p95: { title: "PDV: 95th percentile", units: TIMES, text: time },
  pdv_p99: { title: "PDV: 99th percentile", units: TIMES, text: time },
  pdv_p999: { title: "PDV: 99.9th percentile", units: TIMES, text: time },
  pdv_max: { title: "PDV: largest of a run", units: TIMES, text: time },
  ipdv_mean: { title: "IPDV: mean absolute difference between consecutive packets", units: TIMES, text: time },
  ipdv_p95: { title: "IPDV: 95th percentile", units: TIMES, text: time },
  ipdv_p99: { title: "IPDV: 99th percentile", units: TIMES, text: time },
  ipdv_p999: { title: "IPDV: 99.9th percentile", units: TIMES, text: time },
  ipdv_max: { title: "IPDV: largest of a run", units: TIMES, text: time },
};

const scenarioLabel = (scenario) =>
  scenario.title && scenario.title !== scenario.name ? `${scenario.name}: ${scenario.title}` : scenario.name;

/** Fill a `select` with names, choose one, and call back on change. */
function choices(id, labels, chosen, onChange) {
  const select = byId(id);
  select.append(...labels.map((label, index) => element("option", { value: index }, label)));
  select.value = chosen;
  select.addEventListener("change", () => onChange(Number(select.value)));
}

/** The scenario with most load that has runs: studies are written from light to heavy. */
function heaviestScenario() {
  for (let scenario = results.scenarios.length - 1; scenario > 0; scenario -= 1) {
    if (results.policies.some((_, policy) => results.cells[policy][scenario])) return scenario;
  }
  return 0;
}

/** Colours of the page as it is shown now: light, dark or on paper. */
function theme() {
  const style = getComputedStyle(document.documentElement);
  const variable = (name) => style.getPropertyValue(`--${name}`).trim();
  const dark = document.documentElement.dataset.theme !== "paper"
    && window.matchMedia("(prefers-color-scheme: dark)").matches;
  return {
    ink: variable("ink"),
    quiet: variable("quiet"),
    rule: variable("rule"),
    faint: variable("faint"),
    raised: variable("raised"),
    transient: variable("transient"),
    palette: dark ? results.colours.dark : results.colours.light,
    slices: dark ? results.colours.slices_dark : results.colours.slices_light,
  };
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
