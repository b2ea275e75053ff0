// The order of the list: worst first, idle slices last; and how many slices there are of each group.

import { groupOf, judged } from "./measured.js";
import { model, pathOf } from "./model.js";
import { countersFor, silence } from "./reports.js";

const RANKS = ["breach", "unknown", "changes", "above", "holds", "free", "idle"];
/** Groups whose slices stay as high in the list for so long, ms: rows do not jump to and fro. */
const LINGERING = ["breach", "above"];
const LINGERS = 10_000;

export class Arrangement {
  constructor() {
    this.chosen = null;
    this.shown = [];
    this.idleFrom = 0;
    this.counts = {};
    this.worst = new Map();
  }

  /** Show only the slices of a group; null shows all. */
  choose(group) {
    this.chosen = group || null;
  }

  /** Judge all slices anew: how many there are of each group. */
  count() {
    const counts = {};
    const silences = new Map();
    this.groups = model.slices.map((slice) => {
      const links = pathOf(slice);
      const key = links.join(" ");
      if (!silences.has(key)) silences.set(key, silence(links));
      const silent = silences.get(key);
      const group = groupOf(slice, judged(slice, silent ? null : countersFor(slice), silent));
      counts[group] = (counts[group] ?? 0) + 1;
      return group;
    });
    this.counts = counts;
    return counts;
  }

  /** Judge all slices anew, and arrange those to be shown. */
  refresh() {
    this.count();
    const now = Date.now();
    const ranked = model.slices.map((slice, index) => ({ slice, group: this.groups[index], rank: this.rank(slice.name, RANKS.indexOf(this.groups[index]), now) }));
    const chosen = this.chosen ? ranked.filter((one) => one.group === this.chosen) : ranked;
    // The slices are in the order of their names, and sorting keeps it.
    chosen.sort((one, other) => one.rank - other.rank);
    this.shown = chosen.map((one) => one.slice);
    const idle = chosen.findIndex((one) => one.rank === RANKS.indexOf("idle"));
    this.idleFrom = idle < 0 ? chosen.length : idle;
  }

  /** The worst rank of the last seconds. */
  rank(name, rank, now) {
    const known = this.worst.get(name);
    if (known && known.rank < rank && LINGERING.includes(RANKS[known.rank]) && now - known.at < LINGERS) return known.rank;
    this.worst.set(name, { rank, at: now });
    return rank;
  }
}
