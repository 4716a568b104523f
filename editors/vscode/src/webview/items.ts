import type { FromWebview } from "../chat/messages";
import type { Known } from "../model/callWords";
import { usageText } from "../model/usage";
import { durationText, errorText, resultText } from "../model/cells";
import { counted } from "../model/sessions";
import type { CodeResult, Item, Task } from "../protocol";
import { callBody } from "./callBody";
import { callHead, runHead } from "./callHead";
import { button, h, iconButton } from "./dom";
import { Highlights, type PageColors } from "./highlights";
import { icon } from "./icons";
import { cellCall, labels, maxShownChars, noticeOf, stateIcon } from "./itemParts";
import { messageElements } from "./message";
import { Pictures } from "./pictures";
import { StreamedMarkdown, render } from "./markdown";
import { addedText, endText, filesText, isAdded, isCommand, lacksKey, toldCall, wakeOf, type ChatRow, type EndRow, type ForkRow, type ItemRow, type RunRow } from "./rows";

/** The number of calls of a cell that are shown at first. */
const maxShownCalls = 8;

/** Items renders the items of a conversation. It remembers which items the user expanded. */
export class Items {
  private readonly unfolded = new Map<string, boolean>();
  private readonly growing = new Map<string, StreamedMarkdown>();
  readonly pictures: Pictures;
  readonly highlights: Highlights;
  showReasoning = false;
  known: Known = { cwd: "", tasks: [] };

  /** colors returns the colors of the page now. */
  constructor(private readonly post: (message: FromWebview) => void, colors?: () => PageColors) {
    this.pictures = new Pictures(post);
    this.highlights = new Highlights(post, colors);
  }

  /** row renders a row. It updates the old element if there is one, so that focus and selection stay. */
  row(row: ChatRow, old: HTMLElement | undefined): HTMLElement {
    const element = old ?? h("article", { tabindex: -1 });
    if ("end" in row) {
      element.className = `row end${endText(row.end).startsWith("Turn failed") ? " failed" : ""}${row.last ? " last" : ""}`;
      element.title = usageText(row.end.usage);
      element.replaceChildren(...this.end(row));
      return element;
    }
    if ("source" in row) {
      element.className = "row fork";
      element.replaceChildren(this.fork(row));
      return element;
    }
    if ("run" in row) {
      element.className = "row toolCall";
      element.dataset.item = row.run[0]?.item.itemId;
      element.setAttribute("aria-label", labels.toolCall);
      element.replaceChildren(this.run(row));
      return element;
    }
    element.className = `row ${isAdded(row.item) ? "addedText" : wakeOf(row.item) ? "wake" : row.item.kind}${row.live ? " live" : ""}`;
    element.dataset.item = row.item.itemId;
    element.setAttribute("aria-label", labels[row.item.kind]);
    element.replaceChildren(...this.item(row));
    return element;
  }

  private end({ end, after, point, input }: EndRow): Node[] {
    const { turnId } = end;
    const summary = [endText(end), filesText(point)].filter(Boolean).join(" \u00b7 ");
    const fork = button("Fork here", () => this.post({ type: "fork", itemId: after }), { title: "Start a new session from this point" });
    const trace = button("Trace", () => this.post({ type: "run", command: "showTrace", turnId }), { title: "Show the recorded events of this turn" });
    const changes = point && point.files > 0 && button("Show changes", () => this.post({ type: "changes", turnId }), { title: "Show all file changes of this turn" });
    const undo = input !== undefined && button("Undo\u2026", () => this.post({ type: "rewind", turnId, text: input }), { title: "Undo this turn and all later ones: the conversation, the files, or both" });
    const setUp = lacksKey(end) && h("div", { class: "setUp" }, button("Set up a provider\u2026", () => this.post({ type: "setUp" }), { class: "first" }));
    return [h("span", {}, summary), ...(setUp ? [setUp] : []), h("div", { class: "actions" }, changes, undo, trace, fork)];
  }

  private fork({ source, title }: ForkRow): HTMLElement {
    const link = title !== undefined && button(title, () => this.post({ type: "show", sessionId: source }), { class: "link", title: "Show this session" });
    return h("div", { class: "mark" }, icon("repo-forked"), " Forked from ", link || "another session", ".");
  }

  private item(row: ItemRow): Node[] {
    const { item } = row;
    switch (item.kind) {
      case "userMessage": {
        if (isAdded(item)) {
          return [this.added(item)];
        }
        const told = toldCall(item);
        if (told) {
          return [this.collapsible(item.itemId, true, told.title, () => [this.longText(`${item.itemId}:all`, told.output)])];
        }
        const cause = wakeOf(item);
        if (cause) {
          return [h("div", { class: "mark" }, icon("bell"), ` ${item.text ?? cause.text ?? cause.type}`), ...this.taskLink(row.task)];
        }
        return messageElements(row, { pictures: this.pictures, highlights: this.highlights, post: this.post, fold: (key, title, body) => this.collapsible(key, false, title, body) });
      }
      case "agentMessage":
        return [this.markdown(item, row.live)];
      case "reasoning":
        return [this.collapsible(item.itemId, this.showReasoning, "Reasoning", () => [this.markdown(item, row.live)])];
      case "toolCall":
        return [this.call(row), ...this.taskLink(row.task), ...(item.output?.attachments ?? []).map((attachment) => this.pictures.of(attachment))];
      case "codeCell":
        return this.cell(item);
      case "compaction":
        return [h("div", { class: "mark" }, icon("fold"), " Older history was replaced by a summary.")];
      case "notice":
      case "plan":
      case "fileChange":
        return [h("div", { class: "mark" }, item.text ?? noticeOf(item))];
    }
  }

  /** added shows a text that a plugin added to an input, such as that of a slash command, on one line. The user did not write it. */
  private added(item: Item): HTMLElement {
    const { title, lines } = addedText(item);
    return this.collapsible(item.itemId, false, `${title} (${counted(lines, "line")})`, () => [this.markdown(item, false)]);
  }

  private markdown(item: Item, live: boolean): HTMLElement {
    const text = item.text ?? "";
    const element = h("div", { class: "markdown" });
    if (live) {
      const growing = this.growing.get(item.itemId) ?? new StreamedMarkdown();
      this.growing.set(item.itemId, growing);
      element.innerHTML = growing.render(text);
    } else {
      this.growing.delete(item.itemId);
      element.innerHTML = render(text);
    }
    element.querySelectorAll("pre").forEach((pre) => this.codeBlock(pre, live && pre === element.lastElementChild));
    return element;
  }

  /** codeBlock colors a block of code, unless it still grows, and adds a button that copies it. */
  private codeBlock(pre: HTMLElement, growing: boolean) {
    const code = pre.querySelector("code");
    const language = /language-(\S+)/.exec(code?.className ?? "")?.[1] ?? "";
    if (code && !growing) {
      this.highlights.paint(code, language, code.textContent ?? "");
    }
    pre.append(iconButton("copy", "Copy", () => void navigator.clipboard.writeText(code?.textContent ?? ""), { class: "copy" }));
  }

  private call(row: ItemRow): HTMLElement {
    const { item, progress, asked } = row;
    const change = item.output?.change;
    const running = item.status === "inProgress" && !asked && (progress !== undefined || isCommand(item)); // the question about a call shows it
    const unfolded = running || change !== undefined || item.status === "failed" || item.output?.refusal !== undefined;
    const body = () => callBody(row, { highlights: this.highlights, post: this.post, fold: (key, title, inner) => this.collapsible(key, false, title, inner), long: (key, text) => this.longText(key, text) });
    return this.collapsible(item.itemId, unfolded, callHead(row, this.known), body);
  }

  /** run shows several calls that only looked at files on one line. */
  private run({ key, run }: RunRow): HTMLElement {
    const details = this.collapsible(key, false, runHead(run, this.known), () => run.map((row) => this.call(row)));
    details.classList.add("run");
    return details;
  }

  /** taskLink opens the output of a background task. */
  private taskLink(task: Task | undefined): Node[] {
    if (!task?.spec.command) {
      return [];
    }
    const state = task.state === "cancelRequested" ? "stopping" : task.state;
    const show = button("Show output", () => this.post({ type: "task", taskId: task.taskId }), { class: "link", title: `The task is ${state}. Open its output in a terminal.` });
    return [h("div", { class: "taskLink" }, h("small", {}, state), show)];
  }

  /** cell shows code with its state and duration. Below it are its calls, the result and the changed globals. The line of an error has a mark. */
  private cell(item: Item): Node[] {
    const { status, language, itemId } = item;
    const cell: CodeResult = item.cell ?? {};
    const ended = status !== "inProgress" && item.cell !== undefined;
    const took = ended ? durationText(cell.durationMs ?? 0) : "";
    const head = h("span", { class: `call ${status}` }, stateIcon(status), h("b", {}, language ?? "code"), h("span", { class: "took" }, took));
    const result = ended && resultText(cell);
    const error = ended ? errorText(cell) : status === "failed" ? "The code is incomplete and was not run." : "";
    return [
      head,
      this.codeOf(item, cell.position?.line),
      ...this.cellCalls(itemId, cell, !ended),
      ...(result ? [this.longText(`${itemId}:result`, result)] : []),
      ...(error ? [h("div", { class: "wrong" }, error)] : []),
      ...(ended && cell.changed?.length ? [h("div", { class: "changed" }, `changed: ${cell.changed.join(", ")}`)] : []),
    ];
  }

  /** codeOf shows the code of a cell. The line at wrong, counted from 1, has a mark. */
  private codeOf({ language = "", text = "" }: Item, wrong: number | undefined): HTMLElement {
    const lines = text.split("\n").map((line, at) => h("code", { class: at + 1 === wrong ? "wrong" : "" }, `${line}\n`));
    this.highlights.paintLines(lines, language, text);
    return h("pre", { class: "code" }, ...lines);
  }

  /** cellCalls lists the first calls of a cell, or the newest ones while it runs. The other calls that are known can be unfolded. */
  private cellCalls(key: string, { calls = [], moreCalls = 0 }: CodeResult, live: boolean): Node[] {
    const shown = live ? calls.slice(-maxShownCalls) : calls.slice(0, maxShownCalls);
    const others = calls.length - shown.length;
    const count = `\u2026 ${counted(others + moreCalls, live ? "earlier call" : "more call")}`;
    const list = shown.map(cellCall);
    if (others + moreCalls === 0) {
      return list.length > 0 ? [h("div", { class: "cellCalls" }, ...list)] : [];
    }
    if (live) {
      return [h("div", { class: "cellCalls" }, h("div", {}, count), ...list)];
    }
    const rest = () => [...calls.slice(maxShownCalls).map(cellCall), ...(moreCalls > 0 ? [h("div", {}, `${counted(moreCalls, "more call")} not listed`)] : [])];
    return [h("div", { class: "cellCalls" }, ...list, this.collapsible(`${key}:calls`, false, count, rest))];
  }

  /** longText shows the start of a long text with a button for the rest. */
  private longText(key: string, text: string): HTMLElement {
    const pre = h("pre", { class: "output" });
    const all = text.length <= maxShownChars || this.unfolded.get(key) === true;
    pre.append(all ? text : text.slice(0, maxShownChars));
    if (!all) {
      pre.append(button(`Show all ${Math.round(text.length / 1024)} KiB`, () => (this.unfolded.set(key, true), pre.replaceChildren(text)), { class: "link" }));
    }
    return pre;
  }

  private collapsible(key: string, byDefault: boolean, head: Node | string, body: () => Node[]): HTMLElement {
    const open = this.unfolded.get(key) ?? byDefault;
    const details = h("details", { open }, h("summary", {}, head));
    details.append(...(open ? body() : []));
    details.addEventListener("toggle", () => {
      if (details.open && details.childElementCount === 1) {
        details.append(...body());
      }
      if (details.open !== byDefault || this.unfolded.has(key)) {
        this.unfolded.set(key, details.open);
      }
    });
    return details;
  }
}
