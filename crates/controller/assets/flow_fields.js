// What is done about the flows of a slice: the fields, and the words.

import { element, identity } from "./dom.js";
import { field } from "./fields.js";
import { exactRate, parseRate, rate } from "./quantities.js";

/** The usual interval and number of intervals in a row. */
const USUAL = { interval_ms: 100, times: 2 };

/** Fields of one direction, which begin with `flows` of the API. */
export function flowFields(flows) {
  const known = flows ?? {};
  const box = (label, isOn) => {
    const input = element("input", { type: "checkbox", id: identity("flows") });
    input.checked = Boolean(isOn);
    return { input, node: element("p", { class: "check" }, element("label", { for: input.id }, input, " ", label)) };
  };
  const weighed = box("The weight counts for each active flow", known.weight_per_flow);
  const queued = box("A queue for each flow", known.flow_queueing);
  const elephants = field("Report flows above", { parse: parseRate, text: known.elephants ? exactRate(known.elephants.rate_bps) : "", placeholder: "no rate" });
  const node = element("details", { open: Object.keys(known).length > 0 }, element("summary", {}, "Flows"),
    weighed.node, queued.node, element("div", { class: "fields" }, elephants.node));
  return {
    node,
    /** As the API takes it; null where nothing is done. */
    value() {
      const found = {};
      if (weighed.input.checked) found.weight_per_flow = true;
      if (queued.input.checked) found.flow_queueing = true;
      const above = elephants.value();
      if (above !== null) found.elephants = { ...USUAL, ...known.elephants, rate_bps: above };
      return Object.keys(found).length > 0 ? found : null;
    },
  };
}

/** "weighed by active flows, a queue each, reported above 5 Mbit/s". */
export function flowWords(flows) {
  const { weight_per_flow: weighed, flow_queueing: queued, elephants } = flows ?? {};
  return [weighed && "weighed by active flows", queued && "a queue each", elephants && `reported above ${rate(elephants.rate_bps)}`].filter(Boolean).join(", ");
}
