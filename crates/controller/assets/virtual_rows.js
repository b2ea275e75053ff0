// A long table of which only the rows in view exist. `--row` of the table says how high rows are, `--compact` the last ones.

import { element } from "./dom.js";

/** Rows kept above and below the window. */
const BESIDE = 8;

/**
 * `make()` returns `{node, show(item, index, isCompact)}`, a row that can be shown for one item after another.
 * `items()` is the list; rows from `compactFrom()` on are compact.
 */
export class VirtualRows {
  constructor(table, { make, items, compactFrom }) {
    Object.assign(this, { table, make, items, compactFrom });
    this.before = element("tr", { class: "spacer", "aria-hidden": "true" });
    this.after = element("tr", { class: "spacer", "aria-hidden": "true" });
    this.body = element("tbody", {}, this.before, this.after);
    table.append(this.body);
    this.rows = new Map();
    this.spare = [];
    this.current = 0;
    this.asked = false;
    this.ask = () => {
      if (this.asked) return;
      this.asked = true;
      requestAnimationFrame(() => {
        this.asked = false;
        if (table.isConnected) this.place();
      });
    };
    addEventListener("scroll", this.ask, { passive: true });
    addEventListener("resize", this.ask);
    this.body.addEventListener("keydown", (event) => this.onKey(event));
  }

  /** After this it listens to nothing. */
  close() {
    removeEventListener("scroll", this.ask);
    removeEventListener("resize", this.ask);
  }

  /** Heights of a row and of a compact row, px. */
  get heights() {
    const style = getComputedStyle(this.table);
    const em = Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
    return ["--row", "--compact"].map((name) => (Number.parseFloat(style.getPropertyValue(name)) || 3.5) * em);
  }

  /** Where row `index` begins, px below the first. */
  top(index, [height, compact]) {
    const usual = Math.min(index, this.compactFrom());
    return usual * height + (index - usual) * compact;
  }

  /** The row at `top` px below the first. */
  at(top, [height, compact]) {
    const usual = this.compactFrom();
    return top < usual * height ? Math.floor(top / height) : usual + Math.floor((top - usual * height) / compact);
  }

  /** The items of the rows that there are. */
  shown() {
    return [...this.rows.keys()].sort((one, other) => one - other).map((index) => this.items()[index]).filter(Boolean);
  }

  show(row, index) {
    row.show(this.items()[index], index, index >= this.compactFrom());
  }

  /** Show the list as it is now. */
  refresh() {
    this.place();
    for (const [index, row] of this.rows) this.show(row, index);
  }

  place() {
    const [items, heights] = [this.items(), this.heights];
    const above = Math.max(0, -this.body.getBoundingClientRect().top);
    const first = Math.max(0, Math.min(this.at(above, heights) - BESIDE, items.length - 1));
    const end = Math.min(items.length, this.at(above + innerHeight, heights) + 1 + BESIDE);
    // The page is never shorter in between: the browser would move the window.
    this.before.style.height = `${this.top(first, heights)}px`;
    this.after.style.height = `${this.top(items.length, heights) - this.top(end, heights)}px`;
    let next = this.after;
    for (let index = end - 1; index >= first; index -= 1) {
      const row = this.rows.get(index) ?? this.insert(index, next);
      next = row.node;
    }
    const focused = this.retire(first, end);
    this.table.setAttribute("aria-rowcount", items.length + 1);
    if (focused) this.table.focus({ preventScroll: true });
  }

  /** Take rows out of the page that are no longer in view; whether one of them had the focus. */
  retire(first, end) {
    let focused = false;
    for (const [index, row] of this.rows) {
      if (index >= first && index < end) continue;
      focused ||= row.node.contains(document.activeElement);
      row.node.remove();
      this.rows.delete(index);
      this.spare.push(row);
    }
    return focused;
  }

  insert(index, next) {
    const row = this.spare.pop() ?? this.make();
    this.body.insertBefore(row.node, next);
    this.rows.set(index, row);
    row.node.dataset.index = index;
    row.node.setAttribute("aria-rowindex", index + 2);
    this.show(row, index);
    return row;
  }

  /** Arrows, Page Up and Down, Home and End move from row to row. */
  onKey(event) {
    const row = event.target.closest("tr[data-index]");
    if (!row || event.altKey || event.ctrlKey || event.metaKey) return;
    const page = Math.max(1, Math.floor(innerHeight / this.heights[0]) - 2);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (!(event.key in steps)) return;
    event.preventDefault();
    const target = Number(row.dataset.index) + steps[event.key];
    this.focus(Math.max(0, Math.min(target, this.items().length - 1)));
  }

  /** Bring row `index` into view and give it the focus. */
  focus(index) {
    const heights = this.heights;
    const [head, height] = [this.table.tHead.offsetHeight, heights[0]];
    const top = this.body.getBoundingClientRect().top + scrollY + this.top(index, heights);
    const [from, to] = [scrollY + head + height, scrollY + innerHeight - 2 * height];
    if (top < from) scrollTo({ top: top - head - height, behavior: "instant" });
    else if (top > to) scrollTo({ top: top - innerHeight + 2 * height, behavior: "instant" });
    this.place();
    this.rows.get(index)?.node.querySelector("a, button")?.focus({ preventScroll: true });
  }
}
