import * as vscode from "vscode";
import type { Daemon } from "../daemon/daemon";
import type { SessionID } from "../protocol";
import { context, picture, store } from "./artifacts";
import { pickAttachments } from "./attachments";
import { attachmentOf } from "./mentions";
import type { FromWebview, ToWebview } from "./messages";

type Post = (message: ToWebview) => void;

/** Request is a message of the page about files and pictures, or about what fills the context window. */
type Request = FromWebview & { type: "attach" | "dropped" | "store" | "picture" | "context" };

/** handleContents answers a request of the page of a session. */
export async function handleContents(request: Request, daemon: Daemon, sessionId: SessionID, post: Post): Promise<void> {
  switch (request.type) {
    case "attach":
      return attachAll(await pickAttachments(), post);
    case "dropped":
      return attachAll(request.uris.map(fileOf), post);
    case "store":
      return storeFile(request, daemon, sessionId, post);
    case "picture":
      return post(await picture(daemon, request.digest, request.mediaType));
    case "context":
      return post(await context(daemon, sessionId));
  }
}

/** fileOf returns the file of a dropped address. In a remote window the views of the editor name it for the other side of the connection. */
function fileOf(address: string): vscode.Uri {
  const uri = vscode.Uri.parse(address);
  return uri.scheme === "vscode-remote" && vscode.env.remoteName !== undefined ? vscode.Uri.from({ scheme: "file", path: uri.path }) : uri;
}

async function attachAll(uris: vscode.Uri[], post: Post) {
  for (const uri of uris) {
    const { type } = await vscode.workspace.fs.stat(uri);
    post(await attachmentOf({ kind: (type & vscode.FileType.Directory) === 0 ? "file" : "folder", uri: uri.toString() }));
  }
}

/** storeFile stores an attached file. The page drops a file that could not be stored. */
async function storeFile({ id, data }: Request & { type: "store" }, daemon: Daemon, sessionId: SessionID, post: Post) {
  try {
    post({ type: "stored", id, digest: await store(daemon, sessionId, data) });
  } catch (error) {
    post({ type: "stored", id });
    throw error;
  }
}
