// Who changed what and when, and the way back.

import { address, read } from "./api.js";
import { announce, button, byId, element, prose, write } from "./dom.js";
import { openDialog } from "./dialogs.js";
import { on } from "./model.js";
import { count, counted, moment, rate } from "./quantities.js";
import { restore } from "./undo.js";
import { matchWords } from "./slice.js";
import { termWords } from "./terms.js";

export const title = "History";

const PAGE = 50;

export function show(main) {
  const list = element("ol", { class: "generations" });
  const status = element("p", { class: "quiet status", role: "status" }, "Reading…");
  const more = button("Older", () => load(), { hidden: true });
  main.append(status, list, more);
  let [before, shown, newest, reading, round] = [null, 0, null, 0, 0];
  const describe = () => write(status, shown === 0 ? "Nothing has been changed yet." : "Newest first. A change that is undone is a new generation; nothing is ever taken out of the history.");
  /** The next page, or the first one again; what was asked for before that is of another list. */
  const load = async (again = false) => {
    if (again) round += 1;
    const own = round;
    reading += 1;
    try {
      const page = await read(address("/v1/generations", { before: again ? null : before, limit: PAGE }));
      if (own !== round) return;
      const first = page.items[0]?.generation ?? 0;
      // Generations do not change: without a newer one the list is the same.
      if (again && first === newest) return describe();
      const focused = list.contains(document.activeElement) ? document.activeElement : null;
      if (again) {
        [shown, newest] = [0, null];
        list.replaceChildren();
      }
      newest ??= first;
      list.append(...page.items.map((one) => entry(one, newest)));
      // What has the focus may have gone away with the list.
      if (again && focused) ([...list.querySelectorAll("button")].find((one) => one.getAttribute("aria-label") === focused.getAttribute("aria-label")) ?? byId("title")).focus({ preventScroll: true });
      shown += page.items.length;
      before = page.next ?? null;
      more.hidden = before === null;
      describe();
    } catch (error) {
      if (own === round) write(status, error.message);
    } finally {
      reading -= 1;
    }
  };
  load();
  let timer = 0;
  const look = () => {
    if (reading > 0) timer = setTimeout(look, 500);
    else load(true);
  };
  const stop = on("slices", () => {
    clearTimeout(timer);
    timer = setTimeout(look, 500);
  });
  return () => {
    clearTimeout(timer);
    stop();
  };
}

function entry(generation, newest) {
  const { generation: number, at_ms: at, by, changes, reason } = generation;
  const isNewest = number === newest;
  const back = isNewest
    ? button("Undo", () => ask(number - 1, newest), { "aria-label": `Undo generation ${number}` })
    : button("Return to this", () => ask(number, newest), { "aria-label": `Return to this generation, ${number}` });
  return element("li", {},
    element("div", { class: "generation-head" }, element("strong", {}, `Generation ${count(number)}`), element("span", { class: "quiet" }, ` ${moment(at)}, by ${by}`), element("span", { class: "gap" }), back),
    reason ? element("p", { class: "quiet" }, prose(reason)) : null,
    element("ul", {}, changes.slice(0, 20).map((one) => element("li", {}, changeWords(one))), changes.length > 20 ? element("li", { class: "quiet" }, `and ${counted(changes.length - 20, "other change")}`) : null));
}

function ask(number, newest) {
  const undone = newest - number;
  const problem = element("p", { class: "problem", role: "alert" });
  const dialog = openDialog({
    heading: undone === 1 ? "Undo the last change?" : `Return to generation ${count(number)}?`,
    body: [element("p", {}, undone === 1 ? "The slices become those before it." : `The slices become those of then: the ${counted(undone, "change")} since is undone, whoever made it.`.replace("changes since is", "changes since are")),
      element("p", { class: "quiet" }, "It is admitted as one batch, or not at all."), problem],
    submit: undone === 1 ? "Undo" : "Return",
    async onSubmit() {
      dialog.main.disabled = true;
      try {
        await restore(number, newest);
        dialog.close();
        announce(`The slices are those of generation ${count(number)}.`);
      } catch (error) {
        problem.textContent = error.message;
      } finally {
        dialog.main.disabled = false;
      }
    },
  });
  dialog.main.focus();
}

/** "voice changed: guaranteed rate forward 8 → 10 Mbit/s". */
function changeWords({ slice, before, after }) {
  const name = element("a", { href: `#/slices/${encodeURIComponent(slice)}` }, slice);
  if (!before && !after) return [slice, " purged"];
  if (!before) return [name, " created: ", guaranteeWords(after)];
  if (!after) return [slice, " removed"];
  const old = flat(before);
  const now = flat(after);
  const keys = [...new Set([...Object.keys(old), ...Object.keys(now)])].filter((key) => old[key] !== now[key]);
  return [name, " changed: ", keys.length === 0 ? "nothing" : keys.map((key) => `${key} ${old[key] ?? "none"} → ${now[key] ?? "none"}`).join("; ")];
}

/** Everything a slice promises, by a name for people. */
function flat(slice) {
  const found = { tenant: slice.tenant, path: slice.path?.join(" → "), packets: slice.matches.map(matchWords).join("; ") };
  for (const direction of ["forward", "backward"]) {
    const terms = slice[direction];
    if (!terms) continue;
    for (const [name, words] of termWords(terms)) found[`${name.toLowerCase()} ${direction}`] = words;
  }
  return found;
}

function guaranteeWords(slice) {
  const sides = ["forward", "backward"].filter((direction) => slice[direction]).map((direction) => {
    const { guarantee } = slice[direction];
    return guarantee ? `${rate(guarantee.rate_bps)} ${direction}` : `no guarantee ${direction}`;
  });
  return sides.join(", ");
}
