// Remove a slice, after asking.

import { idempotencyKey, request, slicePath } from "./api.js";
import { announce, element } from "./dom.js";
import { openDialog } from "./dialogs.js";
import { undo } from "./undo.js";

export function openRemoveDialog(slice) {
  const problem = element("p", { class: "problem", role: "alert" });
  const dialog = openDialog({
    heading: `Remove ${slice.name}?`,
    body: [
      element("p", {}, "Its waiting frames still leave under its guarantee; until then its capacity stays promised. Its traffic then gets what others leave."),
      problem,
    ],
    submit: "Remove",
    dangerous: true,
    async onSubmit() {
      dialog.main.disabled = true;
      try {
        const { body } = await request("DELETE", slicePath(slice.name), { headers: { "idempotency-key": idempotencyKey() } });
        dialog.close();
        announce(`${slice.name} is removed.`, body?.generation ? { text: "Undo", run: () => undo(body.generation) } : null);
      } catch (error) {
        problem.textContent = error.message;
      } finally {
        dialog.main.disabled = false;
      }
    },
  });
  dialog.cancel.focus();
}
