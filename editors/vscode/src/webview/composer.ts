import type { Attached, Contents, FromWebview, Options } from "../chat/messages";
import { driverText } from "../model/drivers";
import { effortText } from "../model/models";
import { modeText } from "../model/modes";
import type { Config, Digest, ModelSpec } from "../protocol";
import { Attachments } from "./attachments";
import { button, h } from "./dom";

/** Draft is the unsent input. */
export interface Draft {
  text: string;
  attached: Attached[];
}

/** Composer is the input field of a chat. It keeps the draft until the daemon has stored the input. */
export class Composer {
  private readonly field = h("textarea", { label: "Message to the agent" });
  private readonly chips = h("div", { class: "chips" });
  private readonly problem = h("div", { class: "problem", role: "alert" });
  private readonly send = button("Send", () => this.submit("queue"), { class: "first" });
  private readonly steer = button("Steer", () => this.submit("steer"), { title: "Send to the running turn, at its next checkpoint (Ctrl+Enter)" });
  private readonly stop = button("Stop", () => this.post({ type: "stop" }), { title: "Stop the running turn (Escape)" });
  private readonly model = button("", () => this.post({ type: "run", command: "chooseModel" }), { class: "setting", title: "Choose the model from the next turn on" });
  private readonly effort = button("", () => this.post({ type: "run", command: "chooseEffort" }), { class: "setting", title: "Choose the reasoning effort from the next turn on" });
  private readonly mode = button("", () => this.post({ type: "run", command: "chooseMode" }), { class: "setting", title: "Choose the approval mode and the sandbox from the next turn on" });
  private readonly driver = h("span", { class: "driver", title: "The way in which the session works with its model. A session keeps it." });
  private readonly files: Attachments;
  private options: Options = { sendOnEnter: true, showReasoning: false };
  private spec: ModelSpec = { provider: "", id: "" };
  private running = false;
  private sending = false;
  private connected = false;

  /** meter is shown beside the settings; failed shows an error. */
  constructor(place: HTMLElement, meter: HTMLElement, private readonly post: (message: FromWebview) => void, private readonly save: (draft: Draft) => void, failed: (message: string) => void) {
    this.files = new Attachments(post, () => this.changed(), failed);
    this.field.rows = 3;
    this.field.placeholder = "Ask lashd to do something\u2026";
    this.field.addEventListener("input", () => this.changed());
    this.field.addEventListener("keydown", (event) => this.handleKey(event));
    this.field.addEventListener("paste", (event) => this.take(event, event.clipboardData));
    document.addEventListener("dragover", (event) => event.preventDefault());
    document.addEventListener("drop", (event) => this.take(event, event.dataTransfer));
    const attach = button("Attach", () => this.post({ type: "attach" }), { title: "Attach files, images or PDF documents. You can also paste or drop them." });
    const settings = h("span", { class: "settings" }, this.model, this.effort, this.mode, this.driver, meter);
    place.append(this.chips, this.problem, this.field, h("div", { class: "bar" }, attach, settings, h("span", { class: "space" }), this.stop, this.steer, this.send));
  }

  show(running: boolean, connected: boolean, options: Options): void {
    this.running = running;
    this.connected = connected;
    this.options = options;
    this.changed();
  }

  /** showSettings shows the model, its effort, the approval mode and a driver that is not the standard one. */
  showSettings(config: Config): void {
    this.spec = config.model;
    const effort = effortText(config.model);
    this.effort.hidden = effort === "";
    this.driver.textContent = driverText(config);
    this.driver.hidden = this.driver.textContent === "";
    for (const [setting, name, value] of [[this.model, "Model", config.model.id], [this.effort, "Effort", effort], [this.mode, "Mode", modeText(config)]] as const) {
      setting.textContent = name === "Effort" ? `Effort: ${value}` : value;
      setting.setAttribute("aria-label", `${name}: ${value}`);
    }
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

  /** sent clears the draft if the daemon stored the input. */
  sent(ok: boolean): void {
    this.sending = false;
    if (ok) {
      this.field.value = "";
      this.files.clear();
    }
    this.changed();
  }

  focus(): void {
    this.field.focus();
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

  private submit(when: "queue" | "steer") {
    const text = this.field.value.trim();
    if ((text === "" && this.files.list.length === 0) || this.blocked) {
      return;
    }
    this.sending = true;
    this.post({ type: "send", text, attached: this.files.list, whenBusy: when });
    this.changed();
  }

  private handleKey(event: KeyboardEvent) {
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
    this.send.textContent = running ? "Queue" : "Send";
    this.steer.hidden = this.stop.hidden = !running;
    this.steer.disabled = blocked;
    this.stop.disabled = !connected;
    this.chips.replaceChildren(...this.files.chips());
    const problem = this.files.problem(this.spec);
    if (problem !== this.problem.textContent) {
      this.problem.textContent = problem;
    }
  }
}
