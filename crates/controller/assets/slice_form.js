// The form of a slice: its name, path, packets and what is promised, read as the API takes it.

import { button, element, identity } from "./dom.js";
import { flowFields } from "./flow_fields.js";
import { choice, field, parseName, parsePorts, wholeNumber } from "./fields.js";
import { DIRECTIONS } from "./measured.js";
import { model, pathOf } from "./model.js";
import { NotAQuantity, exactSize } from "./quantities.js";
import { TERMS, stated } from "./terms.js";

/** Ways to say which packets belong to a slice that few need. */
const RARE = [
  ["dscp", "DSCP", wholeNumber(0, 63)],
  ["vlan", "VLAN", wholeNumber(0, 4094)],
  ["inner_vlan", "Inner VLAN", wholeNumber(0, 4094)],
  ["teid", "GTP-U tunnel (TEID)", wholeNumber(1, 4_294_967_295)],
];

/**
 * The fields of a slice; `slice` is what they begin with. `changed` is called at each input, and not when a field is left: an
 * answer that is replaced then would lose the focus.
 */
export function sliceForm(slice, changed) {
  const isNew = slice === null;
  const name = field("Name", { parse: parseName, text: slice?.name ?? "", required: "a slice needs a name", hint: "Small letters, digits, “.”, “_”, “-”." });
  const tenant = field("Tenant", { parse: parseName, text: slice?.tenant ?? "", hint: isNew ? "Empty: that of the token, or “default”." : "" });
  const path = pathField(slice);
  // These make it another slice.
  for (const one of [name, tenant, path]) one.input.readOnly = !isNew;
  const matches = matchFields(slice?.matches ?? [{}], changed);
  const terms = Object.fromEntries(DIRECTIONS.map((direction) => [direction, termFields(direction, slice, path)]));
  const node = element("div", { class: "form-body" },
    element("fieldset", {}, element("legend", {}, "Slice"), element("div", { class: "fields" }, name.node, tenant.node, path.node)),
    matches.node, DIRECTIONS.map((direction) => terms[direction].node));
  node.addEventListener("input", changed);
  return {
    node,
    first: isNew ? name.input : terms.forward.first,
    terms,
    /** The slice as the API takes it; throws the first mistake. */
    value() {
      const wanted = { name: name.value(), tenant: tenant.value() ?? undefined, path: path.value(), matches: matches.value() };
      for (const direction of DIRECTIONS) {
        const one = terms[direction].value();
        if (one) wanted[direction] = one;
      }
      if (!wanted.forward && !wanted.backward) throw new NotAQuantity("promise something in at least one direction");
      return wanted;
    },
  };
}

function pathField(slice) {
  const links = model.links.map((link) => link.name);
  const text = slice ? pathOf(slice).join(", ") : links.length === 1 ? links[0] : "";
  const id = identity("links");
  const one = field("Path", {
    text, list: links.length > 1 ? id : null, required: links.length > 1 ? "say over which link it goes" : "",
    hint: links.length > 1 ? `Links in order, with commas between them: ${shortList(links)}.` : "",
    parse(written) {
      const names = written.split(/[\s,]+/).filter(Boolean);
      const unknown = names.find((known) => links.length > 0 && !links.includes(known));
      if (unknown) throw new NotAQuantity(`there is no link “${unknown}”: ${shortList(links)}`);
      return names;
    },
  });
  one.node.append(element("datalist", { id }, links.map((value) => element("option", { value }))));
  return { ...one, value: () => one.value() ?? [], links: () => { try { return one.value() ?? links; } catch { return []; } } };
}

const shortList = (names) => (names.length > 5 ? `${names.slice(0, 5).join(", ")}, …` : names.join(", "));

/** Which packets: any of several descriptions. */
function matchFields(matches, changed) {
  const list = element("div", { class: "matches" });
  let rows = [];
  const add = (match) => {
    const row = matchRow(match, () => {
      rows = rows.filter((one) => one !== row);
      row.node.remove();
      renumber();
      changed();
      (rows.at(-1)?.first ?? more).focus();
    });
    rows.push(row);
    list.append(row.node);
    renumber();
    return row;
  };
  const renumber = () => {
    for (const row of rows) row.remove.hidden = rows.length === 1;
  };
  const more = button("Other packets, too", () => {
    add({}).first.focus();
    changed();
  }, { class: "plain" });
  for (const match of matches.length > 0 ? matches : [{}]) add(match);
  const node = element("fieldset", {}, element("legend", {}, "Packets"),
    element("p", { class: "hint" }, "As they go forward; backward, source and destination are exchanged. What is left empty may be anything."), list, more);
  return {
    node,
    value() {
      const found = rows.map((row) => row.value());
      if (found.some((match) => Object.keys(match).length === 0)) {
        throw Object.assign(new NotAQuantity("say which packets belong to the slice: at least one of these fields"), { control: rows.find((row) => Object.keys(row.value()).length === 0).first });
      }
      return found;
    },
  };
}

function matchRow(match, onRemove) {
  const known = match.protocol ?? "";
  const protocols = [["", "any"], ["udp", "UDP"], ["tcp", "TCP"], ["sctp", "SCTP"], ["icmp", "ICMP"]];
  if (known !== "" && !protocols.some(([value]) => value === String(known))) protocols.push([String(known), `number ${known}`]);
  const protocol = choice("Protocol", protocols, String(known));
  const address = (key, label) => [key, field(label, { text: match[key] ?? "", placeholder: "192.0.2.0/24" })];
  const port = (key, label) => [key, field(label, { text: match[key] ?? "", placeholder: "5201-5209", parse: parsePorts })];
  const fields = [address("source", "Source"), port("source_port", "Source port"), address("destination", "Destination"), port("destination_port", "Destination port")];
  const rare = RARE.map(([key, label, parse]) => [key, field(label, { text: match[key] === undefined || match[key] === null ? "" : String(match[key]), parse })]);
  const isOpen = rare.some(([, one]) => one.input.value !== "");
  const remove = button("Leave out", onRemove, { class: "plain" });
  const node = element("div", { class: "match" }, element("div", { class: "fields" }, protocol.node, fields.map(([, one]) => one.node)),
    element("details", { open: isOpen }, element("summary", {}, "DSCP, VLAN, tunnel"), element("div", { class: "fields" }, rare.map(([, one]) => one.node))), remove);
  return {
    node,
    remove,
    first: protocol.input,
    value() {
      const found = {};
      const chosen = protocol.value();
      if (chosen !== "") found.protocol = /^[0-9]+$/.test(chosen) ? Number(chosen) : chosen;
      for (const [key, one] of [...fields, ...rare]) {
        const value = one.value();
        if (value !== null) found[key] = value;
      }
      return found;
    },
  };
}

const WORDS = {
  forward: ["Forward", "→"],
  backward: ["Backward", "←"],
};

/** What is promised in one direction. */
function termFields(direction, slice, path) {
  const terms = slice?.[direction] ?? null;
  const [word, sign] = WORDS[direction];
  const rows = TERMS.map((one) => {
    const value = stated(terms, one) ?? null;
    return { ...one, field: field(one.label, { parse: one.parse, text: value === null ? "" : one.exact(value), placeholder: one.placeholder }) };
  });
  const [guarantee, maximum] = ["guarantee", "maximum"].map((part) => Object.fromEntries(rows.filter((one) => one.part === part).map((one) => [one.key, one.field])));
  const flows = flowFields(terms?.flows);
  const on = element("input", { type: "checkbox", id: identity("direction") });
  on.checked = terms !== null || (slice === null && direction === "forward");
  const fields = element("div", { class: "fields" }, rows.map((one) => one.field.node));
  const node = element("fieldset", { class: "terms" },
    element("legend", {}, element("label", { for: on.id }, on, " ", word, " ", element("span", { "aria-hidden": "true" }, sign))), fields, flows.node);
  const show = () => {
    fields.hidden = flows.node.hidden = !on.checked;
    const frame = largestFrame(path.links(), direction);
    guarantee.burst_bytes.input.placeholder = maximum.burst_bytes.input.placeholder = exactSize(usualBurst(frame));
  };
  on.addEventListener("change", show);
  node.addEventListener("focusin", show);
  show();
  return {
    node,
    first: guarantee.rate_bps.input,
    fields: guarantee,
    isOn: () => on.checked,
    value() {
      if (!on.checked) return null;
      const usual = usualBurst(largestFrame(path.links(), direction));
      const found = {};
      for (const { part, key, usual: least, field: one } of rows) {
        const value = one.value() ?? least ?? null;
        if (value !== null) (part ? (found[part] ??= {}) : found)[key] = value;
      }
      const needsRate = (part, fields, text) => {
        if (part && part.rate_bps === undefined) throw Object.assign(new NotAQuantity(text), { field: fields.rate_bps });
      };
      needsRate(found.guarantee, guarantee, "a burst or a delay needs a guaranteed rate");
      needsRate(found.maximum, maximum, "the burst of a maximum needs a maximum rate");
      if (found.guarantee) found.guarantee.burst_bytes ??= usual;
      if (found.maximum) found.maximum.burst_bytes ??= Math.max(usual, found.guarantee?.burst_bytes ?? 0);
      const ofFlows = flows.value();
      if (ofFlows !== null) found.flows = ofFlows;
      return found;
    },
  };
}

/** The largest frame of the links of a path. */
const largestFrame = (links, direction) =>
  Math.max(...model.links.filter((link) => links.includes(link.name)).map((link) => link[direction]?.largest_frame_bytes ?? 0), 1514);

/** The burst of a slice that names none: two of the largest frames. */
const usualBurst = (frame) => 2 * frame;
