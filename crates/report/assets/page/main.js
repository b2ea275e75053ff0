// Puts the page together, and draws the charts again whenever their surroundings change.

/** Delay and its variation beside each other, one row per policy, scenario and slice. */
function delayNumbers() {
  const shown = ["delay_mean", "delay_p99", "pdv_mean", "pdv_p99", "ipdv_mean", "ipdv_p99"];
  const rows = results.policies.flatMap((policy, p) => results.scenarios.flatMap((scenario, s) =>
    (results.cells[p][s]?.slices ?? []).map((slice, index) => [
      policy.name, scenario.name, results.slices[index].name, ...shown.map((metric) => estimateText(slice[metric], TIMES))])));
  const frame = element("div", { class: "table-frame" }, groupedTable(
    ["Policy", "Scenario", "Slice", "Delay: mean", "99 %", "PDV: mean", "99 %", "IPDV: mean", "99 %"], rows, 3));
  return element("details", { class: "numbers" },
    element("summary", {}, "Numbers of delay and its variation"),
    element("p", { class: "note" }, "PDV is the delay above the smallest of the run, IPDV the absolute difference between the delays of two packets that a flow sent one right after the other (RFC 5481)."),
    frame, copyButton(frame));
}

/** The delay that is shown first: what is held against a bound or an objective. */
function firstDelay() {
  const of = (kind) => results.limits.filter((limit) => limit.metric === "delay" && limit.kind === kind);
  if (of("bound").length) return "delay_max";
  const percentiles = { 0.5: "delay_p50", 0.1: "delay_p90", 0.05: "delay_p95", 0.01: "delay_p99", 0.001: "delay_p999", 0.0001: "delay_p9999", 0.00001: "delay_p99999" };
  return of("objective").map((limit) => percentiles[limit.beyond] ?? "delay_max")[0] ?? "delay_mean";
}

function showDelay() {
  if (!byId("delay")) return;
  let metric = firstDelay();
  let axis = "log";
  const figures = Object.keys(METRICS).filter((name) => METRICS[name].units === TIMES);
  const charts = showEstimates("delay", () => metric, () => axis);
  byId("delay").append(delayNumbers());
  choices("delay-figure", figures.map((name) => METRICS[name].title), figures.indexOf(metric), (chosen) => {
    metric = figures[chosen];
    charts.forEach(draw);
    refreshNumbers(byId("delay"));
  });
  byId("delay-axis").addEventListener("change", (event) => {
    axis = event.target.value;
    charts.forEach(draw);
  });
}

function showThroughput() {
  let axis = "zero";
  const charts = showEstimates("throughput", () => "throughput", () => axis);
  byId("throughput-axis")?.addEventListener("change", (event) => {
    axis = event.target.value;
    charts.forEach(draw);
  });
}

/** Buttons that copy the data of figures which are drawn already. */
function showCopies() {
  document.querySelectorAll(".declared .table-frame").forEach((frame) => frame.after(copyButton(frame)));
}

function showPage() {
  document.documentElement.classList.remove("still");
  showLegend();
  showBeside();
  showPrediction();
  showScale();
  showThroughput();
  showEstimates("loss_ratio", () => "loss_ratio", () => "zero");
  showDrops();
  showDelay();
  showDelayDistributions();
  showTimeSeries();
  showTransients();
  showTradeOff();
  showArrivals();
  showCopies();
  drawAll();

  const redraw = () => {
    registry.forEach(({ instance }) => instance?.resize());
    drawAll();
  };
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  window.addEventListener("resize", () => registry.forEach(({ instance }) => instance?.resize()));
  window.addEventListener("beforeprint", () => {
    document.documentElement.dataset.theme = "paper";
    document.querySelectorAll("details.configuration, details.why").forEach((node) => { node.open = true; });
    // The bar with the legend is on one sheet only.
    if (results.bases.length > 1) {
      document.querySelectorAll(CHARTS_BY_POLICY).forEach((node) => node.before(element("p", { class: "paper-legend" },
        shownPolicies().map((base) => element("span", {}, markerIcon(signOf(base)), results.bases[base])))));
    }
    registry.forEach(({ node, instance }) => {
      const kind = ["tall", "square"].find((name) => node.classList.contains(name));
      instance?.resize({ width: PAPER_WIDTH, height: Number(node.dataset.height) || (PAPER_HEIGHTS[kind] ?? PAPER_HEIGHTS.plain) });
    });
    drawAll();
  });
  window.addEventListener("afterprint", () => {
    delete document.documentElement.dataset.theme;
    document.querySelectorAll(".paper-legend").forEach((node) => node.remove());
    registry.forEach(({ instance }) => instance?.resize({ width: "auto", height: "auto" }));
    redraw();
  });
}

/** Charts in which a sign is a policy. */
const CHARTS_BY_POLICY = ".charted .charts > figure:not([hidden]) > .chart:not(.sentence, .drawn), #trade-off-chart";

/** Pixels of CSS that fit between the margins of A4, and heights that suit them. */
const PAPER_WIDTH = 680;
const PAPER_HEIGHTS = { plain: 225, tall: 560, square: 420 };

// Tests read these two: whether the page came up, and with how many charts.
try {
  showPage();
  document.documentElement.dataset.charts = String(registry.length);
} catch (error) {
  document.documentElement.dataset.scriptError = String(error?.stack ?? error);
  byId("notices").append(element("div", { class: "notice", role: "alert" },
    `Cannot draw a part of this report (${error}). The numbers in data/ are not affected.`));
  throw error;
}
