import * as vscode from "vscode";
import type { Daemon } from "../daemon/daemon";
import { driverSetting } from "../drivers";
import { groupOf, titleOf, isInFolders } from "../model/sessions";
import { realFolders } from "../openFolders";
import type { SessionID } from "../protocol";
import type { Sessions } from "../sessions";
import { answerOf, prompt } from "./prompt";

interface Prompt {
  prompt: string;
  sessionId?: SessionID;
}

/** registerTools registers tools with which other models list and prompt the sessions of the open folders. */
export function registerTools(daemon: Daemon, sessions: Sessions): vscode.Disposable {
  return vscode.Disposable.from(
    vscode.lm.registerTool("lashd_list_sessions", { invoke: () => result(list(sessions)) }),
    vscode.lm.registerTool<Prompt>("lashd_prompt_session", {
      prepareInvocation: ({ input }) => ({ invocationMessage: input.sessionId === undefined ? "Waiting for a new lash session" : `Waiting for lash session ${input.sessionId}` }),
      invoke: async ({ input }, token) => {
        const id = input.sessionId ?? (await startSession(daemon));
        if (!openSessions(sessions).some((session) => session.sessionId === id) && input.sessionId !== undefined) {
          throw new Error(`the open folders have no session ${id}; call lashd_list_sessions for the ids`);
        }
        return result(`Session ${id}:\n\n${answerOf(await prompt(daemon, id, input.prompt, token))}`);
      },
    }),
  );
}

/** startSession creates a session in the first open folder. */
export async function startSession(daemon: Daemon): Promise<SessionID> {
  const cwd = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
  if (cwd === undefined) {
    throw new Error("no folder is open; a session needs a folder to work in");
  }
  return (await daemon.change("session/new", { cwd, driver: driverSetting() })).sessionId;
}

function openSessions({ list }: Sessions) {
  const open = realFolders();
  return [...list.values()].filter((session) => isInFolders(session, open));
}

function list(sessions: Sessions): string {
  const lines = openSessions(sessions).map((session) => `${session.sessionId} ${groupOf(session)} in ${session.cwd}: ${titleOf(session)}`);
  return lines.join("\n") || "No sessions.";
}

const result = (text: string) => new vscode.LanguageModelToolResult([new vscode.LanguageModelTextPart(text)]);
