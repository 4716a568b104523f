import { changedLine, factsOf, fileTitle, hunkCount, missingText, tally } from "../model/approvals";
import type { Decision, FilePreview, Hunk, Session } from "../protocol";
import { diffElement } from "./diff";
import { button, h } from "./dom";
import type { Highlights } from "./highlights";

/** Preview shows what a call will do. */
export interface Preview {
  element: HTMLElement;
  /** the call has neither a command nor files; its arguments say what it does */
  bare: boolean;
  /** the changes that the user takes, counted from 0 over all files; undefined: all */
  taken(): number[] | undefined;
}

/** previewOf returns the preview of an approval: its command, or the diffs of its files. open opens a diff in the editor; changed is called after the user took or left a change. */
export function previewOf(decision: Decision, session: Session | undefined, highlights: Highlights, open: (file: number) => void, changed: () => void): Preview {
  const { command, files = [], hosts = [] } = decision.detail ?? {};
  const boxes: HTMLInputElement[] = [];
  const choosable = hunkCount(decision) > 0;
  const box = (hunk: Hunk) => {
    if (!choosable) {
      return undefined;
    }
    const input = h("input", {});
    input.type = "checkbox";
    input.checked = true;
    input.addEventListener("change", () => {
      input.closest("label")?.nextElementSibling?.classList.toggle("left", !input.checked);
      changed();
    });
    boxes.push(input);
    return h("label", {}, input, `Change ${boxes.length}, line ${changedLine(hunk)}`);
  };
  const element = h(
    "div",
    { class: "preview" },
    command && commandElement(command.command, highlights),
    command && h("p", { class: "facts" }, factsOf(decision, session).join(" \u00b7 ")),
    ...files.map((file, index) => fileElement(file, files.length > 1, box, () => open(index), highlights)),
    hosts.length > 0 && h("p", { class: "hosts" }, `Network: ${hosts.join(", ")}`),
  );
  return {
    element,
    bare: !command && files.length === 0,
    taken: () => (boxes.every((one) => one.checked) ? undefined : boxes.flatMap((one, index) => (one.checked ? [index] : []))),
  };
}

function commandElement(command: string, highlights: Highlights): HTMLElement {
  const code = h("code", {}, command);
  highlights.paint(code, "shellscript", command);
  return h("pre", { class: "command" }, code);
}

/** fileElement shows the diff of a file. Several files have a title each. */
function fileElement(file: FilePreview, titled: boolean, box: (hunk: Hunk) => HTMLElement | undefined, open: () => void, highlights: Highlights): HTMLElement {
  const missing = missingText(file);
  return h(
    "div",
    { class: "file" },
    h("p", { class: "facts" }, titled && h("b", {}, `${fileTitle(file)} `), tally(file), " ", (file.hunks ?? []).length > 0 && button("Open diff", open, { class: "link" })),
    ...(file.hunks ?? []).flatMap((hunk) => [box(hunk), diffElement([hunk], file.path, highlights)]),
    missing !== "" && h("p", { class: "missing" }, missing),
  );
}
