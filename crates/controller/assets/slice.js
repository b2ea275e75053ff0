// One slice: what is promised, whether it holds, its drops and its flows.

import { delayReasons } from "./admission.js";
import { Away } from "./api.js";
import { chart, shownSeconds, spanButtons } from "./chart.js";
import { button, element, facts, mark, spoken, write } from "./dom.js";
import { ARROWS, DIRECTIONS, arrow, beyondGuarantee, judged, reasonWords, reasonsOf, stateSign, verdictSign } from "./measured.js";
import { loadSlice, model, on, pathOf } from "./model.js";
import { here, slicePast } from "./past.js";
import { count, moment, percent, perSecond, rate, time } from "./quantities.js";
import { openRemoveDialog } from "./remove_dialog.js";
import { countersFor, loadFlows, silence } from "./reports.js";
import { openSliceDialog } from "./slice_dialog.js";
import { TERMS, stated, termWords } from "./terms.js";

const INTERVAL = 1_000;

/** Show the slice `name` in `main`; returns how to leave it. */
export function show(main, parameters, name) {
  let listed = model.slices.find((one) => one.name === name) ?? null;
  let slice = listed;
  const [state, verdict] = [stateSign(), verdictSign()];
  const why = element("span", { class: "quiet" });
  const change = button("Change", () => openSliceDialog(slice));
  const remove = button("Remove", () => openRemoveDialog(slice));
  const about = element("div", {});
  const problem = element("p", { class: "notice", hidden: true });
  const charts = measuredCharts(name);
  const drops = element("div", {});
  const flows = element("div", {});
  main.append(element("p", { class: "back" }, element("a", { href: "#/slices" }, "All slices")), problem,
    element("div", { class: "signs" }, state.node, verdict.node, why, change, remove), about,
    section("Traffic", charts.node), section("Drops", drops), section("Flows", flows));

  const refresh = () => {
    for (const one of [change, remove]) one.disabled = !slice || slice.state === "draining";
    if (!slice) return;
    state.show(slice);
    about.replaceChildren(description(slice));
  };
  let loads = 0;
  const load = async () => {
    // Answers may come in another order than they were asked for.
    const own = (loads += 1);
    try {
      const found = await loadSlice(name);
      if (own !== loads) return;
      slice = found;
      problem.hidden = true;
      refresh();
    } catch (error) {
      if (error instanceof Away || own !== loads) return;
      problem.hidden = false;
      write(problem, error.status === 404 ? "This slice is gone." : error.message);
      if (error.status === 404) slice = null;
      refresh();
    }
  };
  const judge = () => {
    if (!slice) return;
    const [counters, silent] = [countersFor(slice), silence(pathOf(slice))];
    const found = judged(slice, counters, silent);
    verdict.show(found);
    write(why, found[1]?.() ?? "");
    charts.add(slice, counters);
    showDrops(drops, counters);
    if (!counters) showFlows(flows, []);
  };
  let asking = false;
  const askFlows = async () => {
    if (document.hidden || !slice || asking) return;
    asking = true;
    try {
      const found = await loadFlows(name);
      if (countersFor(slice)) showFlows(flows, found);
    } catch (error) {
      if (!(error instanceof Away) && error.status !== 404) write(why, error.message);
    } finally {
      asking = false;
    }
  };
  refresh();
  judge();
  load().then(() => {
    judge();
    askFlows();
  });
  const timers = [setInterval(askFlows, INTERVAL)];
  const stops = [on("counters", judge), on("away", judge)];
  const stop = on("slices", () => {
    const known = model.slices.find((one) => one.name === name);
    if (known && known !== listed) {
      // Lists do not say why delays are what they are.
      const before = known.version === slice?.version ? slice.delay_choice : undefined;
      [listed, slice] = [known, { ...known, delay_choice: known.delay_choice ?? before }];
      refresh();
    }
  });
  const stopEvents = on("events", () => {
    if (model.events[0]?.slice === name) load();
  });
  return () => {
    timers.forEach(clearInterval);
    charts.close();
    stop();
    stopEvents();
    for (const end of stops) end();
  };
}

const section = (heading, ...body) => element("section", {}, element("h2", {}, heading), body);

function description(slice) {
  const waiting = slice.unacknowledged?.length > 0 ? slice.unacknowledged.join(", ") : null;
  return element("div", {}, facts([
    ["Tenant", slice.tenant],
    ["Path", pathOf(slice).join(" → ")],
    ["Generation", count(slice.generation)],
    ["Created", slice.created_by ? `${moment(slice.created_at_ms)} by ${slice.created_by}` : moment(slice.created_at_ms)],
    ["Changed", slice.changed_at_ms > slice.created_at_ms ? moment(slice.changed_at_ms) : null],
    ["Waits for", waiting],
    ...(slice.problems ?? []).map((one) => [`Refused by ${one.gateway}`, one.reason]),
  ]), element("div", { class: "table-frame" }, termsTable(slice)), delayReasons(slice.delay_choice), element("h2", { class: "minor" }, "Packets"), element("ul", { class: "finding" }, slice.matches.map((match) => element("li", {}, matchWords(match)))));
}

function termsTable(slice) {
  const directions = DIRECTIONS.filter((direction) => slice[direction]);
  const words = directions.map((direction) => {
    const bound = slice.bound_ns?.[direction];
    return Object.fromEntries([...termWords(slice[direction]), ["Bound of delay", bound && time(bound)]]);
  });
  const usual = TERMS.filter((one) => !one.rare || directions.some((direction) => stated(slice[direction], one))).map((one) => one.head ?? one.label);
  const head = [...usual, "Flows", "Bound of delay"];
  const rows = directions.map((direction, index) => element("tr", {},
    element("th", { scope: "row" }, arrow(direction), element("span", { "aria-hidden": "true" }, ` ${direction}`)), head.map((name) => element("td", { "data-label": name }, words[index][name] || "–"))));
  return element("table", { class: "cards compact" }, element("thead", {}, element("tr", {}, [spoken("Direction"), ...head].map((text) => element("th", { scope: "col" }, text)))), element("tbody", {}, rows));
}

const PROTOCOLS = { 1: "ICMP", 6: "TCP", 17: "UDP", 132: "SCTP" };
const protocolWords = (number) => PROTOCOLS[number] ?? `protocol ${number}`;
const endWords = (address, port) => (port > 0 ? `${address.includes(":") ? `[${address}]` : address}:${port}` : address);

/** "UDP from 192.0.2.0/24 to port 5201". */
export function matchWords(match) {
  const part = (name, words) => (match[name] === null || match[name] === undefined ? [] : [words(match[name])]);
  const end = (word, address, port) => {
    const parts = [...part(address, String), ...part(port, (value) => `port ${value}`)];
    return parts.length > 0 ? [`${word} ${parts.join(", ")}`] : [];
  };
  const words = [
    ...part("protocol", (value) => (Number.isInteger(value) ? `IP protocol ${value}` : value.toUpperCase())),
    ...end("from", "source", "source_port"), ...end("to", "destination", "destination_port"),
    ...part("dscp", (value) => `DSCP ${value}`), ...part("vlan", (value) => `VLAN ${value}`), ...part("inner_vlan", (value) => `inner VLAN ${value}`), ...part("teid", (value) => `tunnel ${value}`),
  ];
  return words.length > 0 ? words.join(" ") : "every packet";
}

/** Throughput and delay of a slice over time, beside what it was promised since it was changed last. */
function measuredCharts(name) {
  const throughput = chart({ caption: "Throughput", text: rate });
  const delay = chart({ caption: "Delay, 99th percentile", text: time, isLog: true });
  let slice = null;
  const draw = () => {
    if (!slice) return;
    const spans = past.spans();
    const since = here(slice.changed_at_ms);
    const directions = DIRECTIONS.filter((direction) => slice[direction]);
    const all = (words, kind, of) => directions.map((direction) => ({ name: `${words}${direction}`, short: words.trim() || direction, kind: `${kind}-${direction}`, values: spans.map((span) => of(span[direction], direction, span)) }));
    const promised = (span, value) => (span.to > since ? value ?? null : null);
    const drops = all("dropped ", "line", (one) => one?.dropped_frames_ps ?? null).map((one, index) => ({ ...one, short: `${ARROWS[directions[index]]} drops` }));
    const now = Date.now();
    throughput.draw(now, {
      times: spans,
      series: all("", "line", (one) => one?.rate_bps ?? null),
      levels: all("guarantee ", "level", (_, direction, span) => promised(span, slice[direction].guarantee?.rate_bps)),
      drops,
    });
    const beyond = (one, direction) => beyondGuarantee(slice[direction], one);
    const delays = all("", "line", (one) => one?.delay_ns?.p99 ?? null).map((one, index) => ({ ...one, detail: (at) => detailOf(spans[at][directions[index]], beyond(spans[at][directions[index]], directions[index])) }));
    delay.draw(now, {
      times: spans,
      series: delays,
      levels: all("bound ", "level", (one, direction, span) => (beyond(one, direction) ? null : promised(span, slice.bound_ns?.[direction]))),
      drops,
    });
  };
  const past = slicePast(name, shownSeconds, draw);
  const spans = spanButtons(() => {
    past.again();
    draw();
  });
  addEventListener("scroll", draw, { passive: true });
  addEventListener("resize", draw);
  return {
    node: element("div", { class: "charts" }, element("div", { class: "chart-head" }, spans), throughput.node, delay.node),
    add(shown, counters) {
      slice = shown;
      past.add(model.reports.get(pathOf(slice)[0]), counters);
      draw();
    },
    close() {
      past.stop();
      removeEventListener("scroll", draw);
      removeEventListener("resize", draw);
    },
  };
}

/** The largest delay of an interval, and why the bound does not apply to it. */
const detailOf = (counted, beyond) => (counted?.delay_ns ? `${beyond ? ` (${beyond})` : ""}, at most ${time(counted.delay_ns.largest)}` : "");

function showDrops(place, counters) {
  const rows = DIRECTIONS.flatMap((direction) => reasonsOf(counters?.[direction]).map(([reason, number]) => [direction, reason, number]));
  if (rows.length === 0) {
    place.replaceChildren(element("p", { class: "quiet" }, counters ? "No frame was dropped in the last interval." : "What is dropped now is not known."));
    return;
  }
  place.replaceChildren(element("table", { class: "compact narrow" }, element("thead", {}, element("tr", {}, [spoken("Direction"), "Reason", "Frames"].map((text, index) => element("th", { scope: "col", class: index > 1 ? "number" : null }, text)))),
    element("tbody", {}, rows.map(([direction, reason, number]) => element("tr", {}, element("td", {}, arrow(direction)), element("td", {}, reasonWords(reason)), element("td", { class: "number" }, perSecond(number)))))));
}

/** Flows, largest first. */
function showFlows(place, flows) {
  if (flows.length === 0) {
    const text = "No flow in the last report. While this view is open, gateways report the flows of this slice.";
    if (place.textContent !== text) place.replaceChildren(element("p", { class: "quiet" }, text));
    return;
  }
  const head = ["", "Protocol", "Source", "Destination", "Throughput", "Of the slice", "Frames"];
  const total = { forward: 0, backward: 0 };
  for (const flow of flows) total[flow.direction] += flow.rate_bps;
  const rows = flows.map((flow) => element("tr", {}, element("td", {}, arrow(flow.direction)),
    [protocolWords(flow.protocol), endWords(flow.source, flow.source_port), endWords(flow.destination, flow.destination_port)].map((text, index) => element("td", { "data-label": head[index + 1] }, String(text))),
    [rate(flow.rate_bps), percent(total[flow.direction] > 0 ? flow.rate_bps / total[flow.direction] : 0), perSecond(flow.frames_ps)].map((text, index) => element("td", { class: "number", "data-label": head[index + 4] }, text))));
  place.replaceChildren(element("div", { class: "table-frame" }, element("table", { class: "cards compact" },
    element("thead", {}, element("tr", {}, [spoken("Direction"), ...head.slice(1)].map((text, index) => element("th", { scope: "col", class: index > 3 ? "number" : null }, text)))), element("tbody", {}, rows))));
  mark(place, "data-filled", true);
}
