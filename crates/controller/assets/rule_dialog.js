// Add, change and remove a rule.

import { idempotencyKey, request } from "./api.js";
import { openDialog } from "./dialogs.js";
import { announce, byId, element, identity } from "./dom.js";
import { choice, field, parseName, wholeNumber } from "./fields.js";
import { model } from "./model.js";
import { NotAQuantity, exactRate, exactTime, parseRate, parseTime } from "./quantities.js";

/** Slices that a field offers. */
const OFFERED = 1_000;
const NANOS_PER_MS = 1_000_000;

const rulePath = (name) => `/v1/rules/${encodeURIComponent(name)}`;

/** Milliseconds, as the API counts. */
function parseMillis(text) {
  const nanos = parseTime(text);
  if (nanos % NANOS_PER_MS !== 0) throw new NotAQuantity("the time is counted in whole ms");
  return nanos / NANOS_PER_MS;
}

function slicesField(label, text, required, hint) {
  const id = identity("slices");
  const one = field(label, { parse: parseName, text, required, list: id, hint });
  one.node.append(element("datalist", { id }, model.slices.slice(0, OFFERED).map(({ name }) => element("option", { value: name }))));
  return one;
}

/** Open the form for a new rule, or to change `known`. `onChange` is called when it is done. */
export function openRuleDialog(known, onChange) {
  const rule = known?.rule;
  const name = field("Name", { parse: parseName, text: known?.name ?? "", required: "a rule needs a name", hint: "Small letters, digits, “.”, “_”, “-”." });
  name.input.readOnly = known !== null;
  const from = slicesField("Lender", rule?.from ?? "", "say which slice lends", "A slice with a guarantee.");
  const to = slicesField("Borrower", rule?.to ?? "", "say which slice borrows", "A slice on the same link.");
  const direction = choice("Direction", [["forward", "forward →"], ["backward", "backward ←"]], rule?.direction ?? "forward");
  const unused = field("Unused rate", { parse: parseRate, text: rule ? exactRate(rule.unused_bps) : "", placeholder: "40 Mbit/s", required: "say how much of its guarantee is left unused" });
  const wait = field("For", { parse: parseMillis, text: rule ? exactTime(rule.for_ms * NANOS_PER_MS) : "", placeholder: "60 s", hint: "Empty: at the first report of the gateway." });
  const weight = field("Weight while it borrows", { parse: wholeNumber(1, 65_535), text: rule?.weight ? String(rule.weight) : "", placeholder: "its own" });
  const fields = [name, from, to, direction, unused, wait, weight];
  const problem = element("p", { class: "problem", role: "alert" });
  const dialog = openDialog({
    heading: known ? `Change rule ${known.name}` : "New rule",
    body: element("div", { class: "form-body" }, element("div", { class: "fields" }, fields.map((one) => one.node)),
      element("p", { class: "hint" }, "The guarantee of the lender is never touched: it has it back within the time of one packet. The borrower gets a higher maximum, if it has one, and this weight.")),
    foot: [problem],
    submit: known ? "Change" : "Add",
    className: "wide",
    async onSubmit() {
      problem.textContent = "";
      try {
        const wanted = { from: from.value(), to: to.value(), direction: direction.value(), unused_bps: unused.value(), for_ms: wait.value() ?? 0 };
        if (weight.value() !== null) wanted.weight = weight.value();
        const path = rulePath(name.value());
        dialog.main.disabled = true;
        await request("PUT", path, { body: wanted, headers: { "idempotency-key": idempotencyKey() } });
        dialog.close();
        announce(known ? `Rule ${known.name} is changed.` : `Rule ${name.value()} is added.`);
        if (!known) byId("new-rule")?.focus();
        onChange();
      } catch (error) {
        error.field?.check(error.message);
        problem.textContent = error.message;
        error.field?.input.focus();
      } finally {
        dialog.main.disabled = false;
      }
    },
  });
  (known ? unused : name).input.focus();
}

export function openRemoveRuleDialog({ name, lent }, onChange) {
  const problem = element("p", { class: "problem", role: "alert" });
  const dialog = openDialog({
    heading: `Remove rule ${name}?`,
    body: [element("p", {}, lent ? "What it lends is taken back first." : "It lends nothing now."), problem],
    submit: "Remove",
    dangerous: true,
    async onSubmit() {
      dialog.main.disabled = true;
      try {
        await request("DELETE", rulePath(name), { headers: { "idempotency-key": idempotencyKey() } });
        dialog.close();
        announce(`Rule ${name} is removed.`);
        byId("new-rule")?.focus();
        onChange();
      } catch (error) {
        problem.textContent = error.message;
      } finally {
        dialog.main.disabled = false;
      }
    },
  });
  dialog.cancel.focus();
}
