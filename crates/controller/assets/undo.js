// Going back to the slices of an earlier generation: admitted as one batch, and itself a new generation.

import { idempotencyKey, request } from "./api.js";
import { announce } from "./dom.js";
import { count } from "./quantities.js";

/** Undo `generation`, if nothing was changed after it; else the history says what else would be undone. */
export async function undo(generation) {
  try {
    const { body: newest } = await request("GET", "/v1/generations?limit=1");
    if (newest.items[0]?.generation !== generation) {
      announce(`Generation ${count(generation)} is no longer the newest: undo it in the history.`, { text: "History", run: () => location.assign("#/history") });
      return;
    }
    await restore(generation - 1, generation);
    announce(`Undone: the slices are those of generation ${count(generation - 1)}.`);
  } catch (error) {
    announce(`Not undone: ${error.message}`);
  }
}

/** Refused (412) if `newest` is not the newest generation any more: nothing is undone that was not shown. */
export const restore = (generation, newest) =>
  request("POST", `/v1/generations/${generation}/restore`, { headers: { "idempotency-key": idempotencyKey(), "if-match": `"${newest}"` } });
