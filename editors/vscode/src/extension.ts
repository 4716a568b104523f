import { join } from "node:path";
import * as vscode from "vscode";
import { changesTitles } from "./chat/changes";
import { Chats } from "./chat/chats";
import { chatCommands } from "./chat/commands";
import { Highlighter } from "./chat/highlighter";
import { watchEditors } from "./chat/lastEditor";
import { viewType } from "./chat/panel";
import { viewId } from "./chat/sideChat";
import { TrustView } from "./chat/trustView";
import { watchTerminals } from "./chat/terminalOutput";
import { register, sessionCommands } from "./commands";
import { EditorTools } from "./editorTools";
import { Daemon, messageOf } from "./daemon/daemon";
import { VSCodeChat } from "./lm/vscodeChat";
import { counted, isInFolders, recentSessions, titleOf } from "./model/sessions";
import { realFolders } from "./openFolders";
import { unpack } from "./daemon/unpack";
import { program } from "./program";
import type { Session } from "./protocol";
import { Sessions } from "./sessions";
import { Throttle } from "./throttle";
import { themeSettings, tokenTheme } from "./views/colorTheme";
import { Choices } from "./views/choices";
import { writeCommitMessage } from "./views/commitMessage";
import { ConfigFile } from "./views/configFile";
import { findSession } from "./views/findSession";
import { notifyFinished } from "./views/finished";
import { editSelection } from "./views/inlineEdit";
import { showServers } from "./views/mcpServers";
import { ProposedChanges } from "./views/proposedChanges";
import { Questions } from "./views/questions";
import { ReadState } from "./views/readState";
import { folders, SessionTree } from "./views/sessionTree";
import { ShownSession } from "./views/shownSession";
import { StatusItem } from "./views/status";
import { closeStale } from "./views/tabs";
import { Texts, textSchemes } from "./views/textDocuments";
import { Traces } from "./views/traces";
import { Setup } from "./providers/setup";
import { Sidebar } from "./sidebar";

const demoKey = "lashd.demo";

/** The shortest time between two redraws of the list of sessions. A busy daemon sends hundreds of changes a second. */
const redrawMs = 200;

/** activate starts the extension. In a folder without trust, it starts nothing until the user trusts the folder. */
export function activate(context: vscode.ExtensionContext): void {
  const side = new TrustView();
  context.subscriptions.push(vscode.window.registerWebviewViewProvider(viewId, side));
  if (vscode.workspace.isTrusted) {
    return begin(context, side);
  }
  const commands = askForTrust(context);
  context.subscriptions.push(vscode.workspace.onDidGrantWorkspaceTrust(() => {
    commands.dispose();
    begin(context, side);
  }));
}

/** askForTrust registers every command so that it asks for trust. */
function askForTrust(context: vscode.ExtensionContext): vscode.Disposable {
  const { contributes } = context.extension.packageJSON as { contributes: { commands: { command: string }[] } };
  const ask = async () => {
    const manage = "Manage Workspace Trust";
    if ((await vscode.window.showInformationMessage("lashd: Trust this folder to use lashd. Its agents run commands here.", manage)) === manage) {
      await vscode.commands.executeCommand("workbench.trust.manage");
    }
  };
  const commands = vscode.Disposable.from(...contributes.commands.map(({ command }) => vscode.commands.registerCommand(command, ask)));
  context.subscriptions.push(commands);
  return commands;
}

/** begin connects to the daemon and creates the views and commands. */
function begin(context: vscode.ExtensionContext, side: TrustView): void {
  const log = vscode.window.createOutputChannel("lashd", { log: true });
  const inDemo = () => context.workspaceState.get(demoKey, false);
  const showDemo = () => vscode.commands.executeCommand("setContext", "lashd.inDemo", inDemo());
  void showDemo();
  const { version } = context.extension.packageJSON as { version: string };
  let bundled: string | undefined;
  const daemon = new Daemon({ program: () => program(context, bundled, inDemo()), version, log });
  const sessions = new Sessions(daemon, log);
  const texts = new Texts();
  void closeStale(textSchemes, Object.values(changesTitles));
  const choices = new Choices(texts);
  const themes = new vscode.EventEmitter<void>();
  const highlighter = new Highlighter((grammar) => loadGrammar(context.extensionPath, grammar), tokenTheme());
  const chats: Chats = new Chats({
    daemon, log, texts, highlighter, extensionUri: context.extensionUri, onTheme: themes.event, open: (id, near) => chats.show(id, near),
    inDemo, showProposed: (decision, file, cwd) => proposed.show(decision, file, cwd),
    review: (plugin, cwd) => sidebar.review(plugin, cwd),
    titleOf: (id) => titleIn(sessions, id),
    recent: (id) => recentSessions(sessions.list, id, Date.now()),
  }, context.workspaceState);
  side.trusted(chats.side);
  const traces = new Traces(daemon);
  const questions = new Questions(daemon, sessions, (decision) => chats.visible(decision.sessionId) || proposed.shows(decision), (id) => isShown(sessions, id));
  const proposed: ProposedChanges = new ProposedChanges(texts, sessions, questions);
  const seen = new ReadState(context.workspaceState);
  const tree = new SessionTree(sessions, seen, () => "reason" in daemon.state);
  const view = vscode.window.createTreeView("lashd.sessions", { treeDataProvider: tree });
  const shown = new ShownSession(view, tree, log);
  const status = new StatusItem();
  const tools = new EditorTools(daemon, choices, log);
  const config = new ConfigFile(() => program(context, bundled, false), daemon, log);
  const setup = new Setup({
    daemon, connect: () => new Daemon({ program: () => program(context, bundled, false), version, log }), chats, inDemo, openConfig: () => config.open(),
  });
  const sidebar: Sidebar = new Sidebar(daemon, sessions, log, texts, choices, chats.say);

  const redraw = new Throttle(() => {
    const open = questions.decisions.length;
    status.show(daemon.state, here(sessions), open, { demo: inDemo(), restart: config.restartNeeded });
    view.message = "reason" in daemon.state ? `lashd cannot start. ${daemon.state.reason}` : undefined;
    view.badge = { value: open, tooltip: counted(open, "open question") };
    tree.refresh();
    void shown.select(chats.active?.followed.id);
  }, redrawMs);
  const show = () => {
    questions.update();
    void proposed.update();
    sidebar.setActiveChat(chats);
    redraw.request();
  };
  daemon.onState((state) => {
    log.info(`connection: ${state.kind}`);
    void vscode.commands.executeCommand("setContext", "lashd.state", state.kind);
    setup.update().catch((error) => log.warn(`list models: ${messageOf(error)}`));
    show();
  });
  daemon.onServerEvent((news) => void (news.type === "session/deleted" && news.sessionId !== undefined && seen.forget(news.sessionId)));
  sessions.onChange(() => sessions.list.forEach(({ sessionId, seq }) => chats.visible(sessionId) && seen.mark(sessionId, seq))); // before they are drawn
  sessions.onChange(show);
  config.onChange(show);
  chats.onChange((chat) => {
    const { view: state, id } = chat.followed;
    if (state && chat.visible) {
      void (seen.mark(id, state.seq) && redraw.request());
    }
    void vscode.commands.executeCommand("setContext", "lashd.hasChat", chats.size > 0);
    questions.update();
    sidebar.setActiveChat(chats);
    void shown.select(chats.active?.followed.id);
    void tools.offer(sessionForTools(sessions, chats.active?.followed.id));
  });

  const demo = async (on: boolean) => {
    chats.closeAll();
    await context.workspaceState.update(demoKey, on);
    await showDemo();
    daemon.start();
    if (on) {
      await vscode.commands.executeCommand("lashd.newSession");
    }
  };
  const recolor = () => {
    highlighter.setTheme(tokenTheme());
    themes.fire();
  };
  context.subscriptions.push(
    vscode.window.onDidChangeActiveColorTheme(recolor),
    vscode.workspace.onDidChangeConfiguration((e) => themeSettings.some((name) => e.affectsConfiguration(name)) && recolor()),
    view.onDidChangeVisibility(() => void shown.select(chats.active?.followed.id)),
    watchTerminals(), watchEditors(),
    log, view, status, choices, sidebar, tools, config, new VSCodeChat(daemon, sessions), texts.register(), traces.register(),
    vscode.window.registerWebviewPanelSerializer(viewType, chats),
    notifyFinished(daemon, sessions, (id) => chats.visible(id), (id) => isShown(sessions, id)),
    ...register(log, {
      ...sessionCommands({ daemon, sessions, chats, questions, log, demo, inDemo, offerModel: () => setup.offerModel() }), ...sidebar.commands, ...chatCommands(daemon, texts, chats, traces), ...setup.commands, 
      ...proposed.commands,
      openConfig: () => config.open(),
      commitMessage: (of: { rootUri?: vscode.Uri } | undefined) => writeCommitMessage(daemon, of),
      editSelection: () => editSelection(daemon, choices),
      applyEdit: (uri?: vscode.Uri) => choices.respond(uri, true),
      discardEdit: (uri?: vscode.Uri) => choices.respond(uri, false),
      trustReviewed: (uri?: vscode.Uri) => choices.respond(uri, true),
      showChoice: () => choices.reveal(),
      findSession: (_: undefined, words?: unknown) => findSession(daemon, sessions, typeof words === "string" ? words : ""),
      mcpServers: () => showServers({ daemon, texts, say: chats.say, review: (plugin, cwd) => sidebar.review(plugin, cwd) }, chats.active?.followed.view?.session.cwd ?? realFolders()[0]),
    }),
    vscode.workspace.onDidChangeConfiguration((e) => (e.affectsConfiguration("lashd.path") || e.affectsConfiguration("lashd.home") ? daemon.start() : show())),
    vscode.workspace.onDidChangeWorkspaceFolders(show),
    vscode.window.onDidChangeWindowState(({ focused }) => void (focused && setup.update(true).catch(() => undefined))), // the user may have run lash login
    { dispose: () => daemon.close() },
    { dispose: () => questions.close() },
    vscode.window.tabGroups.onDidChangeTabs(() => (questions.update(), setup.showContexts())),
    redraw,
  );
  void unpackBundled(context, log).then((dir) => {
    bundled = dir;
    daemon.start();
  });
}

/** unpackBundled returns the directory of the lashd that the extension has; undefined if it has none, or if it cannot be unpacked. */
async function unpackBundled(context: vscode.ExtensionContext, log: vscode.LogOutputChannel): Promise<string | undefined> {
  const name = process.platform === "win32" ? "lashd.exe" : "lashd";
  try {
    return await unpack(context.extensionPath, join(context.globalStorageUri.fsPath, "bin"), name);
  } catch (error) {
    log.error(`unpack lashd: ${messageOf(error)}`);
    return undefined;
  }
}

/** loadGrammar loads a grammar from its file. */
function loadGrammar(extensionPath: string, grammar: string): never[] {
  // eslint-disable-next-line @typescript-eslint/no-require-imports -- the file is loaded when the grammar is needed, not with the extension
  return (require(join(extensionPath, "dist", "grammars", `${grammar}.js`)) as { default: never[] }).default;
}

/** here returns the sessions that this window shows. */
function here(sessions: Sessions): Session[] {
  return [...sessions.list.values()].filter((session) => isInFolders(session, folders()));
}

function titleIn(sessions: Sessions, id: string): string | undefined {
  const session = sessions.list.get(id);
  return session && titleOf(session);
}

function isShown(sessions: Sessions, id: string): boolean {
  const session = sessions.list.get(id);
  return !session || isInFolders(session, folders());
}

/** sessionForTools returns the session if it works in a folder of this window. Other sessions get no editor tools. */
function sessionForTools(sessions: Sessions, id: string | undefined): Session | undefined {
  const session = id === undefined ? undefined : sessions.list.get(id);
  return session && isInFolders(session, realFolders()) ? session : undefined;
}
