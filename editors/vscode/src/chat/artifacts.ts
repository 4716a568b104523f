import { randomUUID } from "node:crypto";
import type { Daemon } from "../daemon/daemon";
import { contextParts } from "../model/context";
import type { Digest, SessionID } from "../protocol";
import type { ToWebview } from "./messages";

/** The size of the parts in which contents are sent and read, in bytes. The daemon accepts 1 MiB. */
const partSize = 768 * 1024;

/** The largest picture that a chat shows, in bytes. lashd accepts no larger images. */
const maxPicture = 5 << 20;

/** store stores the contents of an attached file with a session and returns their digest. data is base64. */
export async function store(daemon: Daemon, sessionId: SessionID, data: string): Promise<Digest> {
  const bytes = Buffer.from(data, "base64");
  const uploadId = randomUUID();
  for (let offset = 0; ; offset += partSize) {
    const done = offset + partSize >= bytes.length;
    const part = bytes.subarray(offset, offset + partSize).toString("base64");
    const r = await daemon.change("artifact/write", { sessionId, uploadId, offset, bytes: part, ...(done && { done }) });
    if (done) {
      return r.digest ?? "";
    }
  }
}

/** picture returns a stored image as a message for the page. */
export async function picture(daemon: Daemon, digest: Digest, mediaType: string): Promise<ToWebview> {
  const parts: Buffer[] = [];
  for (let offset = 0; ; offset = size(parts)) {
    const r = await daemon.call("artifact/read", { digest, offset, limit: partSize });
    parts.push(Buffer.from(r.bytes, "base64"));
    if (size(parts) >= Math.min(r.size, maxPicture) || r.bytes.length === 0) {
      return { type: "picture", digest, url: `data:${mediaType};base64,${Buffer.concat(parts).toString("base64")}` };
    }
  }
}

function size(parts: Buffer[]): number {
  return parts.reduce((sum, part) => sum + part.length, 0);
}

/** context returns what fills the next request of a session as a message for the page. */
export async function context(daemon: Daemon, sessionId: SessionID): Promise<ToWebview & { type: "context" }> {
  const prompt = await daemon.call("debug/prompt", { sessionId });
  return { type: "context", parts: contextParts(prompt), incomplete: (prompt.issues ?? []).length > 0 };
}
