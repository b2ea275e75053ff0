// The page: which view is shown, who is asked for a token, whether the controller answers.

import * as api from "./api.js";
import { byId, mark, write } from "./dom.js";
import * as eventsView from "./events.js";
import * as historyView from "./history.js";
import * as linksView from "./links.js";
import { loadLinks, model, on, onReach, start } from "./model.js";
import { counted, moment } from "./quantities.js";
import { silentGateways, startReports } from "./reports.js";
import * as rulesView from "./rules.js";
import * as sliceView from "./slice.js";
import * as slicesView from "./slices.js";
import { askForToken, forgetToken } from "./token_dialog.js";

const VIEWS = { slices: slicesView, links: linksView, rules: rulesView, history: historyView, events: eventsView };

let leave = () => {};
let shown = null;

/** Show the view that the address names. */
function route() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/");
  const item = name === "slices" && rest.length > 0 ? decoded(rest.join("/")) : null;
  const view = item === null ? VIEWS[name] ?? slicesView : sliceView;
  leave();
  const main = byId("main");
  main.replaceChildren();
  const heading = item ?? view.title;
  write(byId("title"), heading);
  document.title = `${heading} – Slicewise`;
  for (const link of document.querySelectorAll(".contents a")) {
    mark(link, "aria-current", link.hash === `#/${VIEWS[name] ? name : "slices"}` ? "page" : null);
  }
  leave = view.show(main, new URLSearchParams(query), item);
  if (shown !== null && shown !== path) {
    scrollTo({ top: 0, behavior: "instant" });
    byId("title").focus({ preventScroll: true });
  }
  shown = path;
  finding();
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** One sentence: what there is. */
function finding() {
  const { links } = model;
  if (links.length === 0) return write(byId("finding"), "");
  const directions = links.flatMap((link) => ["forward", "backward"].map((side) => link[side])).filter(Boolean);
  const fullest = Math.max(...directions.map((side) => (side.promised?.link_rate_bps ?? 0) / Math.max(side.rate_bps, 1)));
  const text = `${counted(links.length, "link")}; the busier direction is ${Math.round(fullest * 100)} % reserved.`;
  return write(byId("finding"), text);
}

/** Let a worker keep the files of this page: also those that were loaded before it was there. */
async function keepFiles(workers) {
  await workers.register("assets/worker.js", { scope: "/" });
  if (workers.controller) return;
  await new Promise((done) => workers.addEventListener("controllerchange", done, { once: true }));
  const loaded = performance.getEntriesByType("resource").map((one) => new URL(one.name).pathname);
  const files = new Set(["/", ...loaded.filter((path) => path.startsWith("/assets/"))]);
  await Promise.all([...files].map((path) => fetch(path)));
}

function showAway() {
  const notice = byId("away");
  notice.hidden = !model.isAway;
  const since = model.heard ? ` Everything is unknown since ${moment(model.heard)}; promises are shown as they were then.` : "";
  write(notice, model.isAway ? `The controller does not answer.${since} Gateways forward on with their last slices. Trying again…` : "");
  document.documentElement.classList.toggle("is-unknown", model.isAway);
  showSilent();
}

function showSilent() {
  const notice = byId("silent");
  const silent = model.isAway ? [] : [...silentGateways()].map(([name, since]) => `${name} since ${moment(since)}`);
  notice.hidden = silent.length === 0;
  const who = silent.length === 1 ? `gateway ${silent[0]}: its` : `${silent.length} gateways: ${silent.join(", ")}. Their`;
  write(notice, silent.length > 0 ? `No counters of ${who} slices are unknown. A gateway that runs forwards on with its last slices.` : "");
}

function showRefused() {
  const notice = byId("refused");
  const [first, ...others] = model.refused;
  notice.hidden = !first;
  const more = others.length > 0 ? ` (and ${counted(others.length, "other gateway")})` : "";
  write(notice, first ? `A gateway is refused and keeps its slices: ${first}${more}` : "");
}

api.listen({ unauthorized: askForToken, reach: onReach });
addEventListener("hashchange", route);
on("links", finding);
on("away", showAway);
on("links", showRefused);
on("links", showSilent);
on("counters", showSilent);
const signOut = byId("sign-out");
signOut.hidden = !api.token();
signOut.addEventListener("click", forgetToken);
// The page itself is there when the controller is not. Only over https or on this machine.
if (navigator.serviceWorker) keepFiles(navigator.serviceWorker).catch(() => {});
start().catch((error) => {
  if (error.status !== 401) write(byId("finding"), error.message);
});
route();
loadLinks().catch(() => {});
startReports();
