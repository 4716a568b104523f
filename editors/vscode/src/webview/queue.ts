import type { FromWebview } from "../chat/messages";
import { takenBack, waitingInputs } from "../model/queue";
import type { SessionView } from "../model/session";
import type { InputPart, QueuedInput } from "../protocol";
import { h, iconButton, redraw } from "./dom";
import { icon } from "./icons";

/** Queue shows the inputs that wait, and can put them back into the field. The user can edit them there and send them again. */
export class Queue {
  /** restore puts an input into the field. */
  constructor(private readonly place: HTMLElement, private readonly post: (message: FromWebview) => void, private readonly restore: (parts: InputPart[]) => void) {}

  draw(view: SessionView): void {
    const waiting = waitingInputs(view);
    redraw(this.place, waiting, () => waiting.map((input) => this.row(input)));
  }

  /** stop stops the turn, and puts the inputs that wait for it back into the field. */
  stop(view: SessionView | undefined): void {
    const back = view ? takenBack(view) : [];
    back.forEach((input) => this.withdraw(input));
    this.post({ type: "stop" });
    if (back.length > 0) {
      this.restore(back.flatMap(({ input }) => input));
    }
  }

  private withdraw({ inputId }: QueuedInput) {
    this.post({ type: "withdraw", inputId });
  }

  private row(input: QueuedInput): HTMLElement {
    const text = input.input.map((part) => part.text ?? `[${part.attachment?.name ?? part.attachment?.type ?? ""}]`).join("\n");
    const edit = () => {
      this.withdraw(input);
      this.restore(input.input);
    };
    const steers = input.state === "pendingActive";
    const [name, label, about] = steers ? ["debug-step-into", "Steering", "The running turn reads it at its next step"] : ["list-ordered", "Queued", "Starts after the running turn"];
    return h(
      "div",
      { class: steers ? "queued steering" : "queued" },
      h("b", { title: about }, icon(name), ` ${label}`),
      h("span", { title: text.slice(0, 2000) }, text.slice(0, 200)),
      iconButton("edit", "Edit", edit),
      iconButton("close", "Remove", () => this.withdraw(input)),
    );
  }
}
