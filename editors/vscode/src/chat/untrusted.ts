import type { Disposable } from "vscode";
import { messageOf, type Daemon } from "../daemon/daemon";
import type { Log } from "../daemon/link";
import { untrustedPlugins } from "../model/pluginStatus";
import type { FollowedSession } from "../sessions";
import type { ToWebview } from "./messages";

/** Untrusted tells the page of a new chat which plugins of its folder do nothing until the user approves them, and again when plugins change. */
export class Untrusted {
  private readonly listening: Disposable;

  constructor(private readonly daemon: Daemon, private readonly followed: FollowedSession, private readonly post: (message: ToWebview) => void, private readonly log: Log) {
    this.listening = daemon.onServerEvent((news) => void (news.type === "plugin/changed" && this.show()));
  }

  /** show reads the plugins if the chat is new. Errors are logged. */
  async show(): Promise<void> {
    const { view } = this.followed;
    if (view?.items.length !== 0) {
      return;
    }
    try {
      const { data } = await this.daemon.call("plugin/list", { cwd: view.session.cwd });
      this.post({ type: "untrusted", plugins: untrustedPlugins(data) });
    } catch (error) {
      this.log.warn(`plugins of ${view.session.cwd}: ${messageOf(error)}`);
    }
  }

  dispose(): void {
    this.listening.dispose();
  }
}
