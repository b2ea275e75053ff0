// The list of slices: filter, live figures, and what can be done with each.

import { byId, button, debounced, element, icon, mark, write } from "./dom.js";
import { Arrangement } from "./arrangement.js";
import { DIRECTIONS, GROUPS, delayLine, dropLine, judged, stateSign, throughputLine, verdictOf, verdictSign } from "./measured.js";
import { MOST_SLICES, model, on, pathOf, setFilter } from "./model.js";
import { count, counted } from "./quantities.js";
import { loadPasts } from "./past.js";
import { countersFor, silence } from "./reports.js";
import { openSliceDialog } from "./slice_dialog.js";
import { openRemoveDialog } from "./remove_dialog.js";
import { VirtualRows } from "./virtual_rows.js";

export const title = "Slices";

/** Most slices whose past is read together. */
const MOST_IN_VIEW = 200;

/** Show the view in `main`; returns how to leave it. */
export function show(main, parameters) {
  const arranged = new Arrangement();
  const tiles = groupTiles(parameters.get("sign"), (group) => {
    arranged.choose(group);
    controls.choose(group);
    refresh();
  });
  arranged.choose(parameters.get("sign"));
  const controls = filters(parameters);
  const status = element("p", { class: "quiet status", role: "status" });
  const table = element("table", { class: "slices", tabindex: "-1", "aria-label": "Slices" }, head());
  const empty = element("div", { class: "empty", hidden: true });
  main.append(tiles.node, controls.node, status, element("div", { class: "table-frame" }, table), empty);

  const past = pasts(() => rows.shown().map((slice) => slice.name), () => rows.refresh());
  const rows = new VirtualRows(table, { make: () => row(past.of), items: () => arranged.shown, compactFrom: () => arranged.idleFrom });
  const arrange = () => {
    arranged.refresh();
    tiles.show(arranged.counts);
  };
  const judge = () => {
    // Rows do not move away from under a pointer or a focus.
    if (table.matches(":hover, :focus-within")) tiles.show(arranged.count());
    else arrange();
    rows.refresh();
    past.read();
    write(status, statusText(arranged));
  };

  const refresh = () => {
    arrange();
    rows.refresh();
    timed();
    write(status, statusText(arranged));
    fillEmpty(empty, table);
    controls.refresh();
  };
  const stop = [
    on("slices", refresh),
    on("links", () => {
      controls.refresh();
      fillEmpty(empty, table);
    }),
    on("counters", judge),
    on("away", judge),
  ];
  refresh();
  setFilter(filterOf(parameters));
  return () => {
    controls.close();
    rows.close();
    for (const end of stop) end();
  };
}

/** Marks for measurements: when the first rows were there, and when all were. */
function timed() {
  for (const [name, is] of [["first-rows", model.slices.length > 0], ["all-rows", model.slices.length > 0 && !model.reading]]) {
    if (is && performance.getEntriesByName(name).length === 0) performance.mark(name);
  }
}

const filterOf = (parameters) => ({
  name_contains: parameters.get("search") ?? "",
  state: parameters.get("state") ?? "",
  link: parameters.get("link") ?? "",
  tenant: parameters.get("tenant") ?? "",
});

/** The last minutes of the slices in view: read every 10 s, and when others come into view. */
function pasts(names, onRead) {
  let [known, asked, at] = [new Map(), "", -Infinity];
  return {
    of: (name) => known.get(name),
    async read() {
      const wanted = names().slice(0, MOST_IN_VIEW);
      const isNew = wanted.join() !== asked;
      if (wanted.length === 0 || (!isNew && performance.now() - at < 10_000)) return;
      [asked, at] = [wanted.join(), performance.now()];
      try {
        known = await loadPasts(wanted);
        onRead();
      } catch {
        asked = "";
      }
    },
  };
}

/** How many slices there are of each group: a button that shows only those. */
function groupTiles(chosen, onChoose) {
  let pressed = chosen;
  const tiles = GROUPS.map(([group, words]) => {
    const number = element("strong", {});
    const node = button([number, " ", element("span", {}, words)], () => {
      pressed = pressed === group ? null : group;
      onChoose(pressed);
    }, { class: "tile", "data-group": group, "aria-pressed": "false" });
    return { group, number, node };
  });
  return {
    node: element("div", { class: "tiles", role: "group", "aria-label": "Slices by what they do now" }, tiles.map((one) => one.node)),
    show(counts) {
      for (const { group, number, node } of tiles) {
        const found = counts[group] ?? 0;
        write(number, count(found));
        node.hidden = group === "free" && found === 0 && pressed !== group;
        mark(node, "data-none", found === 0);
        node.setAttribute("aria-pressed", String(pressed === group));
      }
    },
  };
}

function statusText({ chosen, shown }) {
  const { slices, reading, cut, filter } = model;
  const isFiltered = Object.values(filter).some(Boolean);
  if (cut) return `The first ${counted(MOST_SLICES, "slice")}: search to see others.`;
  if (slices.length === 0 && (reading || !model.isRead)) return reading ? "Reading…" : "";
  const part = chosen ? `, of which ${count(shown.length)} ${shown.length === 1 ? "is" : "are"} shown` : "";
  return `${counted(slices.length, "slice")}${isFiltered ? " found" : ""}${part}${reading ? ", reading more…" : ""}`;
}

function fillEmpty(empty, table) {
  const isEmpty = model.slices.length === 0 && model.isRead && model.knowsLinks && !model.reading;
  empty.hidden = !isEmpty;
  mark(table, "hidden", isEmpty);
  if (!isEmpty) return;
  if (Object.values(model.filter).some(Boolean)) {
    empty.replaceChildren(element("p", {}, "No slice matches. "), element("p", {}, element("a", { href: "#/slices" }, "Show all slices")));
  } else if (model.links.length === 0) {
    empty.replaceChildren(element("p", {}, "No gateway has announced a link yet. Start one that knows this controller; then slices can be promised on its link."));
  } else {
    empty.replaceChildren(element("p", {}, "There is no slice yet."), button("New slice", () => openSliceDialog(), { class: "primary" }));
  }
}

/** Search, state, link, and the button for a new slice. */
function filters(parameters) {
  const search = element("input", { type: "search", id: "search", value: parameters.get("search") ?? "", autocomplete: "off", spellcheck: "false", maxlength: "63", "aria-keyshortcuts": "/" });
  const state = element("select", { id: "state" }, [["", "any state"], ["admitted", "admitted"], ["installed", "installed"], ["draining", "draining"]].map(([value, text]) => element("option", { value }, text)));
  const link = element("select", { id: "link" });
  state.value = parameters.get("state") ?? "";
  let sign = parameters.get("sign");
  const note = () => {
    const filter = { search: search.value.trim(), state: state.value, link: link.value, tenant: parameters.get("tenant") ?? "", sign };
    const query = new URLSearchParams(Object.entries(filter).filter(([, value]) => value));
    history.replaceState(null, "", `#/slices${query.size > 0 ? `?${query}` : ""}`);
    return query;
  };
  const apply = () => setFilter(filterOf(note()));
  search.addEventListener("input", debounced(apply, 150));
  state.addEventListener("change", apply);
  link.addEventListener("change", apply);
  const shortcut = (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog")) return;
    event.preventDefault();
    search.focus();
  };
  addEventListener("keydown", shortcut);
  let known = null;
  const refresh = () => {
    const names = model.links.map((one) => one.name);
    const chosen = model.filter.link || parameters.get("link") || "";
    if (known === names.join(" ")) return;
    known = names.join(" ");
    const all = chosen && !names.includes(chosen) ? [chosen, ...names] : names;
    link.replaceChildren(element("option", { value: "" }, "any link"), ...all.map((name) => element("option", { value: name }, name)));
    link.value = chosen;
  };
  const node = element("form", { class: "controls", role: "search", on: { submit: (event) => event.preventDefault() } },
    element("label", { class: "grows" }, "Search ", search), element("label", {}, "State ", state), element("label", {}, "Link ", link),
    button("New slice", () => openSliceDialog(), { class: "primary", id: "new-slice" }));
  const choose = (group) => {
    sign = group;
    note();
  };
  return { node, refresh, choose, close: () => removeEventListener("keydown", shortcut) };
}

function head() {
  const names = [["Slice", "name"], ["State", "state"], ["Throughput of guarantee", "throughput"], ["Delay, p99 of bound", "delay"], ["Dropped", "dropped"]];
  return element("thead", {}, element("tr", { "aria-rowindex": "1" },
    names.map(([text, name]) => element("th", { scope: "col", class: name }, text)), element("th", { scope: "col", class: "actions" }, element("span", { class: "spoken" }, "Actions"))));
}

/** A row, shown for one slice after another. */
function row(pastOf) {
  const link = element("a", { class: "name" });
  const place = element("span", { class: "quiet" });
  const [state, verdict] = [stateSign(), verdictSign()];
  const lines = { throughput: DIRECTIONS.map(throughputLine), delay: DIRECTIONS.map(delayLine), dropped: DIRECTIONS.map(dropLine) };
  let slice = null;
  const change = button(icon("change"), () => openSliceDialog(slice), { class: "plain act" });
  const remove = button(icon("remove"), () => openRemoveDialog(slice), { class: "plain act" });
  const cell = (name, label, ...children) => element("td", { class: name, "data-label": label }, children);
  const node = element("tr", {},
    element("th", { scope: "row", class: "name" }, link, place),
    cell("state", null, state.node, verdict.node),
    cell("throughput", "Throughput", lines.throughput.map((one) => one.node)),
    cell("delay", "Delay, p99", lines.delay.map((one) => one.node)),
    cell("dropped", "Dropped", lines.dropped.map((one) => one.node)),
    cell("actions", null, change, remove));
  const show = (item, index, isCompact) => {
    if (!item) return;
    node.classList.toggle("idle", isCompact);
    if (slice?.name !== item.name) {
      mark(link, "href", `#/slices/${encodeURIComponent(item.name)}`);
      mark(change, "aria-label", `Change ${item.name}`);
      mark(remove, "aria-label", `Remove ${item.name}`);
      mark(change, "title", "Change");
      mark(remove, "title", "Remove");
      write(link, item.name);
    }
    slice = item;
    write(place, [item.tenant, pathOf(item).join(" · ")].filter(Boolean).join(", "));
    state.show(item);
    change.disabled = remove.disabled = item.state === "draining";
    showFigures(item, lines, verdict, pastOf(item.name));
  };
  return { node, show };
}

function showFigures(slice, lines, verdict, past) {
  const counters = countersFor(slice);
  DIRECTIONS.forEach((direction, index) => {
    const [terms, now, bound] = [slice[direction], counters?.[direction], slice.bound_ns?.[direction]];
    const [found] = verdictOf(terms, now, bound);
    lines.throughput[index].show(terms, now, past);
    lines.delay[index].show(terms, now, bound);
    lines.dropped[index].show(terms, now && { ...now, verdict: found });
  });
  verdict.show(judged(slice, counters, silence(pathOf(slice))));
}

/** Where the focus goes when a dialog over the list closes. */
export const home = () => byId("new-slice");
