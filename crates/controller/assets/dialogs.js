// Dialogs: modal, closed by Escape, with the focus back where it was.

import { button, byId, element, identity } from "./dom.js";

/**
 * Open a dialog with `heading` and `body`; `foot` stays in view, above the buttons. `onSubmit` is called by Enter and by the main button;
 * the dialog stays open until `close()`.
 */
export function openDialog({ heading, body, foot = [], submit, onSubmit, className = "", dangerous = false, onClose = () => {} }) {
  const before = document.activeElement;
  const id = identity("heading");
  const main = element("button", { type: "submit", class: dangerous ? "primary dangerous" : "primary" }, submit);
  const cancel = button("Cancel", () => close());
  const form = element("form", { novalidate: true, on: {
    submit(event) {
      event.preventDefault();
      if (!main.disabled) onSubmit();
    },
  } }, element("h2", { id }, heading), body,
  element("div", { class: "dialog-foot" }, foot, element("div", { class: "dialog-actions" }, element("span", { class: "gap" }), cancel, main)));
  const node = element("dialog", { class: className, "aria-labelledby": id }, form);
  const close = () => node.close();
  node.addEventListener("close", () => {
    node.remove();
    onClose();
    (before?.isConnected ? before : byId("title")).focus();
  });
  document.body.append(node);
  node.showModal();
  return { node, main, cancel, close };
}
