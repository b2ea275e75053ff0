// The answer of the admission test to what a form says, while it is being written.

import { request } from "./api.js";
import { button, debounced, element, icon, prose } from "./dom.js";
import { atLeast, atMost, exactRate, exactSize, exactTime, rate, time } from "./quantities.js";

/** After the last key, ms. */
const WAIT = 200;

/**
 * Where the answer to the slice of `form` is shown. `ask()` after each change; `onAnswer(accepted)` gets true, false, or null
 * while it is not known.
 */
export function admission(form, onAnswer) {
  const node = element("div", { class: "admission", role: "status", "aria-live": "polite", "aria-atomic": "true" });
  let asked = null;
  const say = (sign, text, ...more) => {
    node.ariaBusy = "false";
    node.dataset.sign = sign;
    const symbol = { holds: "holds", broken: "broken", waits: "waits" }[sign];
    node.replaceChildren(element("p", { class: "answer" }, icon(symbol), element("span", {}, prose(text))), ...more.filter(Boolean));
  };
  const test = debounced(async () => {
    asked?.abort();
    asked = new AbortController();
    const wanted = written(form);
    if (wanted instanceof Error) {
      say("waits", `Not complete: ${wanted.message}.`);
      onAnswer(null);
      return;
    }
    try {
      const { body } = await request("POST", "/v1/offers", { body: wanted, signal: asked.signal });
      if (body.accepted) say("holds", "Would be accepted.", bounds(body), ...delayReasons(body.delay_choice));
      else refuse(body);
      onAnswer(body.accepted);
    } catch (error) {
      if (error.name === "AbortError") return;
      if (error.document?.offer) refuse({ reason: error.message, ...error.document.offer });
      else say("broken", error.message);
      onAnswer(false);
    }
  }, WAIT);
  const refuse = (answer) => {
    say("broken", answer.reason ?? "It cannot be promised.", takes(form, answer));
  };
  return {
    node,
    ask() {
      // What it says is of before the change until there is an answer.
      node.ariaBusy = "true";
      asked?.abort();
      test();
    },
    /** Show a refusal that came with another request. */
    refuse,
    close() {
      test.cancel();
      asked?.abort();
    },
  };
}

/** What the form says as a slice, or what is missing. */
export function written(form) {
  try {
    return form.value();
  } catch (error) {
    return error;
  }
}

function bounds(answer) {
  const known = Object.entries(answer.bound_ns ?? {}).filter(([, bound]) => bound !== null && bound !== undefined);
  if (known.length === 0) return null;
  const most = answer.largest_rate_bps ? ` Up to ${rate(answer.largest_rate_bps)} would fit.` : "";
  return element("p", { class: "quiet" }, known.map(([direction, bound], index) => `${index > 0 ? ", " : "Delay at most "}${time(bound)} ${direction}`), ".", most);
}

/** Why delays that were not stated are what they are: a paragraph for each direction. */
export function delayReasons(choices) {
  return Object.entries(choices ?? {}).filter(([, choice]) => choice && choice.reason !== "stated").map(([direction, choice]) => {
    const why = choice.reason === "smallest"
      ? `the smallest that fitted when it was admitted, or the one from before a change, not the default of ${time(choice.default_ns)} (burst / rate, within the delays of the links)`
      : "the default (burst / rate, within the delays of the links)";
    return element("p", { class: "quiet", "data-delay": choice.reason }, `No delay is stated ${direction}: it is ${why}.`);
  });
}

/** A button for each number that would be accepted instead: pressing it writes it into the form. */
function takes(form, answer) {
  const direction = answer.refused_on?.direction ?? (form.terms.forward.isOn() ? "forward" : "backward");
  const { fields } = form.terms[direction];
  const offers = [
    ["largest_rate_bps", fields.rate_bps, (value) => exactRate(atMost(value)), (text) => `Take ${text}`],
    ["largest_burst_bytes", fields.burst_bytes, (value) => exactSize(atMost(value)), (text) => `Take a burst of ${text}`],
    ["smallest_delay_ns", fields.delay_ns, (value) => exactTime(atLeast(value)), (text) => `Take a delay of ${text}`],
  ];
  const buttons = offers.filter(([key]) => answer[key] > 0).map(([key, one, exact, words]) => {
    const text = exact(answer[key]);
    return button(words(text), () => {
      one.set(text);
      one.input.focus();
      one.input.dispatchEvent(new Event("input", { bubbles: true }));
    }, { class: "take" });
  });
  if (buttons.length === 0) return null;
  return element("div", { class: "takes" }, element("span", { class: "quiet" }, "It would fit with: "), buttons);
}
