import * as vscode from "vscode";
import { showChanges } from "../chat/changes";
import { rewind, rewindFiles } from "../chat/rewind";
import type { Commands } from "../commands";
import type { Daemon } from "../daemon/daemon";
import { titleOf } from "../model/sessions";
import { restoreText, sideText } from "../model/snapshots";
import type { FilePoint, SnapshotInfo, SnapshotPreviewResult } from "../protocol";
import type { Sessions } from "../sessions";
import type { Snapshots } from "./snapshotTree";
import type { Texts } from "./textDocuments";
import { shownWhole, type Say } from "../toasts";

/** SnapshotCommands implements the commands on snapshots and file points of the current session. */
export class SnapshotCommands {
  /** show shows a snapshot in the view. */
  constructor(readonly daemon: Daemon, private readonly sessions: Sessions, private readonly snapshots: Snapshots, readonly texts: Texts, readonly say: Say, private readonly show: (snapshot: SnapshotInfo) => Thenable<void>) {}

  get commands(): Commands {
    return {
      createSnapshot: () => this.create(),
      previewSnapshot: ({ snapshot }: { snapshot: SnapshotInfo }) => this.preview(snapshot.name),
      restoreSnapshot: (node?: { snapshot: SnapshotInfo }) => this.restore(node?.snapshot.name),
      deleteSnapshot: ({ snapshot }: { snapshot: SnapshotInfo }) => this.remove(snapshot.name),
      showPoint: ({ point }: { point: FilePoint }) => this.showPoint(point),
      rewindPoint: ({ point }: { point: FilePoint }) => this.rewindTo(point),
    };
  }

  private async create() {
    const sessionId = this.session();
    const taken = new Set(this.snapshots.snapshots.map(({ name }) => name));
    const validateInput = (name: string) => (taken.has(name) ? "A snapshot with this name already exists." : undefined);
    const session = this.sessions.list.get(sessionId);
    const of = session ? titleOf(session) : sessionId;
    const name = await vscode.window.showInputBox({ title: `Snapshot of "${of}"`, prompt: "Name of the snapshot", validateInput });
    if (!name) {
      return;
    }
    await this.daemon.change("snapshot/create", { sessionId, name });
    await this.snapshots.load();
    const made = this.snapshots.snapshots.find((snapshot) => snapshot.name === name);
    await (made && this.show(made));
    void this.say(sessionId, `Saved "${name}", a snapshot of "${of}": its conversation, plugins, tools and monitors, but no files.`);
  }

  /** preview compares the session now with the session after a restore. */
  private async preview(name: string): Promise<SnapshotPreviewResult> {
    const shown = await this.daemon.call("snapshot/preview", { sessionId: this.session(), name });
    const [now, then] = [shown.now, shown.then].map((side) => this.texts.add(`${name}.txt`, sideText(side)));
    await vscode.commands.executeCommand("vscode.diff", now, then, `${name}: now \u2194 restored`);
    return shown;
  }

  /** restore restores a snapshot after the user confirms its comparison. If the session changes before that, it shows a new comparison. */
  private async restore(picked: string | undefined) {
    const sessionId = this.session();
    const name = picked ?? (await this.pick());
    if (name === undefined) {
      return;
    }
    for (;;) {
      const seen = await this.preview(name);
      if ((await vscode.window.showWarningMessage(...shownWhole(restoreText(seen), "Restore"))) !== "Restore") {
        return;
      }
      const current = await this.daemon.call("snapshot/preview", { sessionId, name });
      if (sideText(current.now) === sideText(seen.now) && current.now.nodeId === seen.now.nodeId) {
        await this.daemon.change("snapshot/restore", { sessionId, name });
        return;
      }
      void vscode.window.showInformationMessage(...shownWhole("lashd: The session changed. The comparison now shows the new state; confirm the restore again."));
    }
  }

  private async pick() {
    const items = this.snapshots.snapshots.map(({ name, atMs }) => ({ label: name, description: new Date(atMs).toLocaleString() }));
    return (await vscode.window.showQuickPick(items, { placeHolder: "Select a snapshot to restore" }))?.label;
  }

  private async remove(name: string) {
    const sessionId = this.session();
    if (await vscode.window.showWarningMessage(`Delete the snapshot "${name}"?`, { modal: true }, "Delete")) {
      await this.daemon.change("snapshot/delete", { sessionId, name });
      await this.snapshots.load();
    }
  }

  private showPoint({ pointId }: FilePoint) {
    const sessionId = this.session();
    return showChanges(this, { sessionId, pointId }, this.cwd(sessionId));
  }

  private cwd(sessionId: string): string {
    return this.sessions.list.get(sessionId)?.cwd ?? "";
  }

  /** rewindTo undoes a turn and all later turns, or reverts an undo. */
  private async rewindTo({ turnId, pointId }: FilePoint) {
    const sessionId = this.session();
    await (turnId === undefined ? rewindFiles(this, sessionId, pointId, this.cwd(sessionId)) : rewind(this, sessionId, turnId, { cwd: this.cwd(sessionId), question: "Undo this turn and all later turns" }));
  }

  private session(): string {
    const { sessionId } = this.snapshots;
    if (sessionId === undefined) {
      throw new Error("no chat is open; open a session first");
    }
    return sessionId;
  }
}
