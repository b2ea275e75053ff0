// Charts of distributions: delay, inter-arrival times, and one slice's delay against another's.

const logTimeAxis = (shown, name, bounds, most = 5) =>
  ({ ...logAxis(shown, name, bounds, (ns) => time(ns, 3), most), nameLocation: "middle", nameGap: 28 });

function fractionAxis(shown) {
  return {
    type: "value", min: 0, max: 1, ...axisStyle(shown),
    axisLabel: { ...axisStyle(shown).axisLabel, formatter: (value) => `${Math.round(value * 100)} %` },
  };
}

/** The rarest frames of a distribution that are drawn: 1 in 100,000. */
const RAREST = 1e-5;

/** Fractions with a logarithmic tail: 0, 90, 99 … 99.999 % at equal distances. A value is the fraction above. */
function tailAxis(shown) {
  const labels = { 1: "0 %", 0.5: "50 %", 0.1: "90 %", 0.01: "99 %", 0.001: "99.9 %", 0.0001: "99.99 %", 0.00001: "99.999 %" };
  const values = Object.keys(labels).map(Number);
  return {
    type: "log", min: RAREST, max: 1, inverse: true, ...axisStyle(shown), ...minorLines(shown), axisTick: { customValues: values },
    axisLabel: { ...axisStyle(shown).axisLabel, customValues: values, formatter: (value) => labels[Number(value.toPrecision(3))] ?? "" },
  };
}

/** Steps of a distribution function, from the left edge of the chart to the right one. */
function steps([values, fractions], bounds) {
  const points = values.map((value, index) => [Math.max(value, 1), fractions[index]]);
  return [[bounds.min, 0], ...points, [bounds.max, fractions[fractions.length - 1]]];
}

/** The same as fractions of frames sent that are later, or lost. */
function lateSteps(cdf, lost, bounds) {
  const late = steps(cdf, bounds).map(([value, fraction]) => [value, Math.max(1 - fraction * (1 - lost), RAREST)]);
  const end = late.findIndex(([, fraction]) => fraction <= RAREST);
  return end < 0 ? late : late.slice(0, end + 1);
}

/** Round ends of a logarithmic axis that holds all of `values`. */
function logBounds(values) {
  const positive = values.filter((value) => value > 0);
  if (!positive.length) return { min: 1, max: 10 };
  let [smallest, largest] = [Infinity, 0];
  for (const value of positive) {
    smallest = Math.min(smallest, value);
    largest = Math.max(largest, value);
  }
  return { min: roundLog(smallest * 0.95, false), max: roundLog(largest * 1.05, true) };
}

/** A line of a distribution function and the markers on it; those of lines along each other do not coincide. */
function distributionLine({ name, cdf, lost, sign }, bounds, place, count) {
  const line = lateSteps(cdf, lost, bounds);
  const markers = [0, 1, 2, 3, 4].flatMap((decade) => {
    const wanted = 10 ** -(decade + (place + 0.5) / count);
    const at = line.find(([, late]) => late <= wanted);
    return at && at[0] < bounds.max ? [[at[0], wanted]] : [];
  });
  return [{
    type: "line", name, step: "end", data: line,
    symbolSize: 6, showSymbol: false, triggerLineEvent: true,
    // Earlier lines are wider, so that none hides another that runs along it.
    lineStyle: { color: sign.colour, width: 1.6 + 0.55 * (count - 1 - place), type: sign.dash, cap: "butt" },
    itemStyle: { color: sign.colour },
    emphasis: { disabled: true },
  }, {
    type: "scatter", name, data: markers, symbol: symbolOf(sign), symbolSize: 9, itemStyle: { color: sign.colour, opacity: 1 },
  }];
}

/**
 * Bounds as dashed lines from bottom to top, objectives as a corner: so many within this delay. What is lost never
 * arrives: a line that ends below the top says how much.
 */
function distributionLimits(shown, limits, lines) {
  return {
    type: "custom", silent: true, data: [0], z: 3, clip: false,
    renderItem: (params, api) => {
      const { x: left, y: top, height } = params.coordSys;
      const children = limits.flatMap((limit, index) => {
        const [x, at] = api.coord([limit.value, Math.max(limit.beyond ?? RAREST, RAREST)]);
        const colour = limitColour(shown, limit);
        const line = (x1, y1, x2, y2) => ({ type: "line", shape: { x1, y1, x2, y2 }, style: { stroke: colour, lineWidth: 1.3, lineDash: [6, 4] } });
        const ends = limit.kind === "bound" ? [line(x, top, x, top + height)] : [line(x, top, x, at), line(left, at, x, at)];
        const right = x > left + 0.55 * params.coordSys.width;
        return [...ends, { type: "text", style: { x: right ? Math.max(x - 5, left + 6.2 * limit.label.length) : x + 5, y: top + 4 + 15 * index, text: limit.label, align: right ? "right" : "left", verticalAlign: "top", fill: colour, fontSize: 11.5, stroke: shown.paper, lineWidth: 3 } }];
      });
      const lost = lines.filter((line) => line.lost > RAREST).map((line) => ({ ...line, y: api.coord([limits[0]?.value ?? 1e6, line.lost])[1] - 3 }));
      lost.sort((a, b) => b.y - a.y).reduce((below, line) => { line.y = Math.min(line.y, below - 13); return line.y; }, Infinity);
      children.push(...lost.map(({ lost: part, y, sign }) => ({ type: "text", style: { x: left + params.coordSys.width - 4, y, text: `${percent(part)} lost`, align: "right", verticalAlign: "bottom", fill: sign.colour, fontSize: 11.5, stroke: shown.paper, lineWidth: 3 } })));
      return { type: "group", children };
    },
  };
}

/** In place of axes that would hold nothing. */
function nothingMeasured(shown) {
  return { title: { text: "no packet with a known delay", left: "center", top: "middle", textStyle: { color: shown.quiet, fontSize: 14, fontWeight: "normal" } } };
}

/** `lines`: name, distribution function, fraction lost and sign of each; `limits` of delay. */
function distributionOption(shown, lines, label, limits) {
  if (!lines.length) return shownPolicies().length ? nothingMeasured(shown) : {};
  const bounds = logBounds([...lines.flatMap(({ cdf }) => cdf[0]), ...limits.map((limit) => limit.value)]);
  return {
    grid: { left: 62, right: 18, top: 14, bottom: 46 },
    xAxis: logTimeAxis(shown, label, bounds),
    yAxis: tailAxis(shown),
    tooltip: { ...tooltipStyle(shown), trigger: "item",
      formatter: (item) => tip(item.seriesName, [[null, `${significant(100 * (1 - item.value[1]), 6)} % within`, time(item.value[0])]]) },
    series: [...lines.flatMap((line, place) => distributionLine(line, bounds, place, lines.length)), distributionLimits(shown, limits, lines)],
  };
}

const cdfOf = (policy, scenario, slice) => results.cells[policy]?.[scenario]?.slices[slice].delay_cdf;
const lostOf = (policy, scenario, slice) => estimateOf(policy, scenario, slice, "loss_ratio")?.[0] ?? 0;

function showDelayDistributions() {
  let scenario = results.heaviest_scenario;
  if (results.one_cell) {
    addChart(byId("slice-distributions"), () => "Distribution of one-way delay, one line per slice", (shown) => {
      const lines = drawnSlices().filter((slice) => cdfOf(0, 0, slice)?.[0].length)
        .map((slice) => ({ name: results.slices[slice].name, cdf: cdfOf(0, 0, slice), lost: lostOf(0, 0, slice), sign: sliceSign(slice) }));
      const option = distributionOption(shown, lines, "one-way delay", []);
      return {
        ...option,
        grid: { ...option.grid, top: 34 },
        legend: { type: "scroll", top: 0, textStyle: { color: shown.ink }, pageTextStyle: { color: shown.quiet },
          data: lines.map(({ name, sign }) => ({ name, icon: symbolOf(sign) })) },
      };
    });
    return;
  }
  let phase = 0;
  const charts = sliceCharts(byId("distribution-charts"), (slice) => `Distribution of one-way delay of slice ${slice.name}, one line per policy`,
    (shown, slice) => {
      const lines = shownPolicies().map((base) => [base, inPhase(base, phase)]).filter(([, policy]) => cdfOf(policy, scenario, slice)?.[0].length)
        .map(([base, policy]) => ({ name: results.bases[base], cdf: cdfOf(policy, scenario, slice), lost: lostOf(policy, scenario, slice), sign: signOf(base) }));
      const limits = limitsOf("delay", slice, scenario).filter((limit) => limit.phase === null || limit.phase === phase);
      return distributionOption(shown, lines, "one-way delay", limits);
    });
  choices("distribution-scenario", results.scenarios.map(scenarioLabel), scenario, (chosen) => {
    scenario = chosen;
    charts.forEach(draw);
  });
  choices("distribution-phase", results.phases.map(({ name }) => name), phase, (chosen) => {
    phase = chosen;
    charts.forEach(draw);
  });
}

/** The guaranteed slice that is set against best effort, where a study has both. */
function tradeOffSlices() {
  const guaranteed = results.slices.findIndex((slice) => slice.guaranteed);
  const other = results.slices.findIndex((slice) => !slice.guaranteed);
  return guaranteed >= 0 && other >= 0 ? [guaranteed, other] : null;
}

function showTradeOff() {
  const slices = tradeOffSlices();
  if (!slices || !byId("trade-off")) return;
  const [guaranteed, other] = slices;
  const [one, two] = [results.slices[guaranteed].name, results.slices[other].name];
  let scenario = results.heaviest_scenario;
  const node = element("div", { class: "chart square" });
  byId("trade-off-chart").append(element("figure", {}, node));
  const chart = addChart(node, () => `Delay of slice ${one} against delay of slice ${two}, one colour and marker per policy`, (shown) => {
    const runs = results.binned.filter((run) => run.scenario === scenario && visible.has(baseOf(run.policy)));
    const points = (run) => {
      const measured = (bin) => run.left_out.every((part) => (bin + 1) * run.bin_ns <= part.from_ns || bin * run.bin_ns >= part.to_ns);
      return run.slices[other].delay.map((x, bin) => [x * run.delay_unit_ns, run.slices[guaranteed].delay[bin] * run.delay_unit_ns])
        .filter(([x, y], bin) => measured(bin) && x > 0 && y > 0);
    };
    const drawn = runs.map(points);
    if (runs.length && drawn.every((run) => !run.length)) return nothingMeasured(shown);
    const [xs, ys] = [0, 1].map((axis) => logBounds(drawn.flatMap((run) => run.map((point) => point[axis]))));
    return {
      grid: { left: 70, right: 24, top: 16, bottom: 50 },
      xAxis: logTimeAxis(shown, `delay of slice ${two}`, xs),
      yAxis: { ...logTimeAxis(shown, `delay of slice ${one}`, ys, 12), nameGap: 54 },
      tooltip: { ...tooltipStyle(shown), trigger: "item", formatter: (item) => tip(item.seriesName, [[null, two, time(item.value[0])], [null, one, time(item.value[1])]]) },
      series: runs.map((run, place) => ({
        type: "scatter", name: run.policy_name, data: drawn[place],
        symbol: symbolOf(signOf(baseOf(run.policy))), symbolSize: 7,
        itemStyle: { color: signOf(baseOf(run.policy)).colour, opacity: 0.6 },
      })),
    };
  });
  choices("trade-off-scenario", results.scenarios.map(scenarioLabel), scenario, (chosen) => {
    scenario = chosen;
    draw(chart);
  });
}

function showArrivals() {
  const withData = results.arrivals.filter((a) => a.cdf[0].length);
  if (!byId("arrivals")) return;
  let scenario = withData.some((a) => a.scenario === results.heaviest_scenario) ? results.heaviest_scenario : withData[0].scenario;
  const node = element("div", { class: "chart" });
  byId("arrivals-chart").append(element("figure", {}, node));
  const chart = addChart(node, () => "Distribution of inter-arrival times as sent, one line per repetition", (shown) => {
    const lines = withData.filter((a) => a.scenario === scenario && drawnSlices().includes(a.slice));
    const bounds = logBounds(lines.flatMap((a) => a.cdf[0]));
    return {
      legend: { type: "scroll", top: 0, right: 10, textStyle: { color: shown.ink }, pageTextStyle: { color: shown.quiet }, icon: "roundRect", data: drawnSlices().map((slice) => results.slices[slice].name) },
      grid: { left: 56, right: 24, top: 34, bottom: 46 },
      xAxis: logTimeAxis(shown, "inter-arrival time", bounds),
      yAxis: fractionAxis(shown),
      tooltip: { ...tooltipStyle(shown), trigger: "item", formatter: (item) =>
        tip(`${item.seriesName}, repetition ${lines[item.seriesIndex].repetition}`, [[null, `${percent(item.value[1])} at most`, time(item.value[0])]]) },
      series: lines.map((a) => ({
        type: "line", name: results.slices[a.slice].name, step: "end", data: steps(a.cdf, bounds), showSymbol: false, triggerLineEvent: true,
        lineStyle: { color: sliceSign(a.slice).colour, type: sliceSign(a.slice).dash, width: 1.2, opacity: 0.7 }, itemStyle: { color: sliceSign(a.slice).colour },
      })),
    };
  });
  choices("arrivals-scenario", results.scenarios.map(scenarioLabel), scenario, (chosen) => {
    scenario = chosen;
    draw(chart);
  });
}
