// Slices by the thousand: largest delay against the number of slices, bound beside measurement.

/** Ends of an axis that all populations share, so that their charts can be compared. */
function scaleBounds(rows) {
  return {
    x: logBounds(rows.map((row) => row.all_slices)),
    y: logBounds(rows.flatMap((row) => [row.delay_max_ns ?? 0, row.delay_bound_ns ?? 0])),
  };
}

/** A label at powers of ten alone: the ends of an axis may lie near one. */
function atPowersOfTen(text) {
  return (value) => (Math.abs(Math.log10(value) - Math.round(Math.log10(value))) < 1e-6 ? text(value) : "");
}

/** A whole number with its thousands set apart. */
const grouped = (number) => (number < 10000 ? String(number) : number.toLocaleString("en").replaceAll(",", "\u202f"));

function scaleOption(shown, rows, all) {
  const policies = [...visible].sort((a, b) => a - b).filter((policy) => rows.some((row) => row.policy === policy));
  const { x, y } = scaleBounds(all);
  const lines = policies.map((policy, place) => {
    const own = rows.filter((row) => row.policy === policy && row.delay_max_ns).sort((a, b) => a.all_slices - b.all_slices);
    const bound = own.find((row) => row.delay_bound_ns !== null)?.delay_bound_ns;
    return {
      type: "line", name: results.policies[policy].name,
      data: own.map((row) => [row.all_slices, row.delay_max_ns, row.delay_max, row.delay_bound]),
      symbol: SYMBOLS[policy % SYMBOLS.length], symbolSize: 8 + 3 * (policies.length - 1 - place),
      // Earlier lines are wider, so that none hides another that runs along it.
      lineStyle: { color: colourOf(shown, policy), width: 2 + 2 * (policies.length - 1 - place), type: dashOf(policy), cap: "butt" },
      itemStyle: { color: colourOf(shown, policy) },
      emphasis: { disabled: true },
      markLine: bound === undefined ? undefined : {
        silent: true, symbol: "none",
        lineStyle: { color: colourOf(shown, policy), type: "dashed", width: 1.6 },
        label: { position: "insideEndTop", color: shown.ink, fontSize: 12, formatter: `proved: at most ${time(bound)}` },
        data: [{ yAxis: bound }],
      },
    };
  });
  return {
    grid: { left: 64, right: 24, top: 16, bottom: 46 },
    xAxis: {
      type: "log", name: "slices on the link", nameLocation: "middle", nameGap: 28, ...axisStyle(shown), ...minorLines(shown), ...x,
      axisLabel: { ...axisStyle(shown).axisLabel, formatter: atPowersOfTen(grouped) },
    },
    yAxis: logTimeAxis(shown, "", {
      ...y, axisLabel: { ...axisStyle(shown).axisLabel, formatter: y.max / y.min < 100 ? (ns) => time(ns, 3) : atPowersOfTen((ns) => time(ns, 3)) },
    }),
    tooltip: { ...tooltipStyle(shown), trigger: "item", formatter: (item) =>
      tip(`${item.seriesName}, ${grouped(item.value[0])} slices`, [
        [null, "largest delay", item.value[2]],
        [null, "proved bound", item.value[3]],
      ]) },
    series: lines,
  };
}

function scaleCharts(rows) {
  const drawn = rows.filter((row) => row.delay_max_ns && row.policy !== null);
  results.slices.forEach((slice, index) => {
    const own = drawn.filter((row) => row.slice === index);
    if (!own.length) return;
    const node = element("div", { class: "chart" });
    const counts = [...new Set(own.map((row) => row.slices_text))];
    const sends = own[0].backlogged ? "always waiting" : "in bursts, all at once";
    byId("scale-charts").append(element("figure", {},
      element("figcaption", {}, `${slice.name} `, element("span", { class: "quiet" },
        `(${counts.length > 1 ? `${counts[0]} to ${counts[counts.length - 1]}` : counts[0]} slices, ${sends})`)),
      node));
    addChart(node, `Largest delay of ${slice.name} against the number of slices, one line a policy; the numbers are in the table below`,
      (shown) => scaleOption(shown, own, drawn));
  });
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

function scaleTables(rows) {
  const timed = rows.some((row) => row.ns_a_frame !== "–");
  const names = (row) => [
    results.policies[row.policy]?.name ?? "–",
    row.all_slices_text,
    results.slices[row.slice].name,
  ];
  let above = null;
  byId("scale-table").append(groupedTable(
    ["Policy", "Slices in all", "Population", "Slices of it", "Largest delay", "Proved bound", "Part of bound", "State a slice", "State in all", ...(timed ? ["Time a frame"] : [])],
    rows.map((row) => {
      const once = above?.policy !== row.policy || above?.scenario !== row.scenario;
      above = row;
      return [...names(row), row.slices_text, row.delay_max, row.delay_bound,
        element("td", { class: row.within_bound === false ? "number beyond" : "number" }, row.part_of_bound),
        once ? row.state : "", once ? row.state_in_all : "", ...(timed ? [once ? row.ns_a_frame : ""] : [])];
    }), 3));
  const waiting = rows.filter((row) => row.turns_apart !== "–");
  if (waiting.length) {
    byId("scale-shares").append(groupedTable(
      ["Policy", "Slices in all", "Population", "Slices of it", "Bytes for each unit of weight", "Turns apart"],
      waiting.map((row) => [...names(row), row.slices_text, row.bytes_per_weight, row.turns_apart]), 3));
  } else {
    byId("scale-shares").append(element("p", { class: "quiet" }, "No slice always had frames waiting."));
  }
}

function showScale() {
  if (!results.populations) return hideSection("scale");
  const { finding, cost, rows } = results.populations;
  byId("scale-finding").append(...finding.map((text) => element("li", {}, text)));
  scaleCharts(rows);
  scaleTables(rows);
  show("scale-cost", cost);
}
