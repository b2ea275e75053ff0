// Time series of one run: rate, loss and delay above each other, zoomed together.

const [PLOT_LEFT, PLOT_RIGHT] = [72, 24];

function seriesOf(run, slice) {
  const { sent, received, frames, lost, delay } = run.slices[slice];
  const perSecond = 8e9 / run.bin_ns;
  const at = (bin) => ((bin + 0.5) * run.bin_ns) / 1e9;
  return {
    offered: sent.map((bytes, bin) => [at(bin), bytes * perSecond]),
    throughput: received.map((bytes, bin) => [at(bin), bytes * perSecond]),
    loss: lost.map((count, bin) => [at(bin), frames[bin] > 0 ? count / frames[bin] : 0]),
    delay: delay.map((value, bin) => [at(bin), value === null ? null : value * run.delay_unit_ns]),
  };
}

// What is not measured is shaded: the initial transient, or how long each phase settles.
function marksOfLeftOut(shown, run, end, width) {
  if (!run.left_out.length) return {};
  const plot = width - PLOT_LEFT - PLOT_RIGHT;
  const parts = run.left_out.map((part) => ({ ...part, from: part.from_ns / 1e9, to: part.to_ns / 1e9 }));
  const label = ({ label, to }) => label || `transient ends, ${significant(to, 3)} s`;
  return {
    markArea: { silent: true, itemStyle: { color: shown.transient }, data: parts.map(({ from, to }) => [{ xAxis: from }, { xAxis: to }]) },
    markLine: {
      silent: true, symbol: "none", lineStyle: { color: shown.quiet, type: "dashed", width: 1 },
      label: { show: width > 480, color: shown.quiet, position: "end", fontSize: 11 },
      data: parts.map((part) => ({ xAxis: part.to, label: { formatter: label(part), ...besideEdges((part.to / end) * plot, plot) } })),
    },
  };
}

// A label above a line close to an edge does not reach beyond it, nor into the axis title at the left.
function besideEdges(x, plot) {
  const [half, title] = [60, 26];
  if (x < half + title) return { align: "left", padding: [0, 0, 0, Math.max(0, title - x)] };
  return x > plot - half ? { align: "right" } : {};
}

function timeOption(shown, run, width) {
  const end = (run.slices[0].sent.length * run.bin_ns) / 1e9;
  const places = drawnSlices();
  const slices = places.map((slice) => seriesOf(run, slice));
  // Scales are those of what is measured: what is left out may run off them.
  const measured = (points) => points.filter((_, bin) => run.left_out.every((part) => (bin + 1) * run.bin_ns <= part.from_ns || bin * run.bin_ns >= part.to_ns)).map(([, value]) => value);
  const base = baseOf(run.policy);
  const limitsOfRun = (metric) => places.flatMap((slice, index) => limitsOf(metric, slice, run.scenario)
    .filter((limit) => limit.kind !== "margin" && (limit.policy === null || baseOf(limit.policy) === base)).map((limit) => ({ ...limit, colour: sliceSign(slice).colour, place: index })));
  const limits = [limitsOfRun("throughput"), limitsOfRun("loss_ratio"), limitsOfRun("delay")];
  const delays = [...slices.flatMap((s) => measured(s.delay)), ...limits[2].map((limit) => limit.value)].filter((v) => v);
  const rates = [...slices.flatMap((s) => [...measured(s.offered), ...measured(s.throughput)]), ...limits[0].map((limit) => limit.value)];
  const losses = [...slices.flatMap((s) => measured(s.loss)), ...limits[1].map((limit) => limit.value)];
  const spread = delays.length ? Math.max(...delays) / Math.min(...delays) : 1;
  const lossless = losses.every((value) => value === 0);
  const ends = [rates, losses, delays].map((values) => (values.some((value) => value > 0) ? fitted(0, values.reduce((a, b) => Math.max(a, b), 0)).max : null));
  const line = (name, place, grid, data, dashed) => ({
    type: "line", name, xAxisIndex: grid, yAxisIndex: grid, data, showSymbol: false, sampling: false,
    lineStyle: { color: sliceSign(places[place]).colour, width: dashed ? 1 : 1.6, type: dashed ? "dotted" : "solid", opacity: dashed ? 0.8 : 1 },
    itemStyle: { color: sliceSign(places[place]).colour },
  });
  const series = slices.flatMap((s, index) => {
    const { name } = results.slices[places[index]];
    return [
      line(`${name}, sent`, index, 0, s.offered, true),
      line(`${name}, received`, index, 0, s.throughput, false),
      line(`${name}, loss`, index, 1, s.loss, false),
      line(`${name}, delay`, index, 2, s.delay, false),
    ];
  });
  [1, 2, 3].forEach((index, grid) => {
    const marksOfGrid = marksOfLeftOut(shown, run, end, width);
    if (grid > 0 && marksOfGrid.markLine) marksOfGrid.markLine.data.forEach((mark) => { mark.label = { show: false }; });
    Object.assign(series[index], marksOfGrid);
  });
  const tops = ["9%", "43%", "67%"];
  const heights = ["27%", "17%", "19%"];
  const formats = [(v) => significant(v / 1e6, 3), (v) => significant(v * 100, 3), (v) => time(v, 3)];
  const names = ["rate, Mbit/s", "loss, %", "mean one-way delay"];
  return {
    legend: { type: isOnPaper() && places.length <= 2 ? "plain" : "scroll", top: 0, left: isOnPaper() ? 0 : 60, itemWidth: 22, textStyle: { color: shown.ink, fontSize: isOnPaper() ? 10 : 12 }, pageTextStyle: { color: shown.quiet }, data: places.flatMap((slice) => [`${results.slices[slice].name}, received`, `${results.slices[slice].name}, sent`]) },
    grid: tops.map((top, index) => ({ left: PLOT_LEFT, right: PLOT_RIGHT, top, height: heights[index] })),
    axisPointer: { link: [{ xAxisIndex: "all" }], lineStyle: { color: shown.quiet } },
    xAxis: tops.map((_, index) => ({
      type: "value", gridIndex: index, min: 0, max: end, ...axisStyle(shown), splitLine: { show: false },
      axisLabel: { ...axisStyle(shown).axisLabel, show: index === 2 }, name: index === 2 ? "time since the start of the run, s" : "", nameLocation: "middle", nameGap: 26,
    })),
    yAxis: names.map((name, index) => ({
      ...(index === 2 && spread > 20
        ? logAxis(shown, name, { min: roundLog(Math.min(...delays), false), max: roundLog(Math.max(...delays), true) }, formats[2], 5)
        : {
          type: "value", name, splitNumber: 3, min: 0, ...(index === 1 && lossless ? { max: 0.01, interval: 0.005 } : { max: ends[index] }), ...axisStyle(shown),
          axisLabel: { ...axisStyle(shown).axisLabel, formatter: formats[index] },
        }),
      gridIndex: index, nameLocation: "end", nameGap: 12,
      nameTextStyle: { ...axisStyle(shown).nameTextStyle, align: "left", padding: [0, 0, 0, -50] },
    })),
    dataZoom: [
      { type: "slider", show: !isOnPaper(), xAxisIndex: [0, 1, 2], bottom: 4, height: 22, filterMode: "none", borderColor: shown.rule, textStyle: { color: shown.quiet }, labelFormatter: (v) => `${significant(v, 3)} s`, brushSelect: false, showDataShadow: false },
      { type: "inside", xAxisIndex: [0, 1, 2], filterMode: "none", zoomOnMouseWheel: "ctrl" },
    ],
    tooltip: {
      ...tooltipStyle(shown), trigger: "axis",
      formatter: (items) => {
        const bin = items[0]?.dataIndex ?? 0;
        return tip(`${time(bin * run.bin_ns)} to ${time((bin + 1) * run.bin_ns)}`, slices.flatMap((s, index) => [
          [sliceSign(places[index]), `${results.slices[places[index]].name}: sent`, rate(s.offered[bin][1])],
          [null, "received", rate(s.throughput[bin][1])],
          [null, "loss", percent(s.loss[bin][1])],
          [null, "mean delay", s.delay[bin][1] === null ? "–" : time(s.delay[bin][1])],
        ]));
      },
    },
    series: [...series, ...limits.map((own, grid) => seriesLimits(shown, own, grid))],
  };
}

/** Limits over time: promises as steps, from the begin of a phase to that of the next. */
function seriesLimits(shown, limits, grid) {
  return {
    type: "custom", silent: true, data: [0], z: 3, xAxisIndex: grid, yAxisIndex: grid, clip: true,
    renderItem: (params, api) => {
      const { x: left, width, y: top, height } = params.coordSys;
      const names = [];
      const children = limits.flatMap((limit) => {
        const phase = results.phases[limit.phase ?? -1];
        const [x, y] = api.coord([phase?.begins ?? 0, limit.value]);
        if (y < top - 1 || y > top + height + 1) return [];
        const [from, to] = [Math.max(x, left), phase ? api.coord([phase.to, limit.value])[0] : left + width];
        const label = `${results.slices[limit.slice].name}: ${limit.label}`;
        if (!names.some((name) => name.label === label)) names.push({ label, x: from + 4, y: y - 3, colour: limit.colour });
        return [{ type: "line", shape: { x1: from, y1: y, x2: to, y2: y }, style: { stroke: limit.colour, lineWidth: 1.2, lineDash: [6, 4] } }];
      });
      // Below each other, from the highest line down, inside of the panel.
      names.sort((a, b) => a.y - b.y).reduce((above, name) => { name.y = Math.max(name.y, above + 14); return name.y; }, top);
      children.push(...names.map(({ label, x, y, colour }) => ({ type: "text", style: { x, y, text: label, align: "left", verticalAlign: "bottom", fill: colour, fontSize: 11, stroke: shown.paper, lineWidth: 3 } })));
      return { type: "group", children };
    },
  };
}

function showTimeSeries() {
  if (!byId("time")) return;
  const has = (policy, scenario) => results.binned.find((run) => run.policy === policy && run.scenario === scenario);
  let scenario = results.heaviest_scenario;
  let policy = results.policies.findIndex((_, index) => has(index, scenario));
  const node = element("div", { class: "chart tall" });
  const empty = element("p", { class: "notice", hidden: true }, "This run is not finished.");
  byId("time-chart").append(element("figure", {}, empty, node));
  const chart = addChart(node, () => "Sent and received rate, loss and delay over time of one run", (shown) => {
    const run = has(policy, scenario);
    empty.hidden = Boolean(run);
    return run ? timeOption(shown, run, node.clientWidth) : {};
  });
  // A run has all phases: it stands in the place of the first.
  const drawn = results.policies.map((_, index) => index).filter((index) => results.binned.some((run) => run.policy === index));
  const nameOf = (index) => results.binned.find((run) => run.policy === index).policy_name;
  choices("time-policy", drawn.map(nameOf), drawn.indexOf(policy), (chosen) => {
    policy = drawn[chosen];
    draw(chart);
  });
  choices("time-scenario", results.scenarios.map(scenarioLabel), scenario, (chosen) => {
    scenario = chosen;
    draw(chart);
  });
}
