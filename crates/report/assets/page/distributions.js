// Charts of distributions: delay, inter-arrival times, and one slice's delay against another's.

function logTimeAxis(shown, name, extra = {}) {
  return {
    type: "log", name, nameLocation: "middle", nameGap: 28, ...axisStyle(shown), ...minorLines(shown),
    axisLabel: { ...axisStyle(shown).axisLabel, formatter: (ns) => time(ns, 3) }, ...extra,
  };
}

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

function showDelayDistributions() {
  let scenario = heaviestScenario();
  const charts = results.slices.map((slice, index) => {
    const node = element("div", { class: "chart" });
    byId("distribution-charts").append(element("figure", {}, element("figcaption", {}, `Slice ${slice.name}`), node));
    return addChart(node, `Distribution of one-way delay of slice ${slice.name}, one line a policy`, (shown) => {
      const policies = [...visible].sort((a, b) => a - b)
        .filter((policy) => results.cells[policy][scenario]?.slices[index].delay_cdf?.[0].length);
      const bounds = logBounds(policies.flatMap((policy) => results.cells[policy][scenario].slices[index].delay_cdf[0]));
      return {
        grid: { left: 56, right: 18, top: 14, bottom: 46 },
        xAxis: logTimeAxis(shown, "one-way delay", bounds),
        yAxis: fractionAxis(shown),
        tooltip: { ...tooltipStyle(shown), trigger: "item",
          formatter: (item) => tip(results.policies[policies[item.seriesIndex]].name, [[null, `${percent(item.value[1])} took at most`, time(item.value[0])]]) },
        series: policies.map((policy, place) => ({
          type: "line", name: results.policies[policy].name, step: "end",
          data: steps(results.cells[policy][scenario].slices[index].delay_cdf, bounds),
          symbolSize: 6, showSymbol: false, triggerLineEvent: true,
          // Earlier lines are wider, so that none hides another that runs along it.
          lineStyle: { color: colourOf(shown, policy), width: 1.6 + 0.55 * (policies.length - 1 - place), type: dashOf(policy), cap: "butt" },
          itemStyle: { color: colourOf(shown, policy) },
          emphasis: { disabled: true },
        })),
      };
    });
  });
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

function hideSection(id) {
  byId(id).hidden = true;
  document.querySelector(`.contents a[href="#${id}"]`)?.setAttribute("hidden", "");
}

function showTradeOff() {
  const slices = tradeOffSlices();
  if (!slices || !results.binned.length) return hideSection("trade-off");
  const [guaranteed, other] = slices;
  const [one, two] = [results.slices[guaranteed].name, results.slices[other].name];
  show("trade-off-note", `Mean one-way delay of slice ${one} against that of slice ${two}, in the same interval of ${time(results.binned[0].bin_ns)} after the transient, repetition ${results.binned[0].repetition}. Isolation is a flat cloud: whatever ${two} suffers, ${one} does not feel it.`);
  let scenario = heaviestScenario();
  const node = element("div", { class: "chart square" });
  byId("trade-off-chart").append(element("figure", {}, node));
  const chart = addChart(node, `Delay of slice ${one} against delay of slice ${two}, one colour a policy`, (shown) => {
    const runs = results.binned.filter((run) => run.scenario === scenario && visible.has(run.policy));
    const points = (run) => {
      const first = Math.ceil(run.transient_end_ns / run.bin_ns);
      return run.slices[other].delay.map((x, bin) => [x * run.delay_unit_ns, run.slices[guaranteed].delay[bin] * run.delay_unit_ns])
        .filter(([x, y], bin) => bin >= first && x > 0 && y > 0);
    };
    const drawn = runs.map(points);
    const [xs, ys] = [0, 1].map((axis) => logBounds(drawn.flatMap((run) => run.map((point) => point[axis]))));
    return {
      grid: { left: 70, right: 24, top: 16, bottom: 50 },
      xAxis: logTimeAxis(shown, `delay of slice ${two}`, xs),
      yAxis: logTimeAxis(shown, `delay of slice ${one}`, { ...ys, nameGap: 54 }),
      tooltip: { ...tooltipStyle(shown), trigger: "item", formatter: (item) => tip(item.seriesName, [[null, two, time(item.value[0])], [null, one, time(item.value[1])]]) },
      series: runs.map((run, place) => ({
        type: "scatter", name: results.policies[run.policy].name, data: drawn[place],
        symbol: SYMBOLS[run.policy % SYMBOLS.length], symbolSize: 5,
        itemStyle: { color: colourOf(shown, run.policy), opacity: 0.6 },
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
  if (!withData.length) return hideSection("arrivals");
  const policy = results.policies[withData[0].policy].name;
  show("arrivals-note", `Time from one frame to the next, as sent by the first source of each slice under policy “${policy}”; one line a repetition. What a policy does comes after sending, so it cannot change them.`);
  let scenario = withData.some((a) => a.scenario === heaviestScenario()) ? heaviestScenario() : withData[0].scenario;
  const node = element("div", { class: "chart" });
  byId("arrivals-chart").append(element("figure", {}, node));
  const chart = addChart(node, "Distribution of inter-arrival times as sent, one line a repetition", (shown) => {
    const lines = withData.filter((a) => a.scenario === scenario);
    const bounds = logBounds(lines.flatMap((a) => a.cdf[0]));
    return {
      legend: { top: 0, right: 10, textStyle: { color: shown.ink }, icon: "roundRect", data: results.slices.map((s) => s.name) },
      grid: { left: 56, right: 24, top: 34, bottom: 46 },
      xAxis: logTimeAxis(shown, "inter-arrival time", bounds),
      yAxis: fractionAxis(shown),
      tooltip: { ...tooltipStyle(shown), trigger: "item", formatter: (item) =>
        tip(`${item.seriesName}, repetition ${lines[item.seriesIndex].repetition}`, [[null, `${percent(item.value[1])} at most`, time(item.value[0])]]) },
      series: lines.map((a) => ({
        type: "line", name: results.slices[a.slice].name, step: "end", data: steps(a.cdf, bounds), showSymbol: false, triggerLineEvent: true,
        lineStyle: { color: sliceColour(shown, a.slice), width: 1.2, opacity: 0.7 }, itemStyle: { color: sliceColour(shown, a.slice) },
      })),
    };
  });
  choices("arrivals-scenario", results.scenarios.map(scenarioLabel), scenario, (chosen) => {
    scenario = chosen;
    draw(chart);
  });
}
