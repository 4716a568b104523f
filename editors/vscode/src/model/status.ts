import type { State } from "../daemon/daemon";
import type { Session } from "../protocol";
import { counted } from "./sessions";

interface StatusText {
  text: string;
  tooltip: string;
  warn?: boolean;
}

/** statusOf returns what the status bar shows. */
export function statusOf(state: State, sessions: Session[], open: number, restart: boolean): StatusText {
  if ("reason" in state) {
    return { text: "$(error) lashd cannot start", tooltip: state.reason, warn: true };
  }
  if (state.kind !== "ready") {
    return { text: "$(loading~spin) lashd", tooltip: "Connecting to the lashd daemon" };
  }
  if (open > 0) {
    return { text: `$(question) lashd: ${open}`, tooltip: counted(open, "open question"), warn: true };
  }
  if (restart) {
    return { text: "$(warning) lashd: restart needed", tooltip: "config.toml changed. Click, and choose Restart daemon.", warn: true };
  }
  const running = sessions.filter((session) => session.state === "running").length;
  const busy = running > 0;
  return { text: busy ? `$(sync~spin) lashd: ${running}` : "$(check) lashd", tooltip: `lashd ${state.server.serverInfo.version ?? ""}: ${counted(running, "running session")}` };
}
