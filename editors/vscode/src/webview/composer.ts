import type { Attached, FromWebview, Options } from "../chat/messages";
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
  private readonly send = button("Send", () => this.submit("queue"), { class: "first" });
  private readonly steer = button("Steer", () => this.submit("steer"), { title: "Send to the running turn, at its next checkpoint (Ctrl+Enter)" });
  private readonly stop = button("Stop", () => this.post({ type: "stop" }), { title: "Stop the running turn (Escape)" });
  private readonly model = button("", () => this.post({ type: "run", command: "chooseModel" }), { class: "setting", title: "Choose the model from the next turn on" });
  private readonly mode = button("", () => this.post({ type: "run", command: "chooseMode" }), { class: "setting", title: "Choose the approval mode from the next turn on" });
  private attached: Attached[] = [];
  private options: Options = { sendOnEnter: true, showReasoning: false };
  private running = false;
  private sending = false;
  private connected = false;

  constructor(place: HTMLElement, private readonly post: (message: FromWebview) => void, private readonly save: (draft: Draft) => void) {
    this.field.rows = 3;
    this.field.placeholder = "Ask lashd to do something\u2026";
    this.field.addEventListener("input", () => this.changed());
    this.field.addEventListener("keydown", (event) => this.handleKey(event));
    const attach = button("Attach", () => this.post({ type: "attach" }), { title: "Attach files" });
    place.append(this.chips, this.field, h("div", { class: "bar" }, attach, this.model, this.mode, h("span", { class: "space" }), this.stop, this.steer, this.send));
  }

  show(running: boolean, connected: boolean, options: Options): void {
    this.running = running;
    this.connected = connected;
    this.options = options;
    this.changed();
  }

  /** showSettings shows the model and the approval mode of the session. */
  showSettings(model: string, mode: string): void {
    for (const [setting, name, value] of [[this.model, "Model", model], [this.mode, "Mode", mode]] as const) {
      setting.textContent = value;
      setting.setAttribute("aria-label", `${name}: ${value}`);
    }
  }

  /** restore restores the draft after the page was reloaded. */
  restore(draft: Draft): void {
    this.field.value = draft.text;
    this.attached = draft.attached;
    this.changed();
  }

  attach(attached: Attached): void {
    this.attached.push(attached);
    this.changed();
    this.field.focus();
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
      this.attached = [];
    }
    this.changed();
  }

  focus(): void {
    this.field.focus();
  }

  private submit(when: "queue" | "steer") {
    const text = this.field.value.trim();
    if ((text === "" && this.attached.length === 0) || this.sending || !this.connected) {
      return;
    }
    this.sending = true;
    this.post({ type: "send", text, attached: this.attached, whenBusy: when });
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
    const { running, sending, connected } = this;
    this.save({ text: this.field.value, attached: this.attached });
    this.field.readOnly = sending;
    this.send.disabled = sending || !connected;
    this.send.textContent = running ? "Queue" : "Send";
    this.steer.hidden = this.stop.hidden = !running;
    this.steer.disabled = sending || !connected;
    this.stop.disabled = !connected;
    this.chips.replaceChildren(...this.attached.map((attached, at) => this.chip(attached.label, at)));
  }

  private chip(label: string, at: number): HTMLElement {
    const remove = button("\u00d7", () => (this.attached.splice(at, 1), this.changed()), { label: `Remove ${label}` });
    return h("span", { class: "chip" }, label, remove);
  }
}
