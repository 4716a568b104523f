import { Emitter } from "vscode-jsonrpc/node";
import { messageOf, type Daemon } from "./daemon/daemon";
import type { Log } from "./daemon/link";
import type { PluginInfo, SessionID, ToolRecord } from "./protocol";

/** Place is what plugins and tools are looked at for: a workspace, and a session in it if there is one. */
export interface Place {
  cwd?: string;
  sessionId?: SessionID;
}

/** Tools is what plugins there are in a place, and what tools its session has. */
export class Tools {
  private readonly changes = new Emitter<void>();
  readonly onChange = this.changes.event;
  plugins: PluginInfo[] = [];
  records: ToolRecord[] = [];
  place: Place = {};
  private asked = 0;

  constructor(private readonly daemon: Daemon, private readonly log: Log) {
    daemon.onState((state) => void (state.kind === "ready" && this.load()));
    daemon.onNews((news) => void (news.type === "plugin/changed" && this.load()));
    daemon.onEvent((event) => void (event.type === "tools/changed" && event.sessionId === this.place.sessionId && this.load()));
  }

  /** look turns to another place. */
  look(place: Place): void {
    if (place.cwd !== this.place.cwd || place.sessionId !== this.place.sessionId) {
      this.place = place;
      void this.load();
    }
  }

  /** load reads all of it anew; of several answers the newest counts. */
  async load(): Promise<void> {
    const mine = ++this.asked;
    const { cwd, sessionId } = this.place;
    try {
      const plugins = await this.daemon.call("plugin/list", { ...(cwd && { cwd }) });
      const tools = sessionId === undefined ? undefined : await this.daemon.call("tool/list", { sessionId });
      if (mine === this.asked) {
        this.plugins = plugins.data;
        this.records = (tools?.data ?? []).filter((tool) => tool.activation !== "internal");
        this.changes.fire();
      }
    } catch (error) {
      this.log.warn(`plugins and tools: ${messageOf(error)}`);
    }
  }

  /** include says for each of some tools whether the model may call it, from the next turn on. */
  async include(members: [ToolRecord, boolean][]): Promise<void> {
    const { sessionId } = this.place;
    if (sessionId !== undefined && members.length > 0) {
      const wanted = Object.fromEntries(members.map(([tool, member]) => [tool.name, member]));
      await this.daemon.change("tool/setMembership", { sessionId, members: wanted });
    }
    await this.load();
  }
}

/** sourcesOf are the plugins of tools, and those that have none, in order of name; what is not well comes first. */
export function sourcesOf({ plugins, records }: Pick<Tools, "plugins" | "records">): string[] {
  const names = new Set([...plugins.map((plugin) => plugin.name), ...records.map((tool) => tool.source || "none")]);
  const ill = (name: string) => (plugins.some((plugin) => plugin.name === name && plugin.status !== "loaded") ? 0 : 1);
  return [...names].sort((a, b) => ill(a) - ill(b) || a.localeCompare(b));
}
