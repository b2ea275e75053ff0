// What happens, as it happens.

import { element, prose, write } from "./dom.js";
import { model, on } from "./model.js";
import { moment } from "./quantities.js";

export const title = "Events";

/** Events shown at a time. */
const SHOWN = 300;

export function show(main) {
  const status = element("p", { class: "quiet status" });
  const pause = element("input", { type: "checkbox", id: "pause" });
  const body = element("tbody", {});
  main.append(element("div", { class: "controls" }, element("label", { for: "pause" }, pause, " Hold the list")), status,
    element("div", { class: "table-frame" }, element("table", { class: "cards compact events" },
      element("thead", {}, element("tr", {}, ["No.", "When", "What", "About"].map((text) => element("th", { scope: "col" }, text)))), body)));
  let newest = null;
  let asked = false;
  const refresh = () => {
    asked = false;
    if (pause.checked) return;
    const fresh = [];
    for (const event of model.events) {
      if (newest !== null && event.number <= newest || fresh.length >= SHOWN) break;
      fresh.push(event);
    }
    newest = model.events[0]?.number ?? newest;
    body.prepend(...fresh.map(row));
    while (body.rows.length > SHOWN) body.lastElementChild.remove();
    write(status, body.rows.length === 0 ? "Nothing has happened yet." : `Newest first; the last ${SHOWN} are shown.`);
  };
  pause.addEventListener("change", refresh);
  refresh();
  return on("events", () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(refresh);
  });
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

function row(event) {
  const about = event.slice ? element("a", { href: `#/slices/${encodeURIComponent(event.slice)}` }, event.slice) : event.gateway ?? "";
  const reason = [event.by ? ` by ${event.by}` : "", event.reason ? `: ${event.reason}` : ""].join("");
  return element("tr", {}, element("td", { class: "quiet" }, String(event.number)), element("td", { class: "quiet" }, moment(event.at_ms)), element("td", {}, WORDS[event.kind] ?? event.kind, prose(reason)), element("td", {}, about));
}
