import type * as vscode from "vscode";
import type { Daemon } from "../daemon/daemon";
import { append, type StreamedText } from "../model/streamedText";
import type { Event, ItemID, SessionID, TurnReport } from "../protocol";

/** prompt sends an input to a session and waits for the end of its turn. Cancelling the token stops the turn. */
export async function prompt(daemon: Daemon, sessionId: SessionID, text: string, token: vscode.CancellationToken): Promise<TurnReport> {
  const { turnId } = await daemon.change("turn/start", { sessionId, input: [{ type: "text", text }], whenBusy: "queue" });
  const stop = () => void daemon.change("turn/interrupt", { turnId }).catch(() => undefined); // the turn has ended
  const stopping = token.onCancellationRequested(stop);
  if (token.isCancellationRequested) {
    stop();
  }
  try {
    return await daemon.call("turn/wait", { turnId, follow: true });
  } finally {
    stopping.dispose();
  }
}

/** answerOf returns the final reply of a turn, or the reason why there is none. */
export function answerOf({ output, outcome, issues }: TurnReport): string {
  const problem = issues?.at(-1)?.message;
  return output?.safe || `The turn ended without an answer (${outcome?.kind ?? "still running"}${problem ? `: ${problem}` : ""}).`;
}

/** ReplyStream passes on the replies of a session while they stream, without repeating text. */
export class ReplyStream {
  private readonly sentTexts = new Map<ItemID, StreamedText>();
  hasText = false;

  constructor(private readonly out: (text: string) => void) {}

  handle({ type, item, itemId, text = "", offset = 0 }: Event): void {
    const id = item?.itemId ?? itemId;
    const said = this.sentTexts.get(id ?? "");
    if (id === undefined) {
      return;
    }
    if (type === "item/started" && item?.kind === "agentMessage") {
      this.sentTexts.set(id, said ?? { text: "", bytes: 0 });
    } else if (type === "item/delta" && said) {
      this.send(id, append(said.text, said.bytes, text, offset));
    } else if (type === "item/completed" && item?.kind === "agentMessage") {
      this.send(id, { text: `${item.text ?? ""}\n\n`, bytes: 0 });
    }
  }

  private send(id: ItemID, grown: StreamedText | undefined) {
    const said = this.sentTexts.get(id)?.text ?? "";
    if (grown?.text.startsWith(said)) {
      this.sentTexts.set(id, grown);
      this.hasText ||= grown.text.trim() !== "";
      this.out(grown.text.slice(said.length));
    }
  }
}
