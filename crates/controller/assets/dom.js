// Elements of the page. Text is always text, never markup.

/** An element with attributes and children. `on` holds listeners, `data` the data attributes. */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  set(node, attributes);
  node.append(...flattened(children));
  return node;
}

/** The same of SVG. */
export function drawn(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  set(node, attributes);
  node.append(...flattened(children));
  return node;
}

function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    } else if (name === "data") {
      Object.assign(node.dataset, value);
    } else if (value !== null && value !== undefined && value !== false) {
      node.setAttribute(name, value === true ? "" : value);
    }
  }
}

const flattened = (children) =>
  children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : unbroken(String(child))));

/** A number stays on one line with its unit. */
export const unbroken = (text) => text.replace(/(\d) (%|[kMGT]?bit\/s|[kMG]?i?B\b|[mnµ]?s\b|min\b)/g, "$1\u00a0$2");

/** A message: what stands between backticks is code. */
export function prose(text) {
  const parts = text.split("`");
  return parts.map((part, index) => (index % 2 === 1 && index < parts.length - 1 ? element("code", {}, part) : part));
}

/** Write `text` into `node` if it is another one: unchanged text costs no layout. */
export function write(node, text) {
  const wanted = unbroken(text);
  if (node.textContent !== wanted) node.textContent = wanted;
}

/** Set or remove an attribute if it changes. */
export function mark(node, name, value) {
  if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value === true ? "" : value);
}

/** One of the symbols in the page. */
export function icon(name) {
  return drawn("svg", { "aria-hidden": "true", class: "icon", focusable: "false" }, drawn("use", { href: `#icon-${name}` }));
}

/** What only a screen reader says. */
export const spoken = (text) => element("span", { class: "spoken" }, text);

export const byId = (id) => document.getElementById(id);

let numbered = 0;
/** An identity that no other element has. */
export const identity = (prefix) => `${prefix}-${(numbered += 1)}`;

export function button(text, onClick, attributes = {}) {
  return element("button", { type: "button", ...attributes, on: { click: onClick } }, text);
}

/** Names and values. */
export function facts(entries) {
  return element("dl", { class: "facts" }, entries.filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
}

/** Call `action` once, `wait` ms after the last call. */
export function debounced(action, wait) {
  let timer = 0;
  const call = (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...values), wait);
  };
  call.cancel = () => clearTimeout(timer);
  return call;
}

/** Say `text` to a screen reader, and show it for some seconds, with one thing to do about it. */
export function announce(text, action = null) {
  const place = byId("announcements");
  const note = element("div", { class: "announcement" }, element("span", {}, text));
  const close = () => note.remove();
  if (action) {
    note.append(button(action.text, () => {
      close();
      action.run();
    }, { class: "plain" }));
  }
  note.append(button("×", close, { class: "plain", "aria-label": "Close" }));
  place.replaceChildren(note);
  setTimeout(close, action ? 20_000 : 8_000);
}
