// Rules that lend what a slice leaves unused: which there are, what is lent now and why, and what was decided before.

import { read } from "./api.js";
import { button, byId, element, icon, prose, write } from "./dom.js";
import { verdictSign } from "./measured.js";
import { model, on } from "./model.js";
import { counted, moment, rate, time } from "./quantities.js";
import { silence } from "./reports.js";
import { openRemoveRuleDialog, openRuleDialog } from "./rule_dialog.js";

export const title = "Rules";

/** How often rules are read while the view is open, ms: of those that others add there is no event. */
const INTERVAL = 5_000;
/** Decisions shown of each rule. */
const DECISIONS = 5;

export function show(main) {
  const status = element("p", { class: "quiet status", role: "status" }, "Reading…");
  const list = element("ol", { class: "generations rules" });
  const add = button("New rule", () => openRuleDialog(null, refresh), { class: "primary", id: "new-rule" });
  main.append(element("div", { class: "controls" }, element("span", {}, "What a slice leaves of its guarantee is lent to another, until it uses it again."), add), status, list);
  let shown = "";
  let known = null;
  const draw = (rules = known) => {
    known = rules;
    if (!rules) return;
    const decisions = decisionsOf(model.events);
    const now = JSON.stringify([rules, rules.map((one) => [silentOf(one), decisions.get(one.name)?.map((event) => event.number)])]);
    if (now === shown) return;
    shown = now;
    const focused = list.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
    list.replaceChildren(...rules.map((one) => entry(one, decisions.get(one.name) ?? [], refresh)));
    if (focused) ([...list.querySelectorAll("button")].find((one) => one.getAttribute("aria-label") === focused) ?? add).focus();
    const lending = rules.filter((one) => one.lent).length;
    write(status, rules.length === 0 ? "There is no rule yet." : `${counted(rules.length, "rule")}, of which ${lending === 1 ? "1 lends" : `${lending} lend`} now.`);
  };
  let isGone = false;
  async function refresh() {
    try {
      const rules = await read("/v1/rules");
      if (!isGone) draw(rules);
    } catch (error) {
      if (!isGone) write(status, error.message);
    }
  }
  refresh();
  const timer = setInterval(refresh, INTERVAL);
  const stops = [
    on("events", () => {
      if (model.events[0]?.by?.startsWith("rule ")) refresh();
    }),
    ...["counters", "away"].map((topic) => on(topic, () => draw())),
  ];
  byId("new-rule")?.setAttribute("aria-haspopup", "dialog");
  return () => {
    isGone = true;
    clearInterval(timer);
    for (const stop of stops) stop();
  };
}

/** The newest decisions of each rule, by its name. */
function decisionsOf(events) {
  const found = new Map();
  for (const event of events) {
    if (event.kind !== "decision" || !event.by?.startsWith("rule ")) continue;
    const name = event.by.slice("rule ".length);
    const known = found.get(name) ?? [];
    if (known.length < DECISIONS) known.push(event);
    found.set(name, known);
  }
  return found;
}

/** Since when nothing is known of the gateway that decides for a rule. */
const silentOf = ({ gateway }) => silence(model.links.filter((link) => link.gateway === gateway).map((link) => link.name));

const named = (name) => element("a", { href: `#/slices/${encodeURIComponent(name)}` }, name);

function entry(record, decisions, onChange) {
  const { name, rule, lent } = record;
  const wait = rule.for_ms > 0 ? ` for ${time(rule.for_ms * 1_000_000)}` : "";
  const silent = silentOf(record);
  const unknown = verdictSign();
  unknown.show(silent ? ["unknown", () => silent.why, silent.since] : [null]);
  const state = silent ? unknown.node : lent ? element("span", { class: "verdict is-above" }, icon("above"), "lends") : element("span", { class: "verdict is-quiet" }, icon("quiet"), "lends nothing");
  const since = record.lent_since_ms ? ` since ${moment(record.lent_since_ms)}` : "";
  return element("li", {},
    element("div", { class: "generation-head" }, element("strong", {}, name), state, element("span", { class: "both" },
      button("Change", () => openRuleDialog(record, onChange), { "aria-label": `Change rule ${name}` }),
      button("Remove", () => openRemoveRuleDialog(record, onChange), { "aria-label": `Remove rule ${name}` }))),
    element("p", {}, "If ", named(rule.from), ` leaves ${rate(rule.unused_bps)} of its guarantee ${rule.direction} unused${wait}, `, named(rule.to), ` may use it${rule.weight ? `, with weight ${rule.weight}` : ""}. Gateway ${record.gateway} decides by its reports.`),
    lent && !silent ? element("p", { class: "lent" }, `Lent${since}`, record.reason ? [": ", prose(record.reason)] : null) : null,
    decisions.length > 0 ? [element("p", { class: "quiet" }, "Last decisions"), element("ul", {}, decisions.map((event) => element("li", {}, element("span", { class: "quiet" }, `${moment(event.at_ms)} `), prose(event.reason ?? ""))))] : null);
}
