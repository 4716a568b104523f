import type { FromWebview } from "../chat/messages";
import { isWhole } from "../model/callWords";
import { changesOf, textHunks } from "../model/diff";
import type { FileChange, ItemID, SandboxRefusal } from "../protocol";
import { argumentElements } from "./arguments";
import { isDenied } from "./callHead";
import { diffElement } from "./diff";
import { button, h } from "./dom";
import type { Highlights } from "./highlights";
import { decidedElement, maxShownChars, outputOf } from "./itemParts";
import type { ItemRow } from "./rows";

/** CallView is what the details of a call need to show their parts. */
export interface CallView {
  highlights: Highlights;
  post: (message: FromWebview) => void;
  /** fold shows a body below a title on request */
  fold: (key: string, title: string, body: () => Node[]) => HTMLElement;
  /** long shows the beginning of a text, and the rest on request */
  long: (key: string, text: string) => HTMLElement;
}

/** callBody shows what a call changed, or its arguments and its output, and how it was decided. Of a denied call that is all. */
export function callBody({ item, progress }: ItemRow, view: CallView): Node[] {
  const { itemId, args, decision, output } = item;
  if (decision && isDenied(item)) {
    return [decidedElement(decision), view.fold(`${itemId}:args`, "Arguments", () => argumentElements(args, view.highlights))];
  }
  const text = outputOf(output) ?? progress;
  const elsewhere = isWhole(item) ? "command" : undefined; // the line of the call has it
  return [
    ...(output?.change ? changes(output.change, view) : argumentElements(args, view.highlights, elsewhere)),
    ...(decision ? [decidedElement(decision)] : []),
    ...(text && !output?.change ? [view.long(`${itemId}:all`, text)] : []),
    ...(output?.refusal ? [h("p", { class: "refusal" }, output.refusal.what), ...againButtons(itemId, output.refusal, view)] : []),
  ];
}

/** changes shows the diff of each file of a change. Several files have a title each. */
function changes(change: FileChange, { highlights, post }: CallView): Node[] {
  const all = changesOf({ ...change, diff: change.diff.slice(0, maxShownChars) });
  return all.flatMap((one) => [
    ...(all.length > 1 ? [h("p", { class: "facts" }, h("b", {}, one.path), ` +${one.added} \u2212${one.removed}`)] : []),
    diffElement(textHunks(one.diff), one.path, highlights),
    button("Open diff", () => post({ type: "diff", change: all.length > 1 ? one : change }), { class: "link" }),
  ]);
}

/** againButtons offer to run a refused call once more, the one that allows less first. */
function againButtons(itemId: ItemID, refusal: SandboxRefusal, { post }: CallView): Node[] {
  const again = (text: string, withHosts: boolean): Node => button(text, () => post({ type: "again", itemId, withHosts }), { title: "The agent reads the output at its next step" });
  const hosts = refusal.withHosts ? [again(`Run once with ${refusal.withHosts.hosts.join(", ")}`, true)] : [];
  return [...hosts, ...(refusal.retry === undefined ? [] : [again("Run once outside the sandbox", false)])];
}
