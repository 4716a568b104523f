import type { Attached, FromWebview, Options } from "../chat/messages";
import { button, h } from "./dom";

/** Draft is what is being typed. */
export interface Draft {
  text: string;
  attached: Attached[];
}

/** Composer is where inputs are written. What is typed stays until the daemon has it. */
export class Composer {
  private readonly field = h("textarea", { label: "Message to the agent" });
  private readonly chips = h("div", { class: "chips" });
  private readonly send = button("Send", () => this.submit("queue"), { class: "first" });
  private readonly steer = button("Steer", () => this.submit("steer"), { title: "Send to the running turn, at its next checkpoint (Ctrl+Enter)" });
  private readonly stop = button("Stop", () => this.ask({ type: "stop" }), { title: "Stop the running turn (Escape)" });
  private readonly model = button("", () => this.ask({ type: "run", command: "chooseModel" }), { class: "setting", title: "Choose the model from the next turn on" });
  private readonly mode = button("", () => this.ask({ type: "run", command: "chooseMode" }), { class: "setting", title: "Choose the approval mode from the next turn on" });
  private attached: Attached[] = [];
  private options: Options = { sendOnEnter: true, showReasoning: false };
  private running = false;
  private sending = false;
  private connected = false;

  constructor(place: HTMLElement, private readonly ask: (message: FromWebview) => void, private readonly keep: (draft: Draft) => void) {
    this.field.rows = 3;
    this.field.placeholder = "Ask lashd to do something\u2026";
    this.field.addEventListener("input", () => this.changed());
    this.field.addEventListener("keydown", (event) => this.key(event));
    const attach = button("Attach", () => this.ask({ type: "attach" }), { title: "Attach files" });
    place.append(this.chips, this.field, h("div", { class: "bar" }, attach, this.model, this.mode, h("span", { class: "space" }), this.stop, this.steer, this.send));
  }

  show(running: boolean, connected: boolean, options: Options): void {
    this.running = running;
    this.connected = connected;
    this.options = options;
    this.changed();
  }

  /** set says how the session is set. */
  set(model: string, mode: string): void {
    for (const [setting, name, value] of [[this.model, "Model", model], [this.mode, "Mode", mode]] as const) {
      setting.textContent = value;
      setting.setAttribute("aria-label", `${name}: ${value}`);
    }
  }

  /** restore puts back what was typed before the page was loaded again. */
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

  /** add puts a text that was sent before back, to be changed and sent again. */
  add(text: string): void {
    this.field.value = [this.field.value, text].filter((t) => t !== "").join("\n");
    this.changed();
    this.field.focus();
  }

  /** sent lets go of what the daemon has taken; what it has not stays. */
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
    this.ask({ type: "send", text, attached: this.attached, when });
    this.changed();
  }

  private key(event: KeyboardEvent) {
    if (event.key === "Escape" && this.running) {
      this.ask({ type: "stop" });
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
    this.keep({ text: this.field.value, attached: this.attached });
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
