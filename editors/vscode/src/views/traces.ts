import * as vscode from "vscode";
import type { Daemon } from "../daemon/daemon";
import { age } from "../model/sessions";
import { promptsOf, traceLines, traceText } from "../model/trace";
import { usageText } from "../model/usage";
import type { Event, SessionID, TurnID, TurnTraceResult } from "../protocol";
import { labelText } from "../model/printable";

const scheme = "lashd-trace";

/** The delay between an event and the refresh of an open trace. */
const refreshMs = 500;

/** Traces provides the traces of turns as documents. The trace of a running turn grows. */
export class Traces implements vscode.TextDocumentContentProvider {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly refreshTimers = new Map<TurnID, NodeJS.Timeout>();

  constructor(private readonly daemon: Daemon) {
    daemon.onEvent(({ turnId, seq }) => void (turnId !== undefined && seq !== undefined && this.scheduleRefresh(turnId)));
  }

  register(): vscode.Disposable {
    return vscode.workspace.registerTextDocumentContentProvider(scheme, this);
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const { turn, data } = await this.read(uri.query);
    return traceText(turn, data);
  }

  /** show opens the trace of a turn. */
  async show(turnId: TurnID): Promise<void> {
    const uri = vscode.Uri.from({ scheme, path: `/Trace ${turnId.slice(-6)}.txt`, query: turnId });
    await vscode.window.showTextDocument(uri, { preview: true });
  }

  /** pick lets the user choose a turn of a session, and opens its trace. */
  async pick(sessionId: SessionID): Promise<void> {
    const [{ data }, read] = await Promise.all([this.daemon.call("turn/list", { sessionId, limit: 50 }), this.daemon.call("session/read", { sessionId, limit: 200 })]);
    const prompts = promptsOf(read.data);
    const items = data.map(({ turnId, state, usage, acceptedAtMs }) => ({
      label: labelText(prompts[turnId] ?? "") || new Date(acceptedAtMs).toLocaleString(), description: `${state}, ${age(acceptedAtMs, Date.now())}`, detail: usageText(usage), turnId,
    }));
    const picked = items.length === 1 ? items[0] : await vscode.window.showQuickPick(items, { placeHolder: "Select a turn" });
    if (picked) {
      await this.show(picked.turnId);
    }
  }

  /** save writes the trace in the active editor to a file, one event per line. */
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
      await vscode.workspace.fs.writeFile(to, new TextEncoder().encode(traceLines(data)));
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

  /** scheduleRefresh refreshes the trace of a turn if it is open. */
  private scheduleRefresh(turnId: TurnID) {
    const open = vscode.workspace.textDocuments.find(({ uri }) => uri.scheme === scheme && uri.query === turnId);
    if (open && !this.refreshTimers.has(turnId)) {
      this.refreshTimers.set(turnId, setTimeout(() => (this.refreshTimers.delete(turnId), this.changed.fire(open.uri)), refreshMs));
    }
  }
}
