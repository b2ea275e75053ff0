// Tables that charts have beside them.

/** Frames dropped by class and reason, by the device's own counters; what impaired links lost; and what queues marked. */
function showDrops() {
  showLost(results.drops, "Policy: class, reason", "Where frames were dropped, and why",
    "Frames in a whole run, transient included, by the device's own counters; mean over repetitions.");
  showLost(results.link_losses, "Policy: link, slice, reason", "Frames lost on impaired links",
    "Frames in a whole run, transient included; none of them is among those dropped; mean over repetitions.");
  showLost(results.marks, "Policy: slice, mark", "Frames marked instead of dropped (ECN)",
    "Frames received in a whole run, transient included; mean over repetitions.");
}

function showLost(rows, heading, summary, note) {
  if (!rows.length || !byId("drops")) return;
  const table = numberTable(
    [heading, ...results.scenarios.map((s) => `scenario ${s.name}`)],
    rows.map((row) => [
      `${results.policies[row.policy].name}: ${row.class}, ${row.reason.replaceAll("_", " ")}`,
      ...row.frames.map((frames) => (frames === null ? "–" : significant(frames, 4))),
    ]));
  byId("drops").append(element("details", { class: "numbers" },
    element("summary", {}, summary),
    element("p", { class: "note" }, note),
    element("div", { class: "table-frame" }, table)));
}

function transientText(cell) {
  if (!cell) return "";
  const { found, not_reached: notReached, end_ns: end, before, after } = cell.transient;
  const unsettled = notReached ? `${notReached} of ${cell.repetitions} never settle` : "";
  if (!found) return unsettled || "–";
  const some = found < cell.repetitions ? ` (${found} of ${cell.repetitions} runs)` : "";
  return [`${estimateText(end, TIMES)}${some}`, element("span", { class: "said" }, `${rate(before[0], 3)} → ${rate(after[0], 3)}`),
    unsettled ? element("span", { class: "said" }, unsettled) : ""];
}

function showTransients() {
  if (!byId("transients")) return;
  byId("transients").append(element("table", { class: "compact" },
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "Policy"),
      results.scenarios.map((s) => element("th", { scope: "col" }, `Scenario ${s.name}`)))),
    element("tbody", {}, results.policies.map((policy, index) => element("tr", {},
      element("th", { scope: "row" }, policy.name),
      results.scenarios.map((_, scenario) => element("td", {}, transientText(results.cells[index][scenario]))))))));
}
