import type { Attached, Contents, FromWebview, Options, Suggestion } from "../chat/messages";
import type { Draft } from "../model/draft";
import type { Mention } from "../model/resourceMentions";
import type { Config, Digest, InputPart, ModelSpec } from "../protocol";
import { Attachments } from "./attachments";
import { h, iconButton, redraw, showDropTarget } from "./dom";
import { PromptHistory } from "./promptHistory";
import { ResourceChips } from "./resourceChips";
import { SettingButtons } from "./settingButtons";
import { Suggestions, type Word } from "./suggestions";
import { UnknownCommand } from "./unknownCommand";

/** Composer is the input field of a chat. It keeps the draft until the daemon has stored the input. */
export class Composer {
  private readonly field = h("textarea", { label: "Message to the agent" });
  private readonly chips = h("div", { class: "chips" });
  private readonly problem = h("div", { class: "problem", role: "alert" });
  readonly noCommand = new UnknownCommand((name, near) => this.setText(this.field.value.replace(`/${name}`, () => `/${near}`)), () => this.submit("queue", true));
  private readonly send = iconButton("arrow-up", "Send", () => this.submit("queue"), { class: "first send" });
  private readonly steer = iconButton("debug-step-into", "Steer", () => this.submit("steer"), { class: "plain steer", title: "Steer: send to the running turn, at its next step (Ctrl+Enter)" });
  private readonly stop = iconButton("debug-stop", "Stop", () => this.post({ type: "stop" }), { class: "plain", title: "Stop the running turn (Escape)" });
  private readonly suggestions = new Suggestions(this.field, (message) => this.post(message), (suggestion, word) => this.replace(suggestion, word));
  private readonly history = new PromptHistory(() => this.post({ type: "history" }), (text) => this.setText(text));
  private readonly settings: SettingButtons;
  private readonly files: Attachments;
  private readonly resources: ResourceChips;
  private options: Options = { sendOnEnter: true, showReasoning: false };
  private spec: ModelSpec = { provider: "", id: "" };
  private running = false;
  private sending = false;
  private due = false; // the draft is sent as soon as it can be
  private connected = false;

  /** meter is shown beside the settings; failed shows an error. */
  constructor(place: HTMLElement, meter: HTMLElement, private readonly post: (message: FromWebview) => void, private readonly save: (draft: Draft) => void, failed: (message: string) => void) {
    this.settings = new SettingButtons(post, meter);
    this.files = new Attachments(post, () => this.changed(), (label) => this.removeWord(`@${label}`), failed);
    this.resources = new ResourceChips(post, (word) => this.removeWord(word));
    this.field.rows = 3;
    this.field.placeholder = "Ask lashd to do something. @ attaches, / runs a command. Hold Shift to drop files here.";
    this.field.addEventListener("input", () => (this.noCommand.hide(), this.suggestions.update(), this.changed()));
    this.field.addEventListener("keydown", (event) => this.handleKey(event));
    this.field.addEventListener("paste", (event) => this.take(event, event.clipboardData));
    document.addEventListener("drop", (event) => this.take(event, event.dataTransfer));
    this.steer.append(h("span", { class: "value" }, " Steer"));
    const attach = iconButton("attach", "Attach", () => this.post({ type: "attach" }), { class: "plain", title: "Attach files, images or PDF documents. You can also type @, paste them, or drop them while you hold Shift." });
    const bar = h("div", { class: "bar" }, attach, this.settings.element, this.stop, this.steer, this.send);
    const box = h("div", { class: "box" }, this.chips, this.problem, this.noCommand.element, this.field, bar);
    place.append(this.suggestions.element, this.suggestions.none, box);
    showDropTarget(box);
  }

  show(running: boolean, connected: boolean, options: Options): void {
    this.running = running;
    this.connected = connected;
    this.options = options;
    this.changed();
  }

  /** showSettings shows the settings of a session. Its model decides which files it takes. */
  showSettings(config: Config): void {
    this.spec = config.model;
    this.settings.show(config);
    this.changed();
  }

  /** restore restores the draft after the page was reloaded. */
  restore(draft: Draft): void {
    this.field.value = draft.text;
    this.files.restore(draft.attached);
    this.changed();
  }

  attach(attached: Attached): void {
    this.files.add(attached);
    this.field.focus();
  }

  /** attachFile attaches a file that the user chose in the editor. */
  attachFile(file: Contents): void {
    void this.files.addContents(file).then(() => this.field.focus());
  }

  /** stored notes that the daemon stored an attached file, or removes one that it did not store. */
  stored(id: number, digest?: Digest): void {
    this.files.stored(id, digest);
  }

  /** restoreText puts an earlier input back into the field so that the user can edit it. */
  restoreText(text: string): void {
    this.field.value = [this.field.value, text].filter((t) => t !== "").join("\n");
    this.changed();
    this.field.focus();
  }

  /** dropText empties the field if the user has not changed the text that restoreText put into it. */
  dropText(text: string): void {
    this.setText(this.field.value === text ? "" : this.field.value);
  }

  /** restoreInput puts a queued input back, with its files. */
  restoreInput(parts: InputPart[]): void {
    parts.forEach(({ attachment }) => attachment && this.files.addStored(attachment));
    this.restoreText(parts.map(({ text }) => text ?? "").filter((text) => text !== "").join("\n"));
  }

  /** sent clears the draft if the daemon stored the input. */
  sent(ok: boolean): void {
    this.sending = false;
    if (ok) {
      this.field.value = "";
      this.files.clear();
      this.history.reset();
      this.suggestions.update();
    }
    this.changed();
  }

  /** sendSoon sends the draft as soon as the page is connected and its files are stored. */
  sendSoon(): void {
    this.due = true;
    this.changed();
  }

  focus(): void {
    this.field.focus();
  }

  /** setText replaces the text, with the caret at its end. */
  setText(text: string): void {
    this.noCommand.hide();
    this.field.value = text;
    this.field.setSelectionRange(text.length, text.length);
    this.changed();
    this.field.focus();
  }

  /** suggest shows what can replace the word that the user types. */
  suggest(id: number, suggestions: Suggestion[], last?: boolean): void {
    this.suggestions.show(id, suggestions, last);
  }

  /** showHistory receives the inputs that the user sent before. */
  showHistory(inputs: string[]): void {
    this.history.show(inputs);
  }

  /** showResources receives the resources of MCP servers that the text mentions. */
  showResources(mentioned: Mention[]): void {
    this.resources.show(mentioned);
    this.changed();
  }

  private removeWord(word: string) {
    this.field.value = this.field.value.split(/(\s+)/u).filter((part) => part !== word).join("").replace(/ {2,}/g, " ").trimStart();
    this.changed();
    this.field.focus();
  }

  /** replace puts a suggestion in the place of a word. A command runs with the rest of the text. */
  private replace({ insert, open, replaces, mention, command }: Suggestion, word: Word) {
    const { value } = this.field;
    const { end } = word;
    const start = replaces === undefined ? word.start : end - replaces;
    const put = insert === undefined ? "" : `${insert}${open ? "" : " "}`;
    this.field.value = value.slice(0, start) + put + value.slice(end).replace(/^\s/, put === "" ? "" : "$&");
    this.field.setSelectionRange(start + put.length, start + put.length);
    if (mention) {
      this.post({ type: "mention", mention });
    }
    if (command !== undefined) {
      this.post({ type: "command", name: command, text: this.field.value.trim() });
      this.field.value = "";
    }
    this.suggestions.update();
    this.changed();
  }

  /** take attaches the files of a paste or a drop. Pasted text stays text. A drop from a view of the editor has only addresses. */
  private take(event: Event, data: DataTransfer | null) {
    const files = [...(data?.files ?? [])];
    const uris = event.type === "drop" && files.length === 0 ? (data?.getData("application/vnd.code.uri-list") || data?.getData("text/uri-list") || "").split(/\r?\n/).filter((uri) => uri !== "" && !uri.startsWith("#")) : [];
    if (files.length === 0 && uris.length === 0) {
      return;
    }
    event.preventDefault();
    void this.files.addFiles(files);
    if (uris.length > 0) {
      this.post({ type: "dropped", uris });
    }
  }

  private get blocked(): boolean {
    return this.sending || !this.connected || this.files.storing || this.files.problem(this.spec) !== "";
  }

  /** submit sends the draft. With asText, a word after a slash at its start is no command. */
  private submit(when: "queue" | "steer", asText = false) {
    const text = this.field.value.trim();
    if ((text === "" && this.files.list.length === 0) || this.blocked) {
      return;
    }
    this.sending = true;
    this.noCommand.hide();
    this.post({ type: "send", text, attached: this.files.list, whenBusy: when, ...(asText && { asText }) });
    this.changed();
  }

  private handleKey(event: KeyboardEvent) {
    const step = ({ ArrowUp: 1, ArrowDown: -1 } as const)[event.key as "ArrowUp" | "ArrowDown"];
    if (this.suggestions.key(event.key) || (step && !event.altKey && this.history.step(step, this.field.value))) {
      event.preventDefault();
      return;
    }
    if (event.key === "Escape" && this.running) {
      this.post({ type: "stop" });
    }
    if (event.key !== "Enter" || event.isComposing || event.shiftKey) {
      return;
    }
    if (event.ctrlKey || event.metaKey) {
      this.submit(this.running ? "steer" : "queue");
    } else if (this.options.sendOnEnter) {
      this.submit("queue");
    } else {
      return;
    }
    event.preventDefault();
  }

  private changed() {
    const { running, sending, connected, blocked } = this;
    this.save({ text: this.field.value, attached: this.files.list });
    this.field.readOnly = sending;
    this.send.disabled = blocked;
    const label = running ? "Queue" : "Send";
    this.send.setAttribute("aria-label", label);
    this.send.title = running ? "Queue: send after the running turn (Enter)" : "Send (Enter)";
    this.steer.hidden = this.stop.hidden = !running;
    this.steer.disabled = blocked;
    this.stop.disabled = !connected;
    this.resources.update(this.field.value);
    redraw(this.chips, [this.files.list, this.resources.list], () => [...this.files.chips(), ...this.resources.chips()]);
    const problem = this.files.problem(this.spec);
    if (problem !== this.problem.textContent) {
      this.problem.textContent = problem;
    }
    if (this.due && !blocked) {
      this.due = false;
      this.submit("queue");
    }
  }
}
