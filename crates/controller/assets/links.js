// Links: what passes now and passed in the last hour beside what is promised and what is left, for each direction.

import { chart, shownSeconds, spanButtons } from "./chart.js";
import { element, write } from "./dom.js";
import { DIRECTIONS, arrow, verdictSign } from "./measured.js";
import { linkNamed, loadLinks, model, on } from "./model.js";
import { linkPast } from "./past.js";
import { silence } from "./reports.js";
import { counted, percent, rate, size, time } from "./quantities.js";

export const title = "Links";

/** Slices that have a colour of their own. */
const SLOTS = 8;

export function show(main) {
  const cards = new Map();
  const list = element("div", { class: "links" });
  const draw = () => cards.forEach((one) => one.draw());
  const spans = spanButtons(() => {
    cards.forEach((one) => one.again());
    draw();
  });
  const empty = element("p", { class: "empty" }, "No gateway has announced a link yet. Start one that knows this controller; its links then appear here.");
  const about = element("p", { class: "quiet" }, "Rates in the bytes that the link counts. A gap is a time in which the gateway reported nothing.");
  const head = element("div", { class: "chart-head" }, about, spans);
  main.append(head, list, empty);
  const refresh = () => {
    empty.hidden = model.links.length > 0 || !model.knowsLinks;
    head.hidden = model.links.length === 0;
    for (const [name, one] of cards) {
      if (linkNamed(name)) continue;
      one.close();
      cards.delete(name);
    }
    for (const { name } of model.links) if (!cards.has(name)) cards.set(name, card(name));
    list.replaceChildren(...model.links.map(({ name }) => cards.get(name).node));
    cards.forEach((one) => one.refresh());
  };
  refresh();
  loadLinks().catch(() => {});
  addEventListener("scroll", draw, { passive: true });
  addEventListener("resize", draw);
  const count = () => cards.forEach((one) => one.add());
  const stops = [on("links", refresh), on("counters", count), on("away", draw)];
  return () => {
    removeEventListener("scroll", draw);
    removeEventListener("resize", draw);
    cards.forEach((one) => one.close());
    for (const stop of stops) stop();
  };
}

function card(name) {
  const sign = verdictSign();
  const sides = DIRECTIONS.map((direction) => directionOf(name, direction));
  const draw = () => {
    const [link, silent] = [linkNamed(name), silence([name])];
    node.classList.toggle("is-unknown", silent !== null);
    sign.show(silent ? ["unknown", () => silent.why, silent.since] : [null]);
    if (link) sides.forEach((side) => side.draw(link, past));
  };
  const past = linkPast(name, shownSeconds, draw);
  const gateway = element("span", {});
  const node = element("section", { class: "link", "aria-label": `Link ${name}` },
    element("h2", {}, name),
    element("p", { class: "quiet" }, "gateway ", gateway, sign.node, " · ", element("a", { href: `#/slices?link=${encodeURIComponent(name)}` }, "its slices")),
    sides.map((side) => side.node));
  return {
    node,
    draw,
    again: past.again,
    close: past.stop,
    refresh() {
      const link = linkNamed(name);
      write(gateway, link.gateway);
      sides.forEach((side) => side.refresh(link));
      draw();
    },
    add() {
      past.add(linkNamed(name), model.reports.get(name));
      draw();
    },
  };
}

function directionOf(name, direction) {
  const text = element("span", {});
  const facts = element("dl", { class: "facts small" });
  const traffic = chart({ caption: [arrow(direction), " ", direction, ": traffic of slices"], label: `${name} ${direction}: traffic of slices`, text: rate, isStacked: true });
  const slots = new Array(SLOTS).fill(null);
  return {
    node: element("div", { class: "side" }, traffic.node, element("p", { class: "side-head" }, text), facts),
    refresh(link) {
      const side = link[direction];
      // What guarantees take of the link, in the bytes that it counts.
      const reserved = side.promised?.link_rate_bps ?? 0;
      write(text, `${rate(reserved)} reserved of ${rate(side.rate_bps)} (${percent(reserved / Math.max(side.rate_bps, 1))})`);
      facts.replaceChildren(...factsOf(side, reserved).map(([term, value]) => element("div", {}, element("dt", {}, term), element("dd", {}, value))));
    },
    draw(link, past) {
      const spans = past.spans(link, direction);
      traffic.draw(Date.now(), shownOf(spans, slots));
    },
  };
}

/** What a chart of a direction shows: the busiest slices, each in its place while it is one of them, all others as one, and what they are held against. */
function shownOf({ times, rate_bps: rates, promised_bps: promised, total, dropped_ps: dropped, slices }, slots) {
  const busiest = slices.slice(0, SLOTS);
  slots.forEach((name, index) => { if (!busiest.some((one) => one.name === name)) slots[index] = null; });
  for (const { name } of busiest) if (!slots.includes(name)) slots[slots.indexOf(null)] = name;
  const series = slots.map((name, index) => name && { name, kind: `slot-${index}`, values: busiest.find((one) => one.name === name).values }).filter(Boolean);
  // Rates have seven digits: less than their last one is nothing.
  const restOf = (whole, index) => {
    const rest = series.reduce((left, one) => left - (one.values[index] ?? 0), whole);
    return rest > whole * 1e-5 ? rest : 0;
  };
  const rest = total.map((whole, index) => (whole === null ? null : restOf(whole, index)));
  return {
    times,
    series: [...series, { name: series.length > 0 ? "others" : "all traffic", kind: "slot-others", values: rest }],
    levels: [{ name: "capacity", kind: "capacity", values: rates }, { name: "promised", kind: "promised", values: promised }],
    drops: [{ name: "dropped", kind: "all-drops", values: dropped }],
  };
}

function factsOf(side, reserved) {
  const left = side.left?.rate_bps ?? Math.max(0, side.rate_bps - reserved);
  return [
    ["Unreserved", rate(left)],
    ["Smallest delay", side.left?.smallest_delay_ns ? time(side.left.smallest_delay_ns) : null],
    ["Buffer left", side.left?.buffer_bytes !== undefined && side.left?.buffer_bytes !== null ? size(side.left.buffer_bytes) : null],
    ["Guarantees", side.promised?.slices !== undefined ? counted(side.promised.slices, "slice") : null],
    ["Largest frame", `${side.largest_frame_bytes} B`],
    ["Rate counts", side.counts],
  ].filter(([, value]) => value);
}
