import { button, h } from "./dom";

/** UnknownCommand says that an input was not sent, because no command has the name after its slash. */
export class UnknownCommand {
  readonly element = h("div", { class: "unknownCommand" });

  /** use writes another name into the input; send sends the input as text. */
  constructor(private readonly use: (name: string, near: string) => void, private readonly send: () => void) {}

  show(name: string, near?: string): void {
    const other = near !== undefined ? [button(`Use /${near}`, () => this.use(name, near), { class: "link" })] : [];
    this.element.replaceChildren(h("span", { role: "alert" }, `There is no command /${name}.`), ...other, button("Send as text", this.send, { class: "link" }));
  }

  hide(): void {
    this.element.replaceChildren();
  }
}
