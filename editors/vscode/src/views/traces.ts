import * as vscode from "vscode";
import type { Daemon } from "../daemon/daemon";
import { age } from "../model/sessions";
import { lines, outline } from "../model/trace";
import { usageText } from "../model/usage";
import type { Event, SessionID, TurnID, TurnTraceResult } from "../protocol";

const scheme = "lashd-trace";

/** How long events are gathered before a trace that is open is read again. */
const gatherMs = 500;

/** Traces are documents that tell what happened in a turn. They grow as long as it goes on. */
export class Traces implements vscode.TextDocumentContentProvider {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly late = new Map<TurnID, NodeJS.Timeout>();

  constructor(private readonly daemon: Daemon) {
    daemon.onEvent(({ turnId, seq }) => void (turnId !== undefined && seq !== undefined && this.touch(turnId)));
  }

  register(): vscode.Disposable {
    return vscode.workspace.registerTextDocumentContentProvider(scheme, this);
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const { turn, data } = await this.read(uri.query);
    return outline(turn, data);
  }

  /** show opens the trace of a turn. */
  async show(turnId: TurnID): Promise<void> {
    const uri = vscode.Uri.from({ scheme, path: `/Trace ${turnId.slice(-6)}.txt`, query: turnId });
    await vscode.window.showTextDocument(uri, { preview: true });
  }

  /** pick lets a person choose a turn of a session, and opens its trace. */
  async pick(sessionId: SessionID): Promise<void> {
    const { data } = await this.daemon.call("turn/list", { sessionId, limit: 50 });
    const items = data.map(({ turnId, state, usage, acceptedAtMs }) => ({
      label: new Date(acceptedAtMs).toLocaleString(), description: `${state}, ${age(acceptedAtMs, Date.now())}`, detail: usageText(usage), turnId,
    }));
    const picked = items.length === 1 ? items[0] : await vscode.window.showQuickPick(items, { placeHolder: "Select a turn" });
    if (picked) {
      await this.show(picked.turnId);
    }
  }

  /** save writes the trace that is in front into a file, an event a line. */
  async save(): Promise<void> {
    const shown = vscode.window.activeTextEditor?.document.uri;
    if (shown?.scheme !== scheme) {
      void vscode.window.showInformationMessage("lashd: Open the trace of a turn first.");
      return;
    }
    const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
    const file = `${shown.query}.jsonl`;
    const to = await vscode.window.showSaveDialog({ ...(folder && { defaultUri: vscode.Uri.joinPath(folder, file) }), filters: { "JSON lines": ["jsonl"] } });
    if (to) {
      const { data } = await this.read(shown.query);
      await vscode.workspace.fs.writeFile(to, new TextEncoder().encode(lines(data)));
    }
  }

  private async read(turnId: TurnID): Promise<TurnTraceResult> {
    const data: Event[] = [];
    let page: TurnTraceResult | undefined;
    do {
      const cursor: string | undefined = page?.nextCursor;
      page = await this.daemon.call("turn/trace", { turnId, ...(cursor && { cursor }) });
      data.push(...page.data);
    } while (page.nextCursor);
    return { ...page, data };
  }

  /** has the trace of a turn read again, if it is open */
  private touch(turnId: TurnID) {
    const open = vscode.workspace.textDocuments.find(({ uri }) => uri.scheme === scheme && uri.query === turnId);
    if (open && !this.late.has(turnId)) {
      this.late.set(turnId, setTimeout(() => (this.late.delete(turnId), this.changed.fire(open.uri)), gatherMs));
    }
  }
}
