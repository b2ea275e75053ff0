// Everything that is not a chart: head, verdicts, published figures, method.

/** Write a text where the template has room for it. */
function show(id, text) {
  byId(id).textContent = unbroken(text);
}

function facts(id, entries) {
  byId(id).append(...entries.filter(([, value]) => value).map(([name, value]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, value))));
}

function showHead() {
  const { study, runs } = results;
  show("title", study.title || study.name);
  show("description", study.description);
  facts("facts", [
    ["Device under test", study.dut],
    ["Runs", [[results.policies.length, "policy", "policies"], [results.scenarios.length, "scenario", "scenarios"], [study.repetitions, "repetition", "repetitions"]]
      .map(([number, one, more]) => `${number} ${number === 1 ? one : more}`).join(" × ")],
    ["Each run", study.duration_ns ? `${time(study.duration_ns)} of traffic` : "as long as was captured"],
    ["Publication", study.source],
  ]);
  const complaints = [];
  if (runs.finished < runs.expected) {
    complaints.push(`${runs.finished} of ${runs.expected} runs are finished. Running the same command again does the rest; until then intervals are wider and verdicts may be inconclusive.`);
  }
  if (runs.damaged.length) {
    complaints.push([
      `${runs.damaged.length} ${runs.damaged.length === 1 ? "record is" : "records are"} damaged, and left out:`,
      element("ul", {}, runs.damaged.map((text) => element("li", {}, text))),
    ]);
  }
  byId("notices").append(...complaints.map((complaint) => element("div", { class: "notice", role: "status" }, complaint)));
}

const ATTRIBUTES = [
  ["isolation", "Performance isolation"],
  ["reallocation", "Resource reallocation"],
  ["scalability", "Scalability"],
];

function verdictCell(verdict) {
  const said = verdict.published
    ? element("span", { class: `said ${verdict.agrees === false ? "differ" : ""}` },
        verdict.agrees === null ? null : icon(verdict.agrees ? "agree" : "differ"),
        `published: ${verdict.published}${verdict.agrees === false ? " (differs)" : ""}`)
    : null;
  return element("td", {},
    element("span", { class: `verdict ${verdict.outcome}` }, icon(verdict.outcome), verdict.word),
    element("span", { class: "deciding" }, verdict.deciding),
    said);
}

function testTable(tests) {
  if (!tests.length) return null;
  const head = ["Slice", "Indicator", "Scenario", "Measured", "Interval", "Margin", "p", "Outcome"];
  return element("div", { class: "table-frame" }, element("table", {},
    element("thead", {}, element("tr", {}, head.map((text) => element("th", { scope: "col" }, text)))),
    element("tbody", {}, tests.map((test) => element("tr", { class: test.decides ? "decides" : null },
      [test.slice, test.indicator, test.scenario, test.measured, test.interval, test.margin, test.p_value]
        .map((text) => element("td", {}, text ?? "")),
      element("td", {}, test.word ? element("span", { class: `verdict ${test.outcome}` }, icon(test.outcome), test.word) : ""))))));
}

function reasons(row) {
  return ATTRIBUTES.map(([key, title]) => {
    const verdict = row[key];
    return [
      element("h4", {}, title),
      element("p", {}, verdict.reason),
      testTable(verdict.tests ?? []),
    ];
  });
}

function showVerdicts() {
  show("finding", results.finding);
  document.querySelectorAll(".confidence").forEach((node) => { node.textContent = percent(results.study.confidence); });
  if (!results.verdicts.length) {
    // Captures without a study: there is nothing to judge.
    document.querySelectorAll('#verdict-table, #verdict-key').forEach((node) => node.remove());
    return;
  }
  const body = element("tbody");
  results.verdicts.forEach((row, index) => {
    const policy = results.policies[row.policy];
    const id = `reason-${index}`;
    const detail = element("tr", { class: "reason", id, hidden: true }, element("td", { colspan: 4 }, reasons(row)));
    const button = element("button", { class: "why", type: "button", "aria-expanded": "false", "aria-controls": id,
      on: { click: () => {
        detail.hidden = !detail.hidden;
        button.setAttribute("aria-expanded", String(!detail.hidden));
      } } }, "Why?");
    body.append(
      element("tr", { class: "verdict-row" },
        element("th", { scope: "row" }, policy.name, element("span", { class: "policy-title" }, policy.title), button),
        ATTRIBUTES.map(([key]) => verdictCell(row[key]))),
      detail);
  });
  byId("verdict-table").append(element("table", {},
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "Policy"),
      ATTRIBUTES.map(([, title]) => element("th", { scope: "col" }, title)))),
    body));
  byId("verdict-key").append(...results.verdict_key.map((text) => element("span", {}, text, element("br"))));
}

/** Frames dropped by class and reason, as the device's own counters tell. */
function showDrops() {
  if (!results.drops.length) return;
  const table = numberTable(
    ["Policy: class, reason", ...results.scenarios.map((s) => `scenario ${s.name}`)],
    results.drops.map((row) => [
      `${results.policies[row.policy].name}: ${row.class}, ${row.reason.replaceAll("_", " ")}`,
      ...row.frames.map((frames) => (frames === null ? "–" : significant(frames, 4))),
    ]));
  byId("drops").append(element("details", { class: "numbers" },
    element("summary", {}, "Where frames were dropped, and why"),
    element("p", { class: "note" }, "Frames in a whole run, transient included, by the device's own counters; the mean over repetitions."),
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
  byId("transients").append(element("table", { class: "compact" },
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "Policy"),
      results.scenarios.map((s) => element("th", { scope: "col" }, `Scenario ${s.name}`)))),
    element("tbody", {}, results.policies.map((policy, index) => element("tr", {},
      element("th", { scope: "row" }, policy.name),
      results.scenarios.map((_, scenario) => element("td", {}, transientText(results.cells[index][scenario]))))))));
}

function showPublished() {
  const section = byId("published");
  if (!results.published.length) {
    section.hidden = true;
    document.querySelector('.contents a[href="#published"]').hidden = true;
    return;
  }
  const agreeing = results.published.filter((figure) => figure.outcome === "holds").length;
  show("published-note", `${agreeing} of ${results.published.length} published figures come out as published. Where one does not, the last column says why, as far as it is known.`);
  const rows = results.published.map((figure) => element("tr", {},
    element("td", { class: "claim" }, figure.claim, element("span", { class: "quiet" }, figure.source ? ` (${figure.source})` : "")),
    element("td", {}, figure.where),
    element("td", {}, figure.expected),
    element("td", {}, figure.ours, figure.seen_in ? element("span", { class: "said" }, figure.seen_in) : null),
    element("td", {}, element("span", { class: `verdict ${figure.outcome}` }, icon(figure.outcome), figure.word)),
    element("td", { class: "explanation" }, figure.explanation
      || (figure.outcome === "broken" ? element("span", { class: "quiet" }, "not explained") : ""))));
  byId("published-table").append(element("table", {},
    element("thead", {}, element("tr", {}, ["Published", "Where", "Expected", "Ours", "", "Difference explained"].map((text) => element("th", { scope: "col" }, text)))),
    element("tbody", {}, rows)));
}

function showMethod() {
  const { study } = results;
  byId("method-text").append(...results.method.map((text) => element("p", {}, text)));
  byId("assumptions").append(study.assumptions.length
    ? element("ul", {}, study.assumptions.map((text) => element("li", {}, text)))
    : element("p", { class: "quiet" }, "None is declared."));
  byId("configurations").append(...results.policies.map((policy) => element("details", { class: "configuration" },
    element("summary", {}, policy.name), element("pre", {}, policy.configuration || "(nothing configured)"))));
  facts("provenance", [
    ["Study", study.name],
    ["Digest of the study", study.digest],
    ["Seed", study.seed],
    ["Program", `Slicewise ${study.program_version}`],
  ]);
  byId("command").textContent = results.command;
  if (results.host.length) {
    byId("host").append(
      element("p", { class: "quiet" }, "The host, which results do not depend on:"),
      element("dl", { class: "facts", id: "host-facts" }));
    facts("host-facts", results.host);
  }
}
