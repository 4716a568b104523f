import type { FromWebview, ToWebview } from "../chat/messages";
import { button, h, iconButton } from "./dom";

/** NoticeLines shows what the extension and the page say, above the open questions. A line without buttons goes with the next one, or when the user sends an input. */
export class NoticeLines {
  private passing?: () => void; // closes the line without buttons

  /** done moves the focus away from a line that was closed. */
  constructor(private readonly place: HTMLElement, private readonly post: (message: FromWebview) => void, private readonly done: () => void) {}

  show({ id, text, buttons }: ToWebview & { type: "notice" }): void {
    this.add(text, buttons, (button) => this.post({ type: "noticed", id, ...(button !== undefined && { button }) }));
  }

  /** say shows a text of the page itself. */
  say(text: string): void {
    this.add(text, [], () => undefined);
  }

  private add(text: string, buttons: string[], ended: (chosen?: string) => void) {
    this.pass();
    const end = (chosen?: string) => {
      line.remove();
      ended(chosen);
    };
    const close = (chosen?: string) => (end(chosen), this.done());
    const line = h("div", { class: "notice", role: "status" }, h("span", {}, text), ...buttons.map((one) => button(one, () => close(one))), iconButton("close", "Dismiss", () => close(), { class: "close" }));
    this.place.before(line);
    this.passing = buttons.length === 0 ? end : undefined;
  }

  /** pass closes the line without buttons. */
  pass(): void {
    this.passing?.();
    this.passing = undefined;
  }
}
