// Fields of a form: a label, an input, what is wrong with it.

import { element, identity, mark, write } from "./dom.js";
import { NotAQuantity } from "./quantities.js";

/**
 * A field whose text `parse` reads; an empty one is null. `value()` throws what is wrong, with `field` set to this one.
 * Mistakes are shown once the field was left or `check()` was called.
 */
export function field(label, { parse = (text) => text, hint = "", placeholder = "", text = "", wide = false, list = null, required = "" }) {
  const [id, mistakeId, hintId] = [identity("field"), identity("mistake"), identity("hint")];
  const input = element("input", { id, type: "text", autocomplete: "off", autocapitalize: "none", spellcheck: "false", placeholder, list, maxlength: "200", "aria-describedby": hint ? `${hintId} ${mistakeId}` : mistakeId });
  input.value = text;
  const mistake = element("span", { class: "mistake", id: mistakeId });
  const node = element("div", { class: wide ? "field wide" : "field" }, element("label", { for: id }, label), input,
    hint && element("span", { class: "hint", id: hintId }, hint), mistake);
  let touched = false;
  const self = {
    node,
    input,
    value() {
      const written = input.value.trim();
      if (written === "") {
        if (required) throw Object.assign(new NotAQuantity(required), { field: self });
        return null;
      }
      try {
        return parse(written);
      } catch (error) {
        throw Object.assign(error, { field: self });
      }
    },
    set(value) {
      input.value = value ?? "";
      self.check();
    },
    /** Show what is wrong; whether nothing is. */
    check(found = null) {
      let problem = found;
      try {
        self.value();
      } catch (error) {
        problem ??= error.message;
      }
      write(mistake, problem ?? "");
      mark(input, "aria-invalid", problem ? "true" : null);
      return problem === null;
    },
  };
  input.addEventListener("blur", () => {
    touched ||= input.value.trim() !== "";
    if (touched) self.check();
  });
  input.addEventListener("input", () => {
    if (touched || input.hasAttribute("aria-invalid")) self.check();
  });
  return self;
}

/** A choice of one of `options`, [value, text]. */
export function choice(label, options, chosen) {
  const id = identity("field");
  const input = element("select", { id }, options.map(([value, text]) => element("option", { value }, text)));
  input.value = chosen;
  return { node: element("div", { class: "field" }, element("label", { for: id }, label), input), input, value: () => input.value };
}

/** A whole number from `least` to `most`. */
export const wholeNumber = (least, most) => (text) => {
  const value = /^[0-9]{1,15}$/.test(text) ? Number(text) : NaN;
  if (!(value >= least && value <= most)) throw new NotAQuantity(`a whole number from ${least} to ${most} is needed`);
  return value;
};

/** A name of a slice, tenant or link. */
export function parseName(text) {
  if (text.length > 63) throw new NotAQuantity("a name has at most 63 characters");
  if (!/^[a-z0-9][a-z0-9._-]*$/.test(text)) throw new NotAQuantity("a name has small letters, digits, “.”, “_” and “-”, and begins with a letter or digit");
  return text;
}

/** "80" or "80-90". */
export function parsePorts(text) {
  const [, first, last] = /^([0-9]{1,5})(?:\s*-\s*([0-9]{1,5}))?$/.exec(text) ?? [];
  if (first === undefined || Number(last ?? first) > 65_535 || Number(last ?? first) < Number(first)) {
    throw new NotAQuantity("a port is a number up to 65535, or a range such as 5201-5209");
  }
  return last === undefined ? String(Number(first)) : `${Number(first)}-${Number(last)}`;
}
