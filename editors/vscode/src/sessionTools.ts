import { Emitter } from "vscode-jsonrpc/node";
import { messageOf, type Daemon } from "./daemon/daemon";
import type { Log } from "./daemon/link";
import type { PluginInfo, SessionID, ToolRecord } from "./protocol";

/** Place is a workspace, and optionally a session in it. */
export interface Place {
  cwd?: string;
  sessionId?: SessionID;
}

/** SessionTools holds the plugins of a workspace and the tools of its current session. */
export class SessionTools {
  private readonly changes = new Emitter<void>();
  readonly onChange = this.changes.event;
  plugins: PluginInfo[] = [];
  records: ToolRecord[] = [];
  place: Place = {};
  private latestLoad = 0;

  constructor(private readonly daemon: Daemon, private readonly log: Log) {
    daemon.onState((state) => void (state.kind === "ready" && this.load()));
    daemon.onServerEvent((news) => void (news.type === "plugin/changed" && this.load()));
    daemon.onEvent((event) => void (event.type === "tools/changed" && event.sessionId === this.place.sessionId && this.load()));
  }

  /** setPlace switches to another place and loads its plugins and tools. */
  setPlace(place: Place): void {
    if (place.cwd !== this.place.cwd || place.sessionId !== this.place.sessionId) {
      this.place = place;
      void this.load();
    }
  }

  /** load reads the plugins and tools. Only the newest of several concurrent loads takes effect. */
  async load(): Promise<void> {
    const thisLoad = ++this.latestLoad;
    const { cwd, sessionId } = this.place;
    try {
      const plugins = await this.daemon.call("plugin/list", { ...(cwd && { cwd }) });
      const tools = sessionId === undefined ? undefined : await this.daemon.call("tool/list", { sessionId });
      if (thisLoad === this.latestLoad) {
        this.plugins = plugins.data;
        this.records = (tools?.data ?? []).filter((tool) => tool.activation !== "internal");
        this.changes.fire();
      }
    } catch (error) {
      this.log.warn(`plugins and tools: ${messageOf(error)}`);
    }
  }

  /** setMembership sets which of the given tools the model can call from the next turn on. */
  async setMembership(members: [ToolRecord, boolean][]): Promise<void> {
    const { sessionId } = this.place;
    if (sessionId !== undefined && members.length > 0) {
      const wanted = Object.fromEntries(members.map(([tool, member]) => [tool.name, member]));
      await this.daemon.change("tool/setMembership", { sessionId, members: wanted });
    }
    await this.load();
  }
}

/** sourcesOf returns the names of all plugins and other tool sources. Plugins with problems come first, then by name. */
export function sourcesOf({ plugins, records }: Pick<SessionTools, "plugins" | "records">): string[] {
  const names = new Set([...plugins.map((plugin) => plugin.name), ...records.map((tool) => tool.source || "none")]);
  const order = (name: string) => (plugins.some((plugin) => plugin.name === name && plugin.status !== "loaded") ? 0 : 1);
  return [...names].sort((a, b) => order(a) - order(b) || a.localeCompare(b));
}

/** builtinTitles are the names of the built-in plugins for people. */
const builtinTitles: Record<string, string> = {
  workspace: "Files", shell: "Commands", outputBudget: "Long outputs", promptcontext: "Instructions and context", plan: "Plan", toolsearch: "Tool search", history: "Summaries of history",
  batch: "Parallel calls", monitor: "Monitors", subagents: "Subagents", llm_query: "Questions to other models", skills: "Skills",
};

/** sourceTitle returns the name of a source of tools for people. */
export function sourceTitle(source: string, plugin: PluginInfo | undefined): string {
  if (source.startsWith("client:")) {
    return "Editor";
  }
  return plugin?.scope === "builtin" ? (builtinTitles[source] ?? source) : source;
}
