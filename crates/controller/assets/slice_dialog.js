// Create and change a slice, with the admission answer while typing.

import { idempotencyKey, request, slicePath } from "./api.js";
import { admission, written } from "./admission.js";
import { announce, byId, element } from "./dom.js";
import { openDialog } from "./dialogs.js";
import { loadLinks, place } from "./model.js";
import { sliceForm } from "./slice_form.js";
import { undo } from "./undo.js";

/** Open the form for a new slice, or to change `known`. */
export async function openSliceDialog(known = null) {
  const before = document.activeElement;
  let [slice, etag] = [null, null];
  try {
    await loadLinks();
    if (known) ({ body: slice, etag } = await request("GET", slicePath(known.name)));
  } catch (error) {
    announce(error.message);
    return;
  }
  before?.focus();
  let answer = null;
  const form = sliceForm(slice, () => answer?.ask());
  const problem = element("p", { class: "problem", role: "alert" });
  answer = admission(form, (accepted) => {
    problem.textContent = "";
    dialog.main.dataset.refused = accepted === false;
  });
  const dialog = openDialog({
    heading: slice ? `Change ${slice.name}` : "New slice",
    body: form.node,
    foot: [answer.node, problem],
    submit: slice ? "Change" : "Create",
    className: "wide",
    onClose: () => answer.close(),
    onSubmit: () => submit({ form, slice, etag, answer, problem, dialog }),
  });
  form.first.focus();
  answer.ask();
}

async function submit({ form, slice, etag, answer, problem, dialog }) {
  const wanted = written(form);
  if (wanted instanceof Error) {
    wanted.field?.check(wanted.message);
    problem.textContent = wanted.message;
    (wanted.field?.input ?? wanted.control)?.focus();
    return;
  }
  const headers = { "idempotency-key": idempotencyKey(), ...(slice ? { "if-match": etag } : { "if-none-match": "*" }) };
  dialog.main.disabled = true;
  try {
    const { body } = await request("PUT", slicePath(wanted.name), { body: wanted, headers });
    place(body.name, body);
    dialog.close();
    announce(slice ? `${wanted.name} is changed.` : `${wanted.name} is created.`, { text: "Undo", run: () => undo(body.generation) });
    if (!slice) byId("new-slice")?.focus();
  } catch (error) {
    if (error.document?.offer) answer.refuse({ reason: error.message, ...error.document.offer });
    else if (error.status === 412) problem.textContent = slice ? "Somebody else has changed this slice meanwhile. Cancel, look at it, and change it again." : `There is already a slice “${wanted.name}”: choose another name.`;
    else problem.textContent = error.message;
  } finally {
    dialog.main.disabled = false;
  }
}
