// Where the controller asks who one is: the token, kept for this tab only.

import { forget } from "./model.js";
import { setToken, token } from "./api.js";
import { element, identity } from "./dom.js";
import { openDialog } from "./dialogs.js";

let isOpen = false;

export function askForToken(problem) {
  if (isOpen) return;
  isOpen = true;
  const id = identity("field");
  const input = element("input", { id, type: "password", autocomplete: "off", spellcheck: "false", required: true });
  const why = token() ? problem.message : "This controller wants a token.";
  const dialog = openDialog({
    heading: "Who are you?",
    body: [
      element("p", {}, why),
      element("div", { class: "field wide" }, element("label", { for: id }, "Token"), input,
        element("span", { class: "hint" }, "It is kept in this tab and forgotten when the tab is closed.")),
    ],
    submit: "Continue",
    onClose() {
      isOpen = false;
    },
    onSubmit() {
      if (input.value.trim() === "") return;
      setToken(input.value.trim());
      location.reload();
    },
  });
  input.focus();
  return dialog;
}

export function forgetToken() {
  setToken(null);
  forget();
  location.reload();
}
