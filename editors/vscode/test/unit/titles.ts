import type { CallTitle } from "../../src/protocol";

const words: Record<string, [kind: CallTitle["kind"], verb: string, running: string, done: string]> = {
  read: ["read", "Read", "Reading", "Read"],
  write: ["edit", "Write", "Writing", "Wrote"],
  edit: ["edit", "Edit", "Editing", "Edited"],
  patch: ["edit", "Edit", "Editing", "Edited"],
  list: ["read", "List", "Listing", "Listed"],
  grep: ["search", "Search for", "Searching for", "Searched for"],
  shell: ["execute", "Run", "Running", "Ran"],
  start_command: ["execute", "Start", "Starting", "Started"],
  stop_command: ["execute", "Stop command", "Stopping command", "Stopped command"],
  update_plan: ["think", "Update plan", "Updating plan", "Updated plan"],
};

/** titled returns the title of a call as the daemon sends it; undefined for tools that it does not know. */
export function titled(tool: string, subject = "", detail = ""): CallTitle | undefined {
  const [kind = "other", verb = "", running = "", done = ""] = words[tool] ?? [];
  return words[tool] && { kind, verb, running, done, ...(subject && { subject }), ...(detail && { detail }) };
}
