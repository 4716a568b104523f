import type { FromWebview } from "../chat/messages";
import type { SessionView } from "../model/session";
import type { NodeID } from "../protocol";

/** OlderPages requests older pages of a conversation, each once: when the user scrolls to its top, and until the message to show is loaded. */
export class OlderPages {
  private requested = ""; // the cursor of the last requested page
  private wanted?: NodeID;

  /** reveal scrolls to the row of an item. */
  constructor(private readonly post: (message: FromWebview) => void, private readonly reveal: (itemId: string) => void) {}

  /** reset begins with a new view. */
  reset(): void {
    this.requested = "";
  }

  /** load asks for the page before the first item. */
  load(view: SessionView | undefined): void {
    if (view?.older !== undefined && view.older !== this.requested) {
      this.requested = view.older;
      this.post({ type: "older" });
    }
  }

  /** goTo makes seek scroll to the message of a node. */
  goTo(nodeId: NodeID): void {
    this.wanted = nodeId;
  }

  /** seek scrolls to the wanted message if the view has it, else it asks for an older page. */
  seek(view: SessionView): void {
    const { wanted } = this;
    if (wanted === undefined) {
      return;
    }
    const item = view.items.find(({ itemId }) => itemId.startsWith(`${wanted}:`));
    this.wanted = item || view.older === undefined ? undefined : wanted;
    if (item) {
      this.reveal(item.itemId);
    } else {
      this.load(view);
    }
  }
}
