// What happens, as it happens. Equal events are one row.

import { element, prose, write } from "./dom.js";
import { model, on } from "./model.js";
import { count, counted, moment } from "./quantities.js";

export const title = "Events";

/** Rows shown at a time. */
const SHOWN = 300;
/** An event of a slice joins an equal one of the newest rows, any other that of the row before it, within so many ms. */
const NEAR = 4;
const TOGETHER = 60_000;
/** Names written out of a row of many slices. */
const NAMED = 100;

export function show(main) {
  const status = element("p", { class: "quiet status" });
  const pause = element("input", { type: "checkbox", id: "pause" });
  const body = element("tbody", {});
  main.append(element("div", { class: "controls" }, element("label", { for: "pause" }, pause, " Hold the list")), status,
    element("div", { class: "table-frame" }, element("table", { class: "cards compact events" },
      element("thead", {}, element("tr", {}, ["No.", "When", "What", "About"].map((text) => element("th", { scope: "col" }, text)))), body)));
  let newest = null;
  let asked = false;
  let groups = [];
  const refresh = () => {
    asked = false;
    if (pause.checked) return;
    const fresh = newest === null ? model.events.slice() : model.events.slice(0, model.events.findIndex((event) => event.number <= newest) >>> 0);
    newest = model.events[0]?.number ?? newest;
    const changed = new Set(fresh.reverse().map((event) => joined(groups, event)));
    // The rows are in the order of their last events.
    const order = groups.filter((group) => changed.has(group)).reverse();
    groups.splice(SHOWN);
    for (const group of order) {
      const node = row(group);
      const [known, details] = [group.node?.querySelector("details"), node.querySelector("details")];
      if (known && details) details.open = known.open;
      group.node?.remove();
      body.prepend(node);
      group.node = node;
    }
    while (body.rows.length > SHOWN) body.lastElementChild.remove();
    write(status, groups.length === 0 ? "Nothing has happened yet." : `Newest first; equal events are one row; the last ${SHOWN} rows are shown.`);
  };
  pause.addEventListener("change", refresh);
  refresh();
  return on("events", () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(refresh);
  });
}

/** Put an event into the row of those that are equal but for their slices, or begin one; the row. */
function joined(groups, event) {
  const key = [event.kind, event.by, event.reason, event.gateway].join("\n");
  const place = groups.slice(0, event.slice ? NEAR : 1).findIndex((one) => one.key === key && event.at_ms - one.last.at_ms < TOGETHER);
  const [group] = place < 0 ? [] : groups.splice(place, 1);
  if (!group) {
    groups.unshift({ key, first: event, last: event, number: 1, slices: new Set([event.slice].filter(Boolean)) });
    return groups[0];
  }
  groups.unshift(group);
  group.last = event;
  group.number += 1;
  if (event.slice) group.slices.add(event.slice);
  return group;
}

const WORDS = {
  slice_admitted: "admitted",
  slice_installed: "installed",
  slice_draining: "removed",
  slice_gone: "gone",
  slice_refused: "refused",
  gateway_refused: "refused by a gateway",
  announcement_refused: "announcement refused",
  gateway_came: "gateway came",
  gateway_went: "gateway went",
  decision: "decision",
};

/** From the first to the last, where they differ. */
const span = (first, last) => (first === last ? first : `${first} – ${last}`);

function row({ first, last, number, slices }) {
  const reason = [first.by ? ` by ${first.by}` : "", first.reason ? `: ${first.reason}` : ""].join("");
  const times = number > 1 && slices.size < 2 ? ` (${count(number)} times)` : "";
  return element("tr", {}, element("td", { class: "quiet" }, span(String(first.number), String(last.number))), element("td", { class: "quiet" }, span(moment(first.at_ms), moment(last.at_ms))),
    element("td", {}, WORDS[first.kind] ?? first.kind, prose(reason), times), element("td", {}, about(first, [...slices])));
}

function about({ gateway }, slices) {
  const links = slices.slice(0, NAMED).map((name) => element("a", { href: `#/slices/${encodeURIComponent(name)}` }, name));
  if (links.length < 2) return links[0] ?? gateway ?? "";
  const others = slices.length - links.length;
  return element("details", {}, element("summary", {}, counted(slices.length, "slice")), links.flatMap((link) => [link, " "]), others > 0 ? `and ${counted(others, "other")}` : null);
}
