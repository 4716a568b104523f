import type { FromWebview } from "../chat/messages";
import { quotedOf } from "../model/input";
import type { Item } from "../protocol";
import { button, h } from "./dom";
import type { Highlights } from "./highlights";
import { quotedElement } from "./itemParts";
import type { Pictures } from "./pictures";
import type { ItemRow } from "./rows";

/** Shown is what a message needs to show its parts. */
export interface Shown {
  pictures: Pictures;
  highlights: Highlights;
  post: (message: FromWebview) => void;
  /** fold shows a body below a title on request */
  fold: (key: string, title: string, body: () => Node[]) => HTMLElement;
}

/** messageElements shows an input as one bubble: what is attached to it, then its text. */
export function messageElements(row: ItemRow, shown: Shown): Node[] {
  const parts = [row.item, ...(row.parts ?? [])];
  const attached = parts.flatMap((part) => attachedElement(part, shown) ?? []);
  const text = textOf(parts);
  return [
    h("div", { class: "bubble" }, attached.length > 0 && h("div", { class: "attached" }, ...attached), (text !== "" || attached.length === 0) && h("div", { class: "text" }, text)),
    actions(row, text, shown.post),
  ];
}

/** attachedElement shows a file that is a part of an input; undefined for its text. */
function attachedElement(part: Item, { pictures, highlights, fold }: Shown): HTMLElement | undefined {
  if (part.attachment) {
    return pictures.small(part.attachment);
  }
  const quoted = quotedOf(part.text ?? "");
  return quoted && quotedElement(quoted, highlights, (title, body) => fold(part.itemId, title, body));
}

/** textOf returns what the user wrote in an input. */
function textOf(parts: Item[]): string {
  return parts.flatMap(({ text }) => (text === undefined || quotedOf(text) ? [] : [text])).join("\n");
}

/** actions offer to undo a message: the first one of a turn with its turn, one that steered a turn without the part before it. */
function actions({ item: { turnId, itemId }, steered }: ItemRow, text: string, post: Shown["post"]): HTMLElement {
  const undoTurn = () => button("Undo turn", () => post({ type: "rewind", turnId: turnId ?? "", text }), { title: "Undo this turn and all later ones: the conversation, the files, or both" });
  const undoMessage = () => button("Undo from here", () => post({ type: "rewindMessage", itemId, text }), { title: "Undo this message and everything after it. The earlier part of the turn and all files stay as they are." });
  const stored = !itemId.startsWith("input:");
  return h("div", { class: "actions" }, turnId !== undefined && !steered && undoTurn(), steered && stored && undoMessage());
}
