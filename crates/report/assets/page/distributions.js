// Charts of distributions: delay, inter-arrival times, and one slice's delay against another's.

const logTimeAxis = (shown, name, bounds, most = 5) =>
  ({ ...logAxis(shown, name, bounds, (ns) => time(ns, 3), most), nameLocation: "middle", nameGap: 28 });

function fractionAxis(shown) {
  return {
    type: "value", min: 0, max: 1, ...axisStyle(shown),
    axisLabel: { ...axisStyle(shown).axisLabel, formatter: (value) => `${Math.round(value * 100)} %` },
  };
}

/** Steps of a distribution function, from the left edge of the chart to the right one. */
function steps([values, fractions], bounds) {
  const points = values.map((value, index) => [Math.max(value, 1), fractions[index]]);
  return [[bounds.min, 0], ...points, [bounds.max, fractions[fractions.length - 1]]];
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
function distributionLine(name, cdf, bounds, sign, place, count) {
  const [values, fractions] = cdf;
  const offset = place / count;
  const markers = [0, 1, 2, 3].map((step) => (step + offset) / 4).flatMap((fraction) => {
    const at = fractions.findIndex((reached) => reached >= fraction);
    return at < 0 ? [] : [[Math.max(values[at], 1), fraction]];
  });
  return [{
    type: "line", name, step: "end", data: steps(cdf, bounds),
    symbolSize: 6, showSymbol: false, triggerLineEvent: true,
    // Earlier lines are wider, so that none hides another that runs along it.
    lineStyle: { color: sign.colour, width: 1.6 + 0.55 * (count - 1 - place), type: sign.dash, cap: "butt" },
    itemStyle: { color: sign.colour },
    emphasis: { disabled: true },
  }, {
    type: "scatter", name, data: markers, symbol: symbolOf(sign), symbolSize: 9, itemStyle: { color: sign.colour, opacity: 1 },
  }];
}

/** In place of axes that would hold nothing. */
function nothingMeasured(shown) {
  return { title: { text: "no packet with a known delay", left: "center", top: "middle", textStyle: { color: shown.quiet, fontSize: 14, fontWeight: "normal" } } };
}

/** `lines`: name, distribution function and sign of each. */
function distributionOption(shown, lines, label) {
  if (!lines.length) return shownPolicies().length ? nothingMeasured(shown) : {};
  const bounds = logBounds(lines.flatMap(({ cdf }) => cdf[0]));
  return {
    grid: { left: 56, right: 18, top: 14, bottom: 46 },
    xAxis: logTimeAxis(shown, label, bounds),
    yAxis: fractionAxis(shown),
    tooltip: { ...tooltipStyle(shown), trigger: "item",
      formatter: (item) => tip(item.seriesName, [[null, `${percent(item.value[1])} at most`, time(item.value[0])]]) },
    series: lines.flatMap(({ name, cdf, sign }, place) => distributionLine(name, cdf, bounds, sign, place, lines.length)),
  };
}

const cdfOf = (policy, scenario, slice) => results.cells[policy][scenario]?.slices[slice].delay_cdf;

function showDelayDistributions() {
  let scenario = results.heaviest_scenario;
  if (results.one_cell) {
    addChart(byId("slice-distributions"), () => "Distribution of one-way delay, one line per slice", (shown) => {
      const lines = drawnSlices().filter((slice) => cdfOf(0, 0, slice)?.[0].length)
        .map((slice) => ({ name: results.slices[slice].name, cdf: cdfOf(0, 0, slice), sign: sliceSign(slice) }));
      const option = distributionOption(shown, lines, "one-way delay");
      return {
        ...option,
        grid: { ...option.grid, top: 34 },
        legend: { type: "scroll", top: 0, textStyle: { color: shown.ink }, pageTextStyle: { color: shown.quiet },
          data: lines.map(({ name, sign }) => ({ name, icon: symbolOf(sign) })) },
      };
    });
    return;
  }
  const charts = sliceCharts(byId("distribution-charts"), (slice) => `Distribution of one-way delay of slice ${slice.name}, one line per policy`,
    (shown, slice) => distributionOption(shown, shownPolicies().filter((policy) => cdfOf(policy, scenario, slice)?.[0].length)
      .map((policy) => ({ name: results.policies[policy].name, cdf: cdfOf(policy, scenario, slice), sign: signOf(policy) })), "one-way delay"));
  choices("distribution-scenario", results.scenarios.map(scenarioLabel), scenario, (chosen) => {
    scenario = chosen;
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
    const runs = results.binned.filter((run) => run.scenario === scenario && visible.has(run.policy));
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
        symbol: symbolOf(signOf(run.policy)), symbolSize: 7,
        itemStyle: { color: signOf(run.policy).colour, opacity: 0.6 },
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
