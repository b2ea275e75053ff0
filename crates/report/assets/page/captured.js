// Runs measured from captures: how, and what their flows and hops got.

function capturedTable(id, table) {
  if (table) byId(id).append(groupedTable(table.head, table.rows, table.names));
}

function showCaptured() {
  const captured = results.captured;
  if (!captured) hideSection("captures");
  if (!captured?.flows) hideSection("flows");
  if (!captured?.hops) hideSection("hops");
  if (!captured) return;
  show("captures-note", captured.note);
  if (captured.warnings.length) {
    byId("captures-warnings").append(element("div", { class: "notice" },
      element("strong", {}, "To be kept in mind"),
      element("ul", {}, captured.warnings.map((text) => element("li", {}, text)))));
  }
  capturedTable("captures-points", captured.points);
  capturedTable("captures-matching", captured.matching);
  show("flows-note", captured.flows_note);
  capturedTable("flows-table", captured.flows);
  capturedTable("hops-table", captured.hops);
}
