import * as vscode from "vscode";
import { messageOf, type Daemon } from "../daemon/daemon";
import type { FileRewind, PointID, RewindFiles, SessionID, SessionRewindParams, TurnID } from "../protocol";

/** What a rewind is about, in words. */
const ways: (vscode.QuickPickItem & { files?: RewindFiles })[] = [
  { label: "Conversation and files", description: "as they were before the turn", files: "also" },
  { label: "Conversation", description: "files stay as they are" },
  { label: "Files", description: "the conversation stays as it is", files: "only" },
];

/** rewind goes back to before a turn, once a person has seen what that would do. It answers what it was about. */
export async function rewind(daemon: Daemon, sessionId: SessionID, toTurn: TurnID): Promise<RewindFiles | "none" | undefined> {
  const way = await vscode.window.showQuickPick(ways, { placeHolder: "What is to be as before this message?" });
  if (!way) {
    return undefined;
  }
  const params = { sessionId, toTurn, ...(way.files && { files: way.files }) };
  return (await rewound(daemon, params, "this message")) ? (way.files ?? "none") : undefined;
}

/** rewindFiles brings files back to before a file point, likewise. */
export async function rewindFiles(daemon: Daemon, sessionId: SessionID, toPoint: PointID): Promise<void> {
  await rewound(daemon, { sessionId, toPoint, files: "only" }, "this");
}

/** shows what a rewind would do, and does it if that is wanted */
async function rewound(daemon: Daemon, params: SessionRewindParams, before: string): Promise<boolean> {
  const preview = await daemon.call("session/rewind", { ...params, dryRun: true });
  const files = preview.files ?? [];
  const lost = files.filter((file) => file.conflict);
  const go = lost.length > 0 ? "Rewind Anyway" : "Rewind";
  if ((await vscode.window.showWarningMessage(question(params.files, preview.nodes, before), { modal: true, detail: detailOf(files) }, go)) !== go) {
    return false;
  }
  const done = await daemon.change("session/rewind", { ...params, ...(lost.length > 0 && { force: true }) });
  if (done.pointId !== undefined) {
    offerUndo(daemon, params.sessionId, done.pointId, done.files ?? []).catch((error) => void vscode.window.showErrorMessage(`lashd: ${messageOf(error)}`));
  }
  return true;
}

async function offerUndo(daemon: Daemon, sessionId: SessionID, toPoint: PointID, files: FileRewind[]) {
  const left = files.filter((file) => file.problem ?? file.unkept);
  const message = `lashd has brought back ${files.length - left.length} of ${files.length} files.`;
  if (await vscode.window.showInformationMessage(message, "Undo")) {
    await daemon.change("session/rewind", { sessionId, toPoint, files: "only" });
  }
}

function question(files: RewindFiles | undefined, nodes: number, before: string): string {
  const history = files === "only" ? "" : `${nodes} entries of the conversation go out of sight; they are kept.`;
  return [`Rewind to before ${before}?`, history].filter(Boolean).join(" ");
}

const verbs = { created: "comes back", modified: "changes", deleted: "goes" };

const reasons = {
  changedSince: "it was changed since, which would be lost",
  shared: "another session changed it, too",
  unsure: "it is not known what became of it",
  notKept: "there is no copy of what it is now",
};

/** detailOf tells what becomes of each file. */
export function detailOf(files: FileRewind[]): string {
  const lines = files.map((file) => {
    const lines = file.binary ? "" : ` (+${file.added ?? 0} \u2212${file.removed ?? 0})`;
    const kept = file.unkept ? `stays: there is no copy of it (${file.unkept})` : `${verbs[file.effect]}${lines}`;
    return `${file.path} ${kept}${file.conflict ? `: ${reasons[file.conflict]}` : ""}`;
  });
  const shown = lines.slice(0, 20);
  return [...shown, ...(lines.length > shown.length ? [`and ${lines.length - shown.length} more`] : [])].join("\n");
}
