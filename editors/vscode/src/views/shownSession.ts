import type { TreeView } from "vscode";
import { messageOf } from "../daemon/daemon";
import type { Log } from "../daemon/link";
import { groupOf } from "../model/sessions";
import type { SessionID } from "../protocol";
import type { Node, SessionTree } from "./sessionTree";

/** ShownSession selects the session of the active chat in the list of sessions, as long as the list is visible. */
export class ShownSession {
  private last = ""; // what was selected; a selection of the user stays until something else is shown

  constructor(private readonly view: TreeView<Node>, private readonly tree: SessionTree, private readonly log: Log) {}

  /** select selects a session if another one was shown before, or if it has moved to another group. */
  async select(id: SessionID | undefined): Promise<void> {
    const node = id === undefined ? undefined : this.tree.nodeOf(id);
    if (!node || !("session" in node) || !this.view.visible) {
      return;
    }
    const now = `${id} ${groupOf(node.session)}`;
    if (this.last === now) {
      return;
    }
    this.last = now;
    try {
      await this.view.reveal(node, { select: true, focus: false });
    } catch (error) {
      this.log.debug(`select ${id} in the list: ${messageOf(error)}`); // it was deleted or moved meanwhile
      this.last = "";
    }
  }
}
