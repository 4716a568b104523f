import type { ToWebview } from "./messages";

type Notice = ToWebview & { type: "notice" };

/** Notices are the open notices of a chat: texts that its page shows until the user closes them. A page that is loaded again gets them again. */
export class Notices {
  private readonly open = new Map<number, { notice: Notice; end: (button?: string) => void }>();
  private next = 1;

  constructor(private readonly post: (message: ToWebview) => void) {}

  /** show shows a text with buttons. It returns the button that the user chose; undefined if the user closed the notice or the chat. */
  show(text: string, buttons: string[]): Promise<string | undefined> {
    const notice: Notice = { type: "notice", id: this.next++, text, buttons };
    const ended = new Promise<string | undefined>((end) => this.open.set(notice.id, { notice, end }));
    this.post(notice);
    return ended;
  }

  /** showAgain shows the open notices on a page that has none. */
  showAgain(): void {
    this.open.forEach(({ notice }) => this.post(notice));
  }

  /** end ends a notice with the answer of the user. */
  end(id: number, button?: string): void {
    this.open.get(id)?.end(button);
    this.open.delete(id);
  }

  /** close ends all notices, because the chat is closed. */
  close(): void {
    [...this.open.keys()].forEach((id) => this.end(id));
  }
}
