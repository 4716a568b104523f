import * as vscode from "vscode";
import type { Daemon } from "../daemon/daemon";
import { labelText } from "../model/printable";
import { ownNames } from "../model/slashCommands";
import type { SessionID } from "../protocol";
import { commandsFor, runCommand } from "./input";
import type { Suggestion, ToWebview } from "./messages";
import type { Say } from "../toasts";

type Item = vscode.QuickPickItem & { suggestion?: Suggestion };

/** showHelp lists the commands of a session. A chosen command runs, or is put into the input if it goes with a text. */
export async function showHelp(daemon: Daemon, say: Say, sessionId: SessionID, give: (message: ToWebview & { type: "draft" }) => void): Promise<void> {
  const all = await commandsFor("", daemon, sessionId);
  const names = new Map(ownNames().map(([name = "", ...also]) => [`/${name}`, also]));
  const [own, others] = [all.filter(({ label }) => names.has(label)), all.filter(({ label }) => !names.has(label))];
  const items: Item[] = [
    ...own.map((suggestion) => itemOf(suggestion, names.get(suggestion.label))),
    { label: "skills, prompts and commands of plugins", kind: vscode.QuickPickItemKind.Separator },
    ...others.map((suggestion) => itemOf(suggestion)),
  ];
  const placeHolder = "Type / for these commands, @ to attach, // for a text that begins with a slash";
  const { suggestion } = (await vscode.window.showQuickPick(items, { title: "Commands of the chat", placeHolder, matchOnDescription: true })) ?? {};
  if (suggestion?.command !== undefined) {
    await runCommand(daemon, say, sessionId, suggestion.command, "");
  } else if (suggestion?.insert !== undefined) {
    give({ type: "draft", text: `${suggestion.insert} `, replace: true });
  }
}

function itemOf(suggestion: Suggestion, also: readonly string[] = []): Item {
  const { label, detail, hint = "", icon } = suggestion;
  const names = also.length > 0 ? `(also ${also.map((name) => `/${name}`).join(", ")})` : "";
  return { label: `$(${icon}) ${labelText(label)}`, description: labelText([detail, hint, names].filter(Boolean).join(" ")), suggestion };
}
