// Charts of estimates: one per slice and metric, scenarios along the axis, one mark per policy.

const registry = [];
const visible = new Set(results.policies.map((_, index) => index));
let firstSlice = 0;

/** Places of the policies that charts show. */
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
  results.cells[policy][scenario]?.slices[slice][metric] ?? null;

/** Markers and whiskers of one policy. */
function marks(shown, metric, slice, policy, place, count, withPoints) {
  const data = results.scenarios.map((_, scenario) => {
    const estimate = estimateOf(policy, scenario, slice, metric);
    return estimate ? [scenario, estimate[0], estimate[1], estimate[2]] : null;
  }).filter((row) => row !== null);
  const sign = signOf(policy);
  return {
    type: "custom",
    name: results.policies[policy].name,
    data,
    z: 3,
    clip: false,
    encode: { x: 0, y: [1, 2, 3] },
    renderItem: (params, api) => {
      const layout = api.barLayout({ ...BAR_LAYOUT, count })[place];
      const offset = layout?.offsetCenter ?? 0;
      const at = (value) => api.coord([api.value(0), value]);
      const [x, y] = at(api.value(1));
      // A logarithmic axis has no place for 0.
      if (!Number.isFinite(y)) return null;
      const children = [];
      let highest = y;
      const [low, high] = [api.value(2), api.value(3)];
      // Repetitions that all agree need no whisker.
      if (Number.isFinite(low) && Number.isFinite(high) && high > low) {
        const floor = params.coordSys.y + params.coordSys.height;
        const bottom = low > 0 ? Math.min(at(low)[1], floor) : floor;
        const top = at(high)[1];
        highest = Math.min(y, top);
        const style = { stroke: withPoints ? sign.colour : shown.ink, lineWidth: withPoints ? 1.6 : 1.1 };
        const cap = Math.min(4, 120 / results.scenarios.length / count);
        const line = (x1, y1, x2, y2) => children.push({ type: "line", shape: { x1, y1, x2, y2 }, style });
        line(x + offset, bottom, x + offset, top);
        line(x + offset - cap, top, x + offset + cap, top);
        line(x + offset - cap, bottom, x + offset + cap, bottom);
      }
      const radius = Math.min(Math.max((layout?.width ?? 0) * 0.65, 3), 6);
      // A marker stands on its bar, or is the point itself.
      children.push(markerShape(sign, x + offset, withPoints ? y : highest - radius - 2, radius));
      return { type: "group", children };
    },
  };
}

const BAR_LAYOUT = { barGap: "12%", barCategoryGap: "26%" };

/** The smallest lower end of an interval and the largest upper one of `policies`, above 0. */
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

function estimateOption(shown, slice, metricOf, axisOf) {
  const metric = metricOf();
  const { units, text } = METRICS[metric];
  const [smallest, largest] = range(metric, slice, visible);
  const logarithmic = axisOf() === "log" && largest > 0;
  // Only an axis from zero has bars: elsewhere their length would say nothing.
  const points = axisOf() !== "zero" && largest > 0;
  const policies = shownPolicies();
  const share = metric === "throughput" ? results.slices[slice].share_bits_per_second : null;
  const [symbol, factor] = unitFor(Math.max(largest, share ?? 0) || 1, units);
  // Over several powers of ten no one unit fits.
  const tick = logarithmic ? (value) => text(value, 3) : (value) => significant(value / factor, points ? 6 : 3);
  const bars = points ? [] : policies.map((policy) => ({
    type: "bar",
    name: results.policies[policy].name,
    ...BAR_LAYOUT,
    itemStyle: { color: signOf(policy).colour },
    emphasis: { disabled: true },
    data: results.scenarios.map((_, scenario) => estimateOf(policy, scenario, slice, metric)?.[0] ?? null),
  }));
  const whiskers = policies.map((policy, place) =>
    marks(shown, metric, slice, policy, place, policies.length, points));
  const shareLine = share ? [{
    type: "line", data: [], silent: true, markLine: {
      silent: true, symbol: "none", label: { show: false },
      lineStyle: { color: shown.ink, type: "dashed", width: 1 }, data: [{ yAxis: share }],
    },
  }] : [];
  return {
    grid: { left: logarithmic ? 64 : 56, right: 8, top: logarithmic ? 14 : 30, bottom: 44 },
    xAxis: { type: "category", data: results.scenarios.map((s) => s.name), name: "scenario", nameLocation: "middle", nameGap: 26, ...axisStyle(shown), splitLine: { show: false }, axisTick: { show: false } },
    yAxis: logarithmic
      ? logAxis(shown, "", { min: roundLog(smallest, false), max: roundLog(largest, true) }, tick, 12)
      : {
        type: "value", name: symbol, nameLocation: "end", nameGap: 10, scale: points,
        min: points ? null : 0, max: largest > 0 ? null : factor, ...axisStyle(shown),
        nameTextStyle: { ...axisStyle(shown).nameTextStyle, align: "right", padding: [0, 8, 0, 0] },
        axisLabel: { ...axisStyle(shown).axisLabel, formatter: tick },
      },
    tooltip: {
      ...tooltipStyle(shown), trigger: "axis", axisPointer: { type: "shadow", shadowStyle: { color: shown.rule, opacity: 0.35 } },
      formatter: (items) => {
        const scenario = items[0]?.dataIndex ?? 0;
        return tip(`Scenario ${scenarioLabel(results.scenarios[scenario])}`, policies.map((policy) =>
          [signOf(policy), results.policies[policy].name, estimateText(estimateOf(policy, scenario, slice, metric), units)]));
      },
    },
    series: [...bars, ...whiskers, ...shareLine],
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
        estimateIn(estimateOf(index, scenario, slice, metric), factor))])));
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
  return sliceCharts(container,
    (slice) => `${METRICS[metricOf()].title} of slice ${slice.name} by scenario and policy; the numbers are in the table below`,
    (shown, slice) => estimateOption(shown, slice, metricOf, axisOf));
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
  if (results.policies.length > 1) {
    legend.append(...results.policies.map((policy, index) =>
      element("button", { type: "button", "data-policy": index, on: { click: () => toggle(index) } },
        markerIcon(signOf(index)), policy.name)));
    legend.append(element("button", { type: "button", class: "all", on: { click: () => {
      results.policies.forEach((_, index) => visible.add(index));
      refresh();
      drawAll();
    } } }, "all"));
  }
  legend.hidden = !legend.childElementCount;
  refresh();
  // What is scrolled to must not end up below the legend.
  const measure = () => document.documentElement.style.setProperty("--legend-height", `${legend.offsetHeight}px`);
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
