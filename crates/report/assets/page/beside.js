// The same study on several back ends: verdicts and figures side by side, predictions, testbeds.

/** One row per back end under each policy's name: a marker needs no legend then. */
function besideRows({ sides, verdicts, figures }, scenario, slice, metric) {
  return verdicts.flatMap((row, policy) => [
    { label: row.policy, heads: true },
    ...sides.map((side, index) => ({
      label: side,
      policy: row.policy,
      side: index,
      estimate: figures[index][policy][scenario]?.slices[slice]?.[metric] ?? null,
      missing: row.unsupported[index] ? "not supported" : "not measured",
    })),
  ]);
}

const BESIDE_ROW_HEIGHT = 19;
const BESIDE_MARGIN = { top: 6, bottom: 46 };

/** A marker, its whisker, and its value beside it, on the side where there is room. */
function besideMark(shown, row, text, api, { x: left, width }) {
  const [, middle] = api.coord([0, row.index]);
  const label = (x, align, words, fill) => ({ type: "text", style: { x, y: middle, text: words, align, verticalAlign: "middle", fill, fontSize: 12 } });
  if (!row.estimate) return [label(left + 6, "left", row.missing, shown.quiet)];
  const sign = sideSign(row.side);
  const { colour } = sign;
  const at = (value) => Math.min(Math.max(api.coord([value, row.index])[0], left), left + width);
  const [mean, low, high] = row.estimate;
  const [x, first, last] = [mean, low ?? mean, high ?? mean].map(at);
  const line = (x1, y1, x2, y2) => ({ type: "line", shape: { x1, y1, x2, y2 }, style: { stroke: colour, lineWidth: 1.8 } });
  const whisker = last > first ? [line(first, middle, last, middle), line(first, middle - 4, first, middle + 4), line(last, middle - 4, last, middle + 4)] : [];
  const outward = Math.max(last, x + 5) - left < width - 64;
  return [...whisker, markerShape(sign, x, middle, 5),
    outward ? label(Math.max(last, x + 5) + 6, "left", text(mean, 3), shown.ink) : label(Math.min(first, x - 5) - 6, "right", text(mean, 3), shown.ink)];
}

function besideOption(shown, rows, metric) {
  const { units, text, title } = METRICS[metric];
  const values = rows.flatMap((row) => row.estimate ?? []).filter((value) => value !== null && value > 0);
  const [smallest, largest] = [Math.min(...values), Math.max(...values)];
  const logarithmic = metric.startsWith("delay") && values.length > 0;
  const [symbol, factor] = unitFor(values.length ? largest : units[units.length - 1][1], units);
  const placed = rows.map((row, index) => ({ ...row, index }));
  return {
    grid: { left: 96, right: 14, ...BESIDE_MARGIN },
    xAxis: {
      ...(logarithmic
        ? logAxis(shown, title, { min: roundLog(smallest, false), max: roundLog(largest, true) }, (value) => text(value, 3), 4)
        : {
          type: "value", name: `${title}, ${symbol}`, min: 0, max: values.length ? roundLog(largest, true) : factor, splitNumber: 4, ...axisStyle(shown),
          axisLabel: { ...axisStyle(shown).axisLabel, hideOverlap: true, formatter: (value) => significant(value / factor, 3) },
        }),
      nameLocation: "middle", nameGap: 28,
    },
    yAxis: {
      type: "category", inverse: true, data: rows.map((_, index) => index),
      ...axisStyle(shown), splitLine: { show: false }, axisTick: { show: false },
      axisLabel: {
        interval: 0, align: "left", margin: 92, fontSize: 12,
        formatter: (index) => (rows[index].heads ? `{policy|${rows[index].label}}` : `{side|${rows[index].label}}`),
        rich: { policy: { color: shown.ink, fontWeight: 600, fontSize: 12.5 }, side: { color: shown.quiet, fontSize: 12, padding: [0, 0, 0, 8] } },
      },
    },
    tooltip: { ...tooltipStyle(shown), trigger: "item", formatter: (item) => {
      const row = rows[item.dataIndex];
      return row.estimate ? tip(`${row.policy}, ${row.label}`, [[sideSign(row.side), title, estimateText(row.estimate, units)]]) : "";
    } },
    series: [{
      type: "custom", data: placed.map((row) => [row.index]), encode: { y: 0 }, z: 3, clip: false,
      renderItem: (params, api) => {
        const row = placed[params.dataIndex];
        return { type: "group", children: row.heads ? [] : besideMark(shown, row, text, api, params.coordSys) };
      },
    }],
  };
}

function besideCharts(beside, scenarioOf, delayOf) {
  const height = beside.verdicts.length * (beside.sides.length + 1) * BESIDE_ROW_HEIGHT + BESIDE_MARGIN.top + BESIDE_MARGIN.bottom;
  return results.slices.flatMap((slice, index) => (slice.guaranteed ? [delayOf, () => "loss_ratio"] : []).map((metricOf) => {
    const node = element("div", { class: "chart", style: `height:${height}px`, "data-height": height });
    byId("beside-charts").append(element("figure", {}, element("figcaption", {}, `Slice ${slice.name}: ${metricOf() === "loss_ratio" ? "loss" : "one-way delay"}`), node));
    return addChart(node, () => `Slice ${slice.name}, one marker per policy and back end; the numbers are in the table below`,
      (shown) => besideOption(shown, besideRows(beside, scenarioOf(), index, metricOf()), metricOf()));
  }));
}

function besideNumbers({ sides, verdicts, figures }, scenario) {
  const rows = verdicts.flatMap((row, policy) => results.slices.flatMap((slice, index) => sides.flatMap((side, place) => {
    const cell = figures[place][policy][scenario];
    const measured = cell?.slices[index];
    if (!measured) return [];
    const text = (metric) => estimateText(measured[metric], METRICS[metric].units);
    return [[row.policy, slice.name, side, String(cell.repetitions), ...["throughput", "loss_ratio", "delay_mean", "delay_p50", "delay_p99"].map(text)]];
  })));
  byId("beside-figures").replaceChildren(groupedTable(
    ["Policy", "Slice", "Back end", "Runs", "Throughput", "Loss", "Delay: mean", "median", "99 %"], rows, 3));
}

function showBeside() {
  const { beside } = results;
  if (!beside) return;
  let scenario = beside.first_scenario;
  const delays = ["delay_mean", "delay_p50", "delay_p99"];
  let delay = "delay_p99";
  const charts = besideCharts(beside, () => scenario, () => delay);
  const redraw = () => {
    charts.forEach(draw);
    besideNumbers(beside, scenario);
  };
  choices("beside-scenario", beside.scenarios.map((name) => {
    const known = results.scenarios.find((s) => s.name === name);
    return known ? scenarioLabel(known) : name;
  }), scenario, (chosen) => {
    scenario = chosen;
    redraw();
  });
  choices("beside-delay", delays.map((name) => METRICS[name].title), delays.indexOf(delay), (chosen) => {
    delay = delays[chosen];
    redraw();
  });
  besideNumbers(beside, scenario);
}

const PREDICTED_UNITS = [RATES, PERCENTS, TIMES];
const DIFFERENCE_UNITS = [RATES, [["points", 0.01]], TIMES];

/** "+40 ± 2 µs": measured − predicted, in a unit that fits both the difference and its interval. */
function differenceText([mean, low, high], units) {
  const half = low === null || high === null ? null : (high - low) / 2;
  const [symbol, factor] = unitFor(Math.max(Math.abs(mean), half ?? 0) || units[units.length - 1][1], units);
  const decimals = half ? Math.min(Math.max(1 - Math.floor(Math.log10(half / factor)), 0), 6) : 0;
  const size = half ? (Math.abs(mean) / factor).toFixed(decimals) : significant(Math.abs(mean) / factor, 3);
  // What rounds to nothing has no sign.
  const sign = Number(size) === 0 ? "" : (mean > 0 ? "+" : "−");
  return `${sign}${size}${half ? ` ± ${(half / factor).toFixed(decimals)}` : ""} ${symbol}`;
}

function predictedCell(figure, index) {
  if (!figure) return element("td", {}, "–");
  const text = (estimate) => estimateText(estimate, PREDICTED_UNITS[index]);
  return element("td", {},
    element("span", { class: `verdict ${figure.outcome}` }, icon(figure.outcome), text(figure.measured)),
    element("span", { class: "deciding" }, `predicted ${text(figure.predicted)}`),
    element("span", { class: "deciding" }, figure.difference ? `difference ${differenceText(figure.difference, DIFFERENCE_UNITS[index])}; ${figure.decided_by}` : figure.decided_by));
}

function showPrediction() {
  const { prediction } = results;
  if (!prediction) return;
  const several = new Set(prediction.map((row) => row.names[0])).size > 1;
  const head = ["Back end", "Policy", "Scenario", "Slice", "Packets"].slice(several ? 0 : 1);
  const rows = prediction.map((row) => [...row.names.slice(several ? 0 : 1), ...row.figures.map(predictedCell)]);
  const table = groupedTable([...head, "Throughput", "Loss ratio", "Median delay"], rows, head.length);
  table.querySelectorAll("th.number").forEach((node) => node.classList.remove("number"));
  byId("prediction-table").append(table);
}
