import { type Daemon } from "../daemon/daemon";
import type { FileRewind, NodeID, PointID, SessionID, SessionRewindParams } from "../protocol";

/** Undone is what an undo did, and what its revert needs. */
export interface Undone {
  sessionId: SessionID;
  files: FileRewind[];
  /** the file point before the undo; absent: no file changed */
  pointId?: PointID;
  /** name of the snapshot of the conversation before the undo; absent: the conversation did not change */
  snapshot?: string;
}

/** undo rewinds a session. If that hides a part of the conversation, it first takes a snapshot, because a rewind alone cannot be reverted. */
export async function undo(daemon: Daemon, params: SessionRewindParams, nodes: number): Promise<Undone> {
  const { sessionId } = params;
  const snapshot = params.files === "only" || nodes === 0 ? undefined : `Before undo, ${new Date().toLocaleString()}`;
  if (snapshot !== undefined) {
    await daemon.change("snapshot/create", { sessionId, name: snapshot });
  }
  try {
    const { pointId, files = [] } = await daemon.change("session/rewind", params);
    return { sessionId, files, pointId, snapshot };
  } catch (error) {
    await forget(daemon, { sessionId, snapshot });
    throw error;
  }
}

/** revert restores the conversation and the files to their state before an undo. */
export async function revert(daemon: Daemon, undone: Undone): Promise<void> {
  const { sessionId, pointId, snapshot } = undone;
  if (pointId !== undefined) {
    await daemon.change("session/rewind", { sessionId, toPoint: pointId, files: "only" });
  }
  if (snapshot !== undefined) {
    await daemon.change("snapshot/restore", { sessionId, name: snapshot });
  }
  await forget(daemon, undone);
}

/** forget deletes the snapshot that the revert of an undo would need. */
export async function forget(daemon: Daemon, { sessionId, snapshot }: Pick<Undone, "sessionId" | "snapshot">): Promise<void> {
  if (snapshot !== undefined) {
    await daemon.change("snapshot/delete", { sessionId, name: snapshot });
  }
}

/** nodeBefore returns the node before a node in the history of a session. It throws if the node is not in the history. */
export async function nodeBefore(daemon: Daemon, sessionId: SessionID, nodeId: NodeID): Promise<NodeID> {
  let cursor: string | undefined;
  do {
    const page = await daemon.call("graph/read", { sessionId, limit: 500, ...(cursor && { cursor }) });
    const parent = page.data.find((node) => node.nodeId === nodeId)?.parent;
    if (parent !== undefined) {
      return parent;
    }
    cursor = page.nextCursor;
  } while (cursor);
  throw new Error("The message is not in the history any more. Reload the chat.");
}
