// Large numbers of slices: largest delay against the number of slices, bound beside measurement.

/** Ends of an axis that all populations share, so that their charts can be compared. */
function scaleBounds(rows) {
  return {
    x: logBounds(rows.map((row) => row.all_slices)),
    y: logBounds(rows.flatMap((row) => [row.delay_max_ns ?? 0, row.delay_bound_ns ?? 0])),
  };
}

function scaleOption(shown, rows, all) {
  const policies = shownPolicies().filter((policy) => rows.some((row) => row.policy === policy));
  const { x, y } = scaleBounds(all);
  const lines = policies.map((policy, place) => {
    const own = rows.filter((row) => row.policy === policy && row.delay_max_ns).sort((a, b) => a.all_slices - b.all_slices);
    const bound = own.find((row) => row.delay_bound_ns !== null)?.delay_bound_ns;
    return {
      type: "line", name: results.policies[policy].name,
      data: own.map((row) => [row.all_slices, row.delay_max_ns, row.delay_max, row.delay_bound]),
      symbol: symbolOf(signOf(policy)), symbolSize: 10 + 2 * (policies.length - 1 - place),
      // Earlier lines are wider, so that none hides another that runs along it.
      lineStyle: { color: signOf(policy).colour, width: 2 + 2 * (policies.length - 1 - place), type: signOf(policy).dash, cap: "butt" },
      itemStyle: { color: signOf(policy).colour },
      emphasis: { disabled: true },
      markLine: bound === undefined ? undefined : {
        silent: true, symbol: "none",
        lineStyle: { color: signOf(policy).colour, type: "dashed", width: 1.6 },
        label: { position: "insideEndTop", color: shown.ink, fontSize: 12, formatter: `proved: at most ${time(bound)}` },
        data: [{ yAxis: bound }],
      },
    };
  });
  return {
    grid: { left: 64, right: 24, top: 16, bottom: 46 },
    xAxis: { ...logAxis(shown, "slices on the link", x, grouped, 5), nameGap: 28 },
    yAxis: logAxis(shown, "", y, (ns) => time(ns, 3), 12),
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
  document.querySelectorAll("#scale-charts figure").forEach((figure) => {
    const index = Number(figure.dataset.slice);
    const { name } = results.slices[index];
    const own = drawn.filter((row) => row.slice === index);
    const counts = [...new Set(own.map((row) => row.slices_text))];
    const sends = own[0].backlogged ? "always waiting" : "in bursts, all at once";
    figure.querySelector(".quiet").textContent = `(${counts.length > 1 ? `${counts[0]} to ${counts[counts.length - 1]}` : counts[0]} slices, ${sends})`;
    addChart(figure.querySelector(".chart"), () => `Largest delay of ${name} against the number of slices, one line per policy; the numbers are in the table below`,
      (shown) => scaleOption(shown, own, drawn));
  });
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
    ["Policy", "All slices", "Population", "Slices of it", "Largest delay", "Proved bound", "Share of bound", "State per slice", "All state", ...(timed ? ["Time per frame"] : [])],
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
      ["Policy", "All slices", "Population", "Slices of it", "Bytes per unit of weight", "Turns apart"],
      waiting.map((row) => [...names(row), row.slices_text, row.bytes_per_weight, row.turns_apart]), 3));
  } else {
    byId("scale-shares").append(element("p", { class: "quiet" }, "No slice always had frames waiting."));
  }
}

function showScale() {
  const rows = results.populations;
  if (!rows) return;
  scaleCharts(rows);
  scaleTables(rows);
}
