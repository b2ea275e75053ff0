// Links: what is promised and what is left, for each direction.

import { element, mark, write } from "./dom.js";
import { DIRECTIONS, arrow, bar, verdictSign } from "./measured.js";
import { loadLinks, model, on } from "./model.js";
import { silence } from "./reports.js";
import { counted, percent, rate, size, time } from "./quantities.js";

export const title = "Links";

export function show(main) {
  const list = element("div", {});
  main.append(list);
  let judge = () => {};
  const refresh = () => {
    if (model.links.length === 0) {
      if (!model.knowsLinks) return;
      list.replaceChildren(element("p", { class: "empty" }, "No gateway has announced a link yet. Start one that knows this controller; its links then appear here."));
      return;
    }
    const cards = model.links.map(card);
    list.replaceChildren(element("div", { class: "links" }, cards.map((one) => one.node)));
    judge = () => cards.forEach((one) => one.judge());
    judge();
  };
  refresh();
  loadLinks().catch(() => {});
  const stops = [on("links", refresh), on("counters", () => judge()), on("away", () => judge())];
  return () => stops.forEach((stop) => stop());
}

function card(link) {
  const sign = verdictSign();
  const node = element("section", { class: "link", "aria-label": `Link ${link.name}` },
    element("h2", {}, link.name),
    element("p", { class: "quiet" }, "gateway ", link.gateway, sign.node, " · ", element("a", { href: `#/slices?link=${encodeURIComponent(link.name)}` }, "its slices")),
    DIRECTIONS.filter((direction) => link[direction]).map((direction) => directionOf(link[direction], direction)));
  const judge = () => {
    const silent = silence([link.name]);
    node.classList.toggle("is-unknown", silent !== null);
    sign.show(silent ? ["unknown", () => silent.why, silent.since] : [null]);
  };
  return { node, judge };
}

function directionOf(side, direction) {
  const track = bar();
  // What guarantees take of the link, in the bytes that it counts.
  const reserved = side.promised?.link_rate_bps ?? 0;
  const left = side.left?.rate_bps ?? Math.max(0, side.rate_bps - reserved);
  track.show(reserved / Math.max(side.rate_bps, 1), null, "");
  const text = element("span", {});
  write(text, `${rate(reserved)} reserved of ${rate(side.rate_bps)} (${percent(reserved / Math.max(side.rate_bps, 1))})`);
  const facts = [
    ["Unreserved", rate(left)],
    ["Smallest delay", side.left?.smallest_delay_ns ? time(side.left.smallest_delay_ns) : null],
    ["Buffer left", side.left?.buffer_bytes !== undefined && side.left?.buffer_bytes !== null ? size(side.left.buffer_bytes) : null],
    ["Guarantees", side.promised?.slices !== undefined ? counted(side.promised.slices, "slice") : null],
    ["Largest frame", `${side.largest_frame_bytes} B`],
    ["Rate counts", side.counts],
  ].filter(([, value]) => value);
  return element("div", { class: "side" }, element("p", { class: "side-head" }, arrow(direction), " ", element("strong", {}, direction), " ", text), track.node,
    element("dl", { class: "facts small" }, facts.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value)))));
}
