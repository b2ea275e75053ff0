// Charts of estimates: one per slice and metric, scenarios along the axis, one mark per policy.

const registry = [];
const visible = new Set(results.bases.keys());
let firstSlice = 0;

/** Places of the policies that charts show; a policy in several phases is one. */
const shownPolicies = () => [...visible].sort((a, b) => a - b);

/** Places of the slices that are drawn now: of many slices, a few at a time. */
const drawnSlices = () => results.slices.map((_, index) => index).slice(firstSlice, firstSlice + results.slices_drawn);

/** Put a chart into `node`, in the place of a still figure; `build` gives its option for a theme, anew at each drawing. */
function addChart(node, label, build) {
  node.replaceChildren();
  node.setAttribute("role", "img");
  const chart = { node, label, build, instance: null };
  registry.push(chart);
  return chart;
}

/** A chart in each figure of `container`, for the slices that are drawn; `build` gets a theme and the slice's place. */
function sliceCharts(container, label, build) {
  return [...container.querySelectorAll(":scope > figure")].map((figure, place) => addChart(
    figure.querySelector(".chart"),
    () => {
      const slice = results.slices[firstSlice + place];
      figure.hidden = !slice;
      if (!slice) return "";
      const share = slice.share_bits_per_second;
      figure.querySelector("figcaption").replaceChildren(`Slice ${slice.name} `, element("span", { class: "quiet" },
        share ? `(${slice.guaranteed ? "guaranteed" : "best effort"}, ${rate(share)})` : ""));
      return label(slice);
    },
    (shown) => (results.slices[firstSlice + place] ? build(shown, firstSlice + place) : {})));
}

function draw(chart) {
  chart.node.setAttribute("aria-label", chart.label());
  if (chart.node.closest("[hidden]")) return;
  const sentence = chart.sentence?.() ?? "";
  if (sentence || chart.node.classList.contains("sentence")) {
    chart.instance?.dispose();
    chart.instance = null;
    chart.node.classList.toggle("sentence", sentence !== "");
    chart.node.setAttribute("role", sentence ? "note" : "img");
    chart.node.textContent = sentence;
    if (sentence) return;
  }
  chart.instance ??= echarts.init(chart.node, null, { renderer: "svg" });
  const shown = theme();
  chart.instance.setOption({
    animation: false,
    backgroundColor: "transparent",
    textStyle: { fontFamily: getComputedStyle(document.body).fontFamily, color: shown.ink },
    ...chart.build(shown),
  }, { notMerge: true });
}

function drawAll() {
  registry.forEach(draw);
}

function axisStyle(shown) {
  return {
    axisLine: { lineStyle: { color: shown.quiet } },
    axisLabel: { color: shown.quiet, fontSize: 12 },
    nameTextStyle: { color: shown.quiet, fontSize: 12 },
    splitLine: { lineStyle: { color: shown.rule, width: 0.6 } },
  };
}

/**
 * A logarithmic axis with `most` labels at most, at round values: the powers of ten, and 2 and 5 times them where there
 * is room. The library's own labels at both ends overprint their neighbours.
 */
function logAxis(shown, name, { min, max }, text, most) {
  const between = (steps) => {
    const values = [];
    for (let power = 10 ** Math.floor(Math.log10(min)); power <= max * 1.001; power *= 10) {
      values.push(...steps.map((step) => step * power).filter((value) => value >= min * 0.999 && value <= max * 1.001));
    }
    return values;
  };
  const fine = between([1, 2, 5]);
  const powers = between([1]);
  const every = Math.ceil(powers.length / most);
  const labels = fine.length <= most ? fine : powers.length >= 2 ? powers.filter((_, index) => index % every === 0) : [min, max];
  return {
    type: "log", name, min, max, ...axisStyle(shown), ...minorLines(shown),
    axisTick: { customValues: labels },
    axisLabel: { ...axisStyle(shown).axisLabel, customValues: labels, hideOverlap: true, formatter: text },
  };
}

/** Lines between the powers of ten, by which a logarithmic axis is known. */
function minorLines(shown) {
  return {
    minorTick: { show: true, splitNumber: 9, length: 3, lineStyle: { color: shown.rule } },
    minorSplitLine: { show: true, lineStyle: { color: shown.faint, width: 1 } },
  };
}

function tooltipStyle(shown) {
  return {
    backgroundColor: shown.raised,
    borderColor: shown.rule,
    textStyle: { color: shown.ink, fontSize: 13 },
    confine: true,
    extraCssText: "box-shadow: 0 3px 14px rgba(0,0,0,.14); border-radius: 8px;",
  };
}

/** A tooltip's table; names are texts, so no name can become markup. */
function tip(caption, rows) {
  return element("div", { class: "tip" }, element("table", {}, element("caption", {}, caption),
    rows.map(([sign, name, text]) => element("tr", {},
      element("th", { scope: "row" }, sign ? markerIcon(sign) : null, name),
      element("td", {}, text)))));
}

const estimateOf = (policy, scenario, slice, metric) =>
  results.cells[policy][scenario]?.slices[slice]?.[metric] ?? null;

/** The scenario that charts over the phases of a run show. */
let phaseScenario = results.heaviest_scenario;

const baseOf = (policy) => results.policies[policy].base;

/** Place of the policy that judges `base` in a phase; of a study without phases the policy itself. */
const inPhase = (base, phase) => results.policies.findIndex((policy) => policy.base === base && policy.phase === phase);

/**
 * What stands along the x axis: phases in time, scenarios at their numbers, or scenarios by name. `policyOf` gives the
 * policy of a base that is measured there; `from` and `to` are the ends of a phase.
 */
function placesOnX() {
  if (results.phases.length) {
    return results.phases.map((phase, index) => ({
      x: (phase.from + phase.to) / 2, from: phase.from, to: phase.to, label: phase.name, scenario: phaseScenario, policyOf: (base) => inPhase(base, index),
    }));
  }
  const places = results.scenarios.map((scenario, index) => ({ x: index, label: scenario.name, scenario: index, policyOf: (base) => base }));
  return results.x_axis ? places.map((place, index) => ({ ...place, x: results.x_axis.values[index] })).sort((a, b) => a.x - b.x) : places;
}

const isOverTime = () => results.phases.length > 0;
const isByName = () => !isOverTime() && !results.x_axis;

/** The x axis below charts of estimates. */
function estimateAxis(shown, places) {
  const common = { nameLocation: "middle", nameGap: 26 };
  if (isOverTime()) {
    const { name } = results.scenarios[phaseScenario];
    const last = places[places.length - 1].to;
    return { type: "value", min: 0, max: last, name: `time, s${results.scenarios.length > 1 ? ` (scenario ${name})` : ""}`, ...common, ...axisStyle(shown), splitLine: { show: false } };
  }
  if (results.x_axis) {
    const { values, unit } = results.x_axis;
    const [least, most] = [Math.min(...values), Math.max(...values)];
    if (least > 0 && most / least > 20) return { ...logAxis(shown, unit, { min: roundLog(least, false), max: roundLog(most, true) }, grouped, 8), ...common };
    return { type: "value", name: unit, scale: true, ...fitted(least, most, 10), ...common, ...axisStyle(shown), splitLine: { show: false }, axisLabel: { ...axisStyle(shown).axisLabel, hideOverlap: true, formatter: grouped } };
  }
  return { type: "category", data: places.map((place) => place.label), name: "scenario", ...common, ...axisStyle(shown), splitLine: { show: false }, axisTick: { show: false }, axisLabel: { ...axisStyle(shown).axisLabel, interval: 0, hideOverlap: true } };
}

/** The estimates of a base in the order of the places: x, mean, lower and upper end of the interval. */
function estimatesAt(places, base, slice, metric) {
  return places.map((place) => {
    const policy = place.policyOf(base);
    const estimate = policy < 0 ? null : estimateOf(policy, place.scenario, slice, metric);
    return estimate ? [place.x, ...estimate, place.from, place.to] : null;
  }).filter((row) => row !== null);
}

/** Pixels from the middle of a place to the sign of the `index`th of `count` policies, `room` pixels being there. */
const dodge = (index, count, room) => (index - (count - 1) / 2) * Math.min(room / count, 18);

/** A sign at each value with the whisker of its interval. Signs of one place stand beside each other. */
function signSeries(shown, rows, base, index, count, places) {
  const sign = signOf(base);
  return {
    type: "custom", name: results.bases[base], data: rows, z: 4, clip: false, encode: { x: 0, y: 1 },
    renderItem: (params, api) => {
      const at = (value) => api.coord([api.value(0), value]);
      const [middle, y] = at(api.value(1));
      // A logarithmic axis has no place for 0.
      if (!Number.isFinite(y)) return null;
      const { width, y: top, height } = params.coordSys;
      const [from, to] = [api.value(4), api.value(5)].map((time) => (Number.isFinite(time) ? api.coord([time, api.value(1)])[0] : null));
      const room = isByName() ? (0.8 * width) / places.length : from === null ? 0 : 0.7 * (to - from);
      const x = middle + dodge(index, count, room);
      const children = [];
      const line = (x1, y1, x2, y2, lineWidth) => children.push({ type: "line", shape: { x1, y1, x2, y2 }, style: { stroke: sign.colour, lineWidth } });
      // In a phase the value is of all of its time.
      if (from !== null) line(from, y, to, y, 1.6 + 1.1 * (count - 1 - index));
      const [low, high] = [api.value(2), api.value(3)];
      // Repetitions that all agree need no whisker.
      if (Number.isFinite(low) && Number.isFinite(high) && high > low) {
        const inside = (value) => { const pixel = at(value)[1]; return Number.isFinite(pixel) ? Math.min(Math.max(pixel, top), top + height) : top + height; };
        const [lower, upper] = [inside(low), inside(high)];
        line(x, lower, x, upper, 1.6);
        for (const end of [lower, upper]) line(x - 4, end, x + 4, end, 1.6);
      }
      // Over numbers signs of one value lie on each other: the first is the largest.
      children.push(markerShape(sign, x, y, isByName() || isOverTime() ? 5.5 : 5 + Math.min(count - 1 - index, 5) * 0.5, shown.paper));
      return { type: "group", children };
    },
  };
}

/** Over a numeric axis: a line through the values, and the band of their intervals. */
function lineSeries(rows, base, place, count) {
  const { colour, dash } = signOf(base);
  const ends = rows.filter(([, , low, high]) => low !== null && high !== null);
  const band = {
    type: "custom", silent: true, data: [0], z: 1, clip: true,
    renderItem: (params, api) => {
      const floor = params.coordSys.y + params.coordSys.height;
      const at = (x, value) => { const [px, py] = api.coord([x, value]); return [px, Number.isFinite(py) ? py : floor]; };
      const points = [...ends.map(([x, , low]) => at(x, low)), ...ends.map(([x, , , high]) => at(x, high)).reverse()];
      return { type: "polygon", shape: { points }, style: { fill: colour, opacity: 0.16 } };
    },
  };
  return [...(ends.length > 1 ? [band] : []), {
    type: "line", data: rows.map(([x, mean]) => [x, mean]), showSymbol: false, silent: true, z: 2,
    // Earlier lines are wider, so that none hides another that runs along it.
    lineStyle: { color: colour, width: 1.6 + 1.1 * (count - 1 - place), type: dash }, itemStyle: { color: colour },
  }];
}

/** Limits of a quantity for a slice that the shown policies have: guarantees, objectives, proved bounds, margins. */
function limitsOf(metric, slice, scenario = null) {
  return results.limits.filter((limit) => limit.slice === slice
    && (metric === limit.metric || (limit.metric === "delay" && metric.startsWith("delay")) || (limit.metric === "pdv" && metric.startsWith("pdv")))
    && (limit.policy === null || visible.has(results.policies[limit.policy].base))
    && (scenario === null || limit.scenario === null || limit.scenario === scenario));
}

const limitColour = (shown, limit) => (limit.policy === null ? shown.ink : signOf(results.policies[limit.policy].base).colour);

/** Limits as dashed lines with their names: over all places, over a phase, or at the sign of a policy. */
function limitSeries(shown, limits, places, policies) {
  return {
    type: "custom", silent: true, data: [0], z: 3, clip: false,
    renderItem: (params, api) => {
      const { x: left, width, y: top, height } = params.coordSys;
      const children = [];
      const names = [];
      for (const limit of limits) {
        const y = api.coord([places[0].x, limit.value])[1];
        if (!(y >= top - 1 && y <= top + height + 1)) continue;
        const style = { stroke: limitColour(shown, limit), lineWidth: limit.kind === "margin" ? 2 : 1.3, lineDash: limit.kind === "margin" ? null : [6, 4] };
        let [from, to] = [left, left + width];
        const phase = results.phases[limit.phase ?? -1];
        if (phase) {
          [from, to] = [phase.begins, phase.to].map((time) => api.coord([time, limit.value])[0]);
          // A promise that changes is a step.
          const before = limits.find((it) => it.phase === limit.phase - 1 && it.kind === limit.kind && it.policy === limit.policy && it.beyond === limit.beyond);
          if (before) children.push({ type: "line", shape: { x1: from, y1: api.coord([phase.begins, before.value])[1], x2: from, y2: y }, style });
        } else if (limit.kind === "margin") {
          const place = places.find((it) => it.scenario === limit.scenario);
          const index = policies.indexOf(results.policies[limit.policy].base);
          const x = api.coord([place.x, limit.value])[0] + dodge(index, policies.length, isByName() ? (0.8 * width) / places.length : 0);
          [from, to] = [x - 8, x + 8];
        }
        children.push({ type: "line", shape: { x1: from, y1: y, x2: to, y2: y }, style });
        if (limit.label && !names.some((name) => name.label === limit.label)) names.push({ label: limit.label, y: y - 4, x: phase ? from + 3 : to, align: phase && limit.phase < places.length - 1 ? "left" : "right", end: to, colour: style.stroke });
      }
      // Names of lines close to each other stand above each other.
      names.sort((a, b) => b.y - a.y).reduce((below, name) => { name.y = Math.min(name.y, below - 14); return name.y; }, Infinity);
      const texts = names.map(({ label, x, y, align, end, colour }) => ({ type: "text", style: { x: align === "right" ? end : x, y, text: label, align, verticalAlign: "bottom", fill: colour, fontSize: 11.5, stroke: shown.paper, lineWidth: 3 } }));
      return { type: "group", children: [...children, ...texts] };
    },
  };
}

/** The smallest lower end of an interval and the largest upper one, above 0. */
function range(metric, slice, policies) {
  let [smallest, largest] = [Infinity, 0];
  for (const policy of policies) {
    results.scenarios.forEach((_, scenario) => {
      for (const value of estimateOf(policy, scenario, slice, metric) ?? []) {
        if (value !== null && value > 0) {
          smallest = Math.min(smallest, value);
          largest = Math.max(largest, value);
        }
      }
    });
  }
  return [smallest, largest];
}

/** The power of 10, or 2 or 5 times it, next to `value`. */
function roundLog(value, upward) {
  const power = 10 ** Math.floor(Math.log10(value));
  const steps = [1, 2, 5, 10].map((step) => step * power);
  return upward ? steps.find((step) => step >= value * 0.999) : steps.findLast((step) => step <= value * 1.001);
}

/** Round ends of an axis that holds both values, to a part of the power of ten below their distance. */
function fitted(least, most, part = 2) {
  const span = most - least || Math.abs(most) || 1;
  const step = 10 ** Math.floor(Math.log10(span)) / part;
  const end = (value) => Number(value.toPrecision(12));
  return { min: end(Math.floor((least - 0.02 * span) / step) * step), max: end(Math.ceil((most + 0.02 * span) / step) * step) };
}

/** Ends of the y axis: it holds every value and every limit, and is no narrower than the margin of the verdicts. */
function valueBounds(rows, limits, kind) {
  const values = [...rows.flatMap((row) => row.slice(1, 4)), ...limits.map((limit) => limit.value)].filter(Number.isFinite);
  const positive = values.filter((value) => value > 0);
  if (kind === "log" && positive.length) return { type: "log", min: roundLog(Math.min(...positive) * 0.95, false), max: roundLog(Math.max(...positive) * 1.05, true) };
  const [least, most] = [Math.min(...values), Math.max(...values)];
  if (kind === "zero" || !positive.length) return { min: 0, max: positive.length ? fitted(0, most).max : null };
  const floor = Math.max(results.margin_of_throughput * most - (most - least) / 2, 0);
  return fitted(least - floor, most + floor);
}

function estimateOption(shown, slice, metricOf, axisOf) {
  const metric = metricOf();
  const { units, text } = METRICS[metric];
  const policies = shownPolicies();
  const places = placesOnX();
  const limits = limitsOf(metric, slice, isOverTime() ? phaseScenario : null);
  const rows = policies.map((base) => estimatesAt(places, base, slice, metric));
  // Panels share a scale, but for rates, of which one slice may have a hundredth of another's.
  const panels = metric === "throughput" ? [slice] : drawnSlices();
  const all = panels.flatMap((panel) => policies.flatMap((base) => estimatesAt(places, base, panel, metric)));
  const { type, ...bounds } = valueBounds(all, panels.flatMap((panel) => limitsOf(metric, panel)), axisOf());
  const logarithmic = type === "log";
  const [symbol, factor] = unitFor(bounds.max || 1, units);
  // Over several powers of ten no one unit fits.
  const tick = logarithmic ? (value) => text(value, 3) : (value) => significant(value / factor, axisOf() === "fitted" ? 6 : 3);
  const phaseNames = isOverTime() ? [{ type: "line", data: [], silent: true, markLine: {
    silent: true, symbol: "none", lineStyle: { color: shown.rule, width: 1, type: "solid" }, label: { color: shown.quiet, fontSize: 11.5, position: "end", align: "left" },
    data: results.phases.map((phase) => ({ xAxis: phase.begins, label: { formatter: phase.name } })),
  } }] : [];
  return {
    grid: { left: logarithmic ? 64 : 56, right: 16, top: isOverTime() ? 34 : 30, bottom: 44 },
    xAxis: estimateAxis(shown, places),
    yAxis: logarithmic
      ? logAxis(shown, "", bounds, tick, 12)
      : {
        type: "value", name: symbol, nameLocation: "end", nameGap: 10, ...bounds, max: bounds.max ?? factor, ...axisStyle(shown),
        nameTextStyle: { ...axisStyle(shown).nameTextStyle, align: "right", padding: [0, 8, 0, 0] },
        axisLabel: { ...axisStyle(shown).axisLabel, formatter: tick },
      },
    tooltip: {
      ...tooltipStyle(shown), trigger: "item",
      formatter: (item) => {
        const place = places.find((it) => it.x === item.value[0]);
        const where = isOverTime() ? `Phase ${place.label}` : `Scenario ${scenarioLabel(results.scenarios[place.scenario])}`;
        return tip(where, [...policies.map((base) =>
          [signOf(base), results.bases[base], estimateText(estimateOf(place.policyOf(base), place.scenario, slice, metric), units)]),
        ...limits.filter((limit) => limit.label).map((limit) => [null, limit.label, ""])]);
      },
    },
    series: [
      ...(results.x_axis && !isOverTime() ? policies.flatMap((base, index) => lineSeries(rows[index], base, index, policies.length)) : []),
      ...policies.map((base, index) => signSeries(shown, rows[index], base, index, policies.length, places)),
      limitSeries(shown, limits, places, policies), ...phaseNames,
    ],
  };
}

/** The estimates as a table, for eyes and readers that charts do not serve. */
function estimateNumbers(place, metricOf) {
  const body = element("div", { class: "table-frame" });
  return element("details", { class: "numbers", on: { toggle: () => {
    const [metric, slice] = [metricOf(), firstSlice + place];
    if (!results.slices[slice]) return;
    const [symbol, factor] = unitFor(range(metric, slice, results.policies.keys())[1] || 1, METRICS[metric].units);
    body.replaceChildren(numberTable([`${METRICS[metric].title}, ${symbol}`, ...results.scenarios.map((s) => `scenario ${s.name}`)],
      results.policies.map((policy, index) => [policy.name, ...results.scenarios.map((_, scenario) =>
        estimateIn(estimateOf(index, scenario, slice, metric), factor))])), copyButton(body));
  } } }, element("summary", {}, "Numbers"), body);
}

/** Fill tables that are open anew. */
function refreshNumbers(within) {
  within.querySelectorAll(".charts details.numbers[open]").forEach((node) => node.dispatchEvent(new Event("toggle")));
}

function showEstimates(name, metricOf, axisOf) {
  const container = document.querySelector(`[data-metric="${name}"]`);
  if (!container) return [];
  container.querySelectorAll(":scope > figure").forEach((figure, place) => figure.append(estimateNumbers(place, metricOf)));
  const charts = sliceCharts(container,
    (slice) => `${METRICS[metricOf()].title} of slice ${slice.name} by scenario and policy; the numbers are in the table below`,
    (shown, slice) => estimateOption(shown, slice, metricOf, axisOf));
  charts.forEach((chart, place) => { chart.sentence = () => allZero(firstSlice + place, metricOf()); });
  return charts;
}

/** In place of a figure in which everything is 0. */
function allZero(slice, metric) {
  const values = results.policies.flatMap((_, policy) => results.scenarios.map((_, scenario) => estimateOf(policy, scenario, slice, metric)?.[0])).filter((value) => value !== undefined);
  if (!results.slices[slice] || !values.length || values.some((value) => value !== 0)) return "";
  const limit = limitsOf(metric, slice).find((it) => it.kind === "objective");
  return `The ${METRICS[metric].title} is 0 under every policy in every scenario${limit ? ` (${limit.label})` : ""}.`;
}

/** Which policies the charts show, and of many slices which: one row for all charts. */
function showLegend() {
  const legend = byId("legend");
  const refresh = () => legend.querySelectorAll("button[data-policy]").forEach((button) =>
    button.setAttribute("aria-pressed", String(visible.has(Number(button.dataset.policy)))));
  const toggle = (policy) => {
    if (visible.has(policy) && visible.size > 1) visible.delete(policy);
    else visible.add(policy);
    refresh();
    drawAll();
  };
  if (results.slices.length > results.slices_drawn) legend.append(sliceChoice());
  if (isOverTime() && results.scenarios.length > 1) {
    legend.append(element("label", { class: "slice-choice" }, "Scenario ", element("select", { id: "phase-scenario" })));
    choices("phase-scenario", results.scenarios.map(scenarioLabel), phaseScenario, (chosen) => {
      phaseScenario = chosen;
      drawAll();
    });
  }
  if (results.bases.length > 1) {
    legend.append(...results.bases.map((name, index) =>
      element("button", { type: "button", "data-policy": index, on: { click: () => toggle(index) } },
        markerIcon(signOf(index)), name)));
    legend.append(element("button", { type: "button", class: "all", on: { click: () => {
      results.bases.forEach((_, index) => visible.add(index));
      refresh();
      drawAll();
    } } }, "all"));
  }
  legend.hidden = !legend.childElementCount;
  refresh();
  // What is scrolled to must not end up below the bar.
  const measure = () => document.documentElement.style.setProperty("--bar-height", `${legend.parentElement.offsetHeight}px`);
  measure();
  window.addEventListener("resize", measure);
}

/** A choice of the slices that are drawn. */
function sliceChoice() {
  const firsts = results.slices.map((_, index) => index).filter((index) => index % results.slices_drawn === 0);
  const last = (first) => Math.min(first + results.slices_drawn, results.slices.length);
  const select = element("select", { on: { change: (event) => {
    firstSlice = Number(event.target.value);
    document.querySelectorAll(".charted figure").forEach((figure) => { figure.hidden = false; });
    drawAll();
    refreshNumbers(document);
  } } }, firsts.map((first) => element("option", { value: first }, `${first + 1} to ${last(first)} of ${results.slices.length}`)));
  return element("label", { class: "slice-choice" }, "Slices ", select);
}
