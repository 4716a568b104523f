import type { Attached } from "../chat/messages";
import type { InputID, InputPart } from "../protocol";
import { toInput } from "./input";
import type { SessionView } from "./session";

/** Draft is the unsent input of a session. */
export interface Draft {
  text: string;
  attached: Attached[];
  /** the newest input of the session when the user changed the draft last; absent: there was none */
  seen?: InputID;
}

interface Input {
  inputId: InputID;
  parts: Pick<InputPart, "text" | "attachment">[];
}

/** newestInput returns the newest input of a session: of its history, of the running turn or of the queue. */
export function newestInput(view: SessionView): InputID | undefined {
  return inputsOf(view).at(-1)?.inputId;
}

/**
 * wasSent reports whether the session has received a draft since the user changed it last. VS Code stores drafts with a delay, so a window that
 * is killed can leave a draft of an input that was sent, or of its beginning.
 */
export function wasSent(draft: Draft, view: SessionView): boolean {
  const inputs = inputsOf(view);
  const at = inputs.findIndex(({ inputId }) => inputId === draft.seen);
  return (draft.seen === undefined || at >= 0) && inputs.slice(at + 1).some((input) => begins(input, draft));
}

/** sameContent reports whether two drafts would be sent as the same input. */
export function sameContent(a: Draft, b: Draft): boolean {
  const same = ({ label, text, file }: Attached, other?: Attached) => label === other?.label && text === other.text && file?.digest === other.file?.digest;
  return a.text === b.text && a.attached.length === b.attached.length && a.attached.every((one, at) => same(one, b.attached[at]));
}

/** inputsOf returns the inputs of a session, oldest first. */
function inputsOf({ items, accepted, queue }: SessionView): Input[] {
  const inputs = new Map<InputID, Input>();
  for (const { kind, origin, text, attachment } of items) {
    if (kind === "userMessage" && origin?.inputId !== undefined) {
      const input = inputs.get(origin.inputId) ?? { inputId: origin.inputId, parts: [] };
      inputs.set(origin.inputId, { ...input, parts: [...input.parts, { text, attachment }] });
    }
  }
  for (const { inputId, input } of [...Object.values(accepted), ...queue]) {
    inputs.set(inputId, inputs.get(inputId) ?? { inputId, parts: input });
  }
  return [...inputs.values()];
}

/** begins reports whether an input has the attachments of a draft, and its text begins with that of the draft. */
function begins({ parts }: Input, { text, attached }: Draft): boolean {
  const typed = text.trim();
  const has = (wanted: InputPart) => parts.some((part) => (wanted.attachment ? part.attachment?.digest === wanted.attachment.digest : part.text === wanted.text));
  return toInput("", attached).every(has) && (typed === "" || (parts.at(-1)?.text ?? "").startsWith(typed));
}
