import * as vscode from "vscode";
import type { Chats } from "./chat/chats";
import { kindOf, messageOf, type Daemon, type State } from "./daemon/daemon";
import { driverOfNew } from "./drivers";
import type { DecisionChoice, DecisionID, SessionID } from "./protocol";
import type { Sessions } from "./sessions";
import { archive, compact, fork, remove, rename, stop } from "./sessionChanges";
import type { Questions } from "./views/questions";
import { sessionOf, type Node } from "./views/sessionTree";
import { shownWhole } from "./toasts";

/** CommandContext is the part of the extension that the commands use. */
export interface CommandContext {
  daemon: Daemon;
  sessions: Sessions;
  chats: Chats;
  questions: Questions;
  log: vscode.LogOutputChannel;
  /** starts or ends the demo, which uses a separate daemon */
  demo(on: boolean): Promise<void>;
  inDemo(): boolean;
  /** says why there is no model for a new session, and leads to one */
  offerModel: () => Promise<void>;
}

/** Target selects a session: a tree entry or an id. undefined selects the session of the active chat. */
type Target = Node | SessionID | undefined;

/** Commands maps command names, without the prefix "lashd.", to their implementations. */
export type Commands = Record<string, (...args: never[]) => unknown>;

/** register registers commands. It shows errors of a command to the user. */
export function register(log: vscode.LogOutputChannel, commands: Commands): vscode.Disposable[] {
  return Object.entries(commands).map(([name, run]) => vscode.commands.registerCommand(`lashd.${name}`, (...args: never[]) => runReported(log, run, args)));
}

/** sessionCommands returns the commands on sessions and on the connection. */
export function sessionCommands(parts: CommandContext): Commands {
  const { daemon, chats, questions, sessions, log } = parts;
  const change = (what: (id: SessionID) => Thenable<unknown>) => async (target: Target) => {
    const id = idOf(target, chats);
    if (id !== undefined) {
      await what(id);
    }
  };
  return {
    newSession: () => newSession(parts, false),
    newSessionWith: () => newSession(parts, true),
    clearSession: () => newSession(parts, false, "here"),
    newSessionInSideBar: (_: undefined, text?: unknown) => newSession(parts, false, "sideBar", typeof text === "string" ? text : ""),
    openSession: (target: Target, nodeId?: unknown) => change((id) => Promise.resolve(typeof nodeId === "string" ? chats.give(id, { type: "goTo", nodeId }) : chats.show(id)))(target),
    openInSideBar: change((id) => chats.keepIn(id, "sideBar")),
    openInEditor: change((id) => chats.keepIn(id, "editor")),
    forkSession: change((sessionId) => fork(parts, sessionId)),
    renameSession: (target: Target, title?: unknown) => change((id) => rename(parts, id, typeof title === "string" ? title : ""))(target),
    stopSession: change((id) => stop(parts, id)),
    archiveSession: change((id) => archive(parts, id)),
    unarchiveSession: change((sessionId) => daemon.change("session/archive", { sessionId, undo: true })),
    deleteSession: change((id) => remove(parts, id)),
    compactSession: (target: Target, instructions?: unknown) => change((id) => compact(parts, id, typeof instructions === "string" ? instructions : ""))(target),
    refresh: () => sessions.load(),
    answer: (id: DecisionID, choice: DecisionChoice) => {
      const decision = sessions.decisions.find((d) => d.decisionId === id);
      return decision && questions.answer(decision, choice);
    },
    answerDecision: () => questions.ask(),
    attachSelection: () => attachSelection(parts),
    attachFile: (uri: vscode.Uri | undefined) => chats.attachFile(uri),
    restart: () => daemon.start(),
    restartDaemon: () => restartDaemon(daemon),
    killDemo: () => killDemo(parts),
    showLog: () => log.show(),
    status: () => status(parts),
    demo: () => parts.demo(true),
    endDemo: () => parts.demo(false),
  };
}

/** runReported runs a command, and logs and shows its error. */
async function runReported(log: vscode.LogOutputChannel, run: (...args: never[]) => unknown, args: never[]) {
  try {
    return await run(...args);
  } catch (error) {
    log.error(messageOf(error));
    void showError(error);
  }
}

/** showError shows an error of a command, whole. */
async function showError(error: unknown) {
  const log = "Show Log";
  if ((await vscode.window.showErrorMessage(...shownWhole(`lashd: ${messageOf(error)}`, log))) === log) {
    await vscode.commands.executeCommand("lashd.showLog");
  }
}

function idOf(target: Target, chats: Chats): SessionID | undefined {
  return typeof target === "string" ? target : (sessionOf(target) ?? chats.active?.followed.id);
}

/**
 * newSession shows a session without messages: an open one, or a new one. askDriver lets the user choose the driver, whatever the settings
 * say. Without a place the chat is where the user wants new chats; "here" is the place of the active chat, with its folder and driver. The chat
 * sends a text at once.
 */
async function newSession({ daemon, chats, offerModel }: CommandContext, askDriver: boolean, place?: "sideBar" | "here", text = "") {
  const old = place === "here" ? chats.active : undefined;
  const { session } = old?.followed.view ?? {};
  const cwd = session?.cwd ?? (await folder())?.uri.fsPath;
  if (cwd === undefined) {
    const open = "Open Folder\u2026";
    const picked = await vscode.window.showInformationMessage("lashd: Open a folder first. A session works in a folder.", open);
    await (picked ? vscode.commands.executeCommand("vscode.openFolder") : undefined);
    return;
  }
  const driver = session ? { driver: session.config.driver } : await driverOfNew(daemon, askDriver);
  if (driver === undefined) {
    return;
  }
  const create = async () => (await daemon.change("session/new", { cwd, ...driver })).sessionId;
  try {
    const id = await (old ? chats.replace(old, cwd, driver, create) : chats.showNew(cwd, driver, create, place === "sideBar" ? place : undefined));
    if (id !== undefined && text !== "") {
      chats.give(id, { type: "draft", text, replace: true, send: true });
    }
  } catch (error) {
    if (kindOf(error) !== "modelNotFound") {
      throw error;
    }
    await offerModel();
  }
}

function folder() {
  const all = vscode.workspace.workspaceFolders ?? [];
  return all.length > 1 ? vscode.window.showWorkspaceFolderPick({ placeHolder: "Select the folder for the new session" }) : Promise.resolve(all[0]);
}

/** restartDaemon ends the daemon, and the extension starts it again. Running turns continue after that. */
export async function restartDaemon(daemon: Daemon): Promise<void> {
  if (daemon.state.kind === "ready") {
    await daemon.call("shutdown", { daemon: true });
  } else {
    daemon.start();
  }
}

/** attachSelection attaches the selection of the active editor to the active chat, or to that of a new session. */
async function attachSelection(parts: CommandContext) {
  const editor = vscode.window.activeTextEditor;
  if (!editor) {
    throw new Error("Open a file first.");
  }
  if (!parts.chats.active) {
    await newSession(parts, false);
  }
  parts.chats.attachSelection(editor);
}

/** killDemo kills the daemon of the demo, as a crash would. It never kills the daemon of the user. */
async function killDemo(parts: CommandContext) {
  if (!parts.inDemo()) {
    const start = "Start Demo";
    const picked = await vscode.window.showInformationMessage("lashd: This kills only the daemon of the demo, and the demo does not run.", start);
    return picked && parts.demo(true);
  }
  const { pid } = await parts.daemon.call("server/status", {});
  process.kill(pid, "SIGKILL");
}

const stateText: Record<State["kind"], string> = {
  connecting: "Connecting to lashd\u2026",
  failing: "lashd cannot start",
  ready: "Connected to lashd",
  failed: "lashd cannot start",
  closed: "Not connected to lashd",
};

async function status({ daemon, questions, log }: CommandContext) {
  const { state } = daemon;
  const detail = state.kind === "ready" ? `Data directory: ${state.server.dataDir}` : "reason" in state ? state.reason : undefined;
  const entries: (vscode.QuickPickItem & { run: () => unknown })[] = [
    { label: "$(question) Answer a question", description: String(questions.decisions.length), run: () => questions.ask() },
    { label: "$(key) Set up a provider", run: () => vscode.commands.executeCommand("lashd.setUpProvider") },
    { label: "$(add) New session", run: () => vscode.commands.executeCommand("lashd.newSession") },
    { label: "$(debug-restart) Reconnect", run: () => daemon.start() },
    { label: "$(refresh) Restart daemon", description: "applies config.toml; running turns continue", run: () => restartDaemon(daemon) },
    { label: "$(edit) Open config.toml", run: () => vscode.commands.executeCommand("lashd.openConfig") },
    { label: "$(output) Show log", run: () => log.show() },
  ];
  const open = questions.decisions.length > 0 ? entries : entries.slice(1);
  await (await vscode.window.showQuickPick(open, { title: stateText[state.kind], placeHolder: detail }))?.run();
}
