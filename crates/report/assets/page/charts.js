// Charts of estimates: one a slice and metric, scenarios along the axis, one mark a policy.

const registry = [];
const visible = new Set(results.policies.map((_, index) => index));
const SYMBOLS = ["circle", "rect", "triangle", "diamond"];
const DASHES = ["solid", "dashed", "dotted"];

const colourOf = (shown, policy) => shown.palette[policy % shown.palette.length];
/** With more policies than colours, lines of one colour differ in their dashes. */
const dashOf = (policy) => DASHES[Math.floor(policy / results.colours.light.length) % DASHES.length];

/** Put a chart into `node`; `build` gives its option for a theme, anew at each drawing. */
function addChart(node, label, build) {
  node.setAttribute("role", "img");
  node.setAttribute("aria-label", label);
  const chart = { node, build, instance: null };
  registry.push(chart);
  return chart;
}

function draw(chart) {
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
    rows.map(([colour, name, text]) => element("tr", {},
      element("th", { scope: "row" },
        colour ? element("span", { class: "swatch", style: `background:${colour};margin-right:.4em` }) : null, name),
      element("td", {}, text)))));
}

const estimateOf = (policy, scenario, slice, metric) =>
  results.cells[policy][scenario]?.slices[slice][metric] ?? null;

/** Whiskers of one policy, and its points where there are no bars. */
function marks(shown, metric, slice, policy, place, count, withPoints) {
  const data = results.scenarios.map((_, scenario) => {
    const estimate = estimateOf(policy, scenario, slice, metric);
    return estimate ? [scenario, estimate[0], estimate[1], estimate[2]] : null;
  }).filter((row) => row !== null);
  const colour = colourOf(shown, policy);
  return {
    type: "custom",
    name: results.policies[policy].name,
    data,
    z: 3,
    encode: { x: 0, y: [1, 2, 3] },
    renderItem: (params, api) => {
      const offset = api.barLayout({ ...BAR_LAYOUT, count })[place]?.offsetCenter ?? 0;
      const at = (value) => api.coord([api.value(0), value]);
      const [x, y] = at(api.value(1));
      // A logarithmic axis has no place for 0.
      if (!Number.isFinite(y)) return null;
      const children = [];
      const [low, high] = [api.value(2), api.value(3)];
      // Repetitions that all agree need no whisker.
      if (Number.isFinite(low) && Number.isFinite(high) && high > low) {
        const floor = params.coordSys.y + params.coordSys.height;
        const bottom = low > 0 ? Math.min(at(low)[1], floor) : floor;
        const top = at(high)[1];
        const style = { stroke: withPoints ? colour : shown.ink, lineWidth: withPoints ? 1.6 : 1.1 };
        const cap = Math.min(4, 120 / results.scenarios.length / count);
        const line = (x1, y1, x2, y2) => children.push({ type: "line", shape: { x1, y1, x2, y2 }, style });
        line(x + offset, bottom, x + offset, top);
        line(x + offset - cap, top, x + offset + cap, top);
        line(x + offset - cap, bottom, x + offset + cap, bottom);
      }
      if (withPoints) {
        children.push({ type: "circle", shape: { cx: x + offset, cy: y, r: 4 }, style: { fill: colour } });
      }
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
  const policies = results.policies.map((_, index) => index).filter((index) => visible.has(index));
  const share = metric === "throughput" ? results.slices[slice].share_bits_per_second : null;
  const [symbol, factor] = unitFor(Math.max(largest, share ?? 0) || 1, units);
  // Over several powers of ten no one unit fits.
  const tick = logarithmic ? (value) => text(value, 3) : (value) => significant(value / factor, points ? 6 : 3);
  const bars = points ? [] : policies.map((policy) => ({
    type: "bar",
    name: results.policies[policy].name,
    ...BAR_LAYOUT,
    itemStyle: { color: colourOf(shown, policy) },
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
    yAxis: {
      type: logarithmic ? "log" : "value",
      name: logarithmic ? "" : symbol, nameLocation: "end", nameGap: 10,
      scale: points,
      min: logarithmic ? roundLog(smallest, false) : (points ? null : 0),
      max: logarithmic ? roundLog(largest, true) : (largest > 0 ? null : factor),
      ...axisStyle(shown), ...(logarithmic ? minorLines(shown) : {}),
      nameTextStyle: { ...axisStyle(shown).nameTextStyle, align: "right", padding: [0, 8, 0, 0] },
      axisLabel: { ...axisStyle(shown).axisLabel, formatter: tick },
    },
    tooltip: {
      ...tooltipStyle(shown), trigger: "axis", axisPointer: { type: "shadow", shadowStyle: { color: shown.rule, opacity: 0.35 } },
      formatter: (items) => {
        const scenario = items[0]?.dataIndex ?? 0;
        return tip(`Scenario ${scenarioLabel(results.scenarios[scenario])}`, policies.map((policy) =>
          [colourOf(shown, policy), results.policies[policy].name, estimateText(estimateOf(policy, scenario, slice, metric), units)]));
      },
    },
    series: [...bars, ...whiskers, ...shareLine],
  };
}

/** The estimates as a table, for eyes and readers that charts do not serve. */
function estimateNumbers(slice, metricOf) {
  const body = element("div", { class: "table-frame" });
  const details = element("details", { class: "numbers", on: { toggle: () => {
    const metric = metricOf();
    const [symbol, factor] = unitFor(range(metric, slice, results.policies.keys())[1] || 1, METRICS[metric].units);
    body.replaceChildren(numberTable([`${METRICS[metric].title}, ${symbol}`, ...results.scenarios.map((s) => `scenario ${s.name}`)],
      results.policies.map((policy, index) => [policy.name, ...results.scenarios.map((_, scenario) =>
        estimateIn(estimateOf(index, scenario, slice, metric), factor))])));
  } } }, element("summary", {}, "Numbers"), body);
  return details;
}

function showEstimates(container, metricOf, axisOf) {
  return results.slices.map((slice, index) => {
    const node = element("div", { class: "chart" });
    const kind = slice.guaranteed ? "guaranteed" : "best effort";
    const share = slice.share_bits_per_second;
    container.append(element("figure", {},
      element("figcaption", {}, `Slice ${slice.name} `, element("span", { class: "quiet" }, share ? `(${kind}, ${rate(share)})` : "")),
      node, estimateNumbers(index, metricOf)));
    return addChart(node, `${METRICS[metricOf()].title} of slice ${slice.name} by scenario and policy; the numbers are in the table below`,
      (shown) => estimateOption(shown, index, metricOf, axisOf));
  });
}

/** Which policies the charts show: one row of buttons for all of them. */
function showLegend() {
  const legend = byId("legend");
  const refresh = () => {
    const shown = theme();
    legend.querySelectorAll("button[data-policy]").forEach((button) => {
      const policy = Number(button.dataset.policy);
      button.setAttribute("aria-pressed", String(visible.has(policy)));
      button.querySelector(".swatch").style.background = colourOf(shown, policy);
    });
  };
  const toggle = (policy) => {
    if (visible.has(policy) && visible.size > 1) visible.delete(policy);
    else visible.add(policy);
    refresh();
    drawAll();
  };
  legend.append(...results.policies.map((policy, index) =>
    element("button", { type: "button", "data-policy": index, "aria-pressed": "true", on: { click: () => toggle(index) } },
      element("span", { class: "swatch" }), policy.name)));
  if (results.policies.length > 1) {
    legend.append(element("button", { type: "button", class: "all", on: { click: () => {
      results.policies.forEach((_, index) => visible.add(index));
      refresh();
      drawAll();
    } } }, "all"));
  }
  refresh();
  return refresh;
}
