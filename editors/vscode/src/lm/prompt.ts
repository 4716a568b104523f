import type * as vscode from "vscode";
import type { Daemon } from "../daemon/daemon";
import { append, type Grown } from "../model/streamedText";
import type { Event, ItemID, SessionID, TurnReport } from "../protocol";

/** prompt gives a session an input and waits for the end of its turn; who does not wait for it any more stops it. */
export async function prompt(daemon: Daemon, sessionId: SessionID, text: string, token: vscode.CancellationToken): Promise<TurnReport> {
  const { turnId } = await daemon.change("turn/start", { sessionId, input: [{ type: "text", text }], whenBusy: "queue" });
  const stop = () => void daemon.change("turn/interrupt", { turnId }).catch(() => undefined); // it is over, then
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

/** answerOf is what a turn came to, in words. */
export function answerOf({ output, outcome, issues }: TurnReport): string {
  const problem = issues?.at(-1)?.message;
  return output?.safe || `The turn ended without an answer (${outcome?.kind ?? "still running"}${problem ? `: ${problem}` : ""}).`;
}

/** Spoken passes on what a session says as it says it, each piece once. */
export class Spoken {
  private readonly said = new Map<ItemID, Grown>();
  any = false;

  constructor(private readonly out: (text: string) => void) {}

  hear({ type, item, itemId, text = "", offset = 0 }: Event): void {
    const id = item?.itemId ?? itemId;
    const said = this.said.get(id ?? "");
    if (id === undefined) {
      return;
    }
    if (type === "item/started" && item?.kind === "agentMessage") {
      this.said.set(id, said ?? { text: "", bytes: 0 });
    } else if (type === "item/delta" && said) {
      this.say(id, append(said.text, said.bytes, text, offset));
    } else if (type === "item/completed" && item?.kind === "agentMessage") {
      this.say(id, { text: `${item.text ?? ""}\n\n`, bytes: 0 });
    }
  }

  private say(id: ItemID, grown: Grown | undefined) {
    const said = this.said.get(id)?.text ?? "";
    if (grown?.text.startsWith(said)) {
      this.said.set(id, grown);
      this.any ||= grown.text.trim() !== "";
      this.out(grown.text.slice(said.length));
    }
  }
}
