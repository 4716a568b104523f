import * as vscode from "vscode";
import type { Daemon } from "../daemon/daemon";
import type { Decision, Event, Session, SessionID } from "../protocol";
import type { Sessions } from "../sessions";
import { wholeText, words } from "../decisionText";
import { answerOf, prompt, ReplyStream } from "./prompt";
import { startSession } from "./tools";

interface Metadata {
  sessionId?: SessionID;
}

/** registerParticipant registers @lashd in VS Code's own chat, if VS Code supports it. Each chat is one session. */
export function registerParticipant(daemon: Daemon, sessions: Sessions): vscode.Disposable {
  if (!("createChatParticipant" in vscode.chat)) {
    return new vscode.Disposable(() => undefined);
  }
  const participant = vscode.chat.createChatParticipant("lashd.agent", async (request, context, stream, token) => {
    const sessionId = sessionOf(context, sessions) ?? (await startSession(daemon));
    await daemon.call("session/attach", { sessionId }); // a closed lash chat may have detached it
    const spoken = new ReplyStream((text) => stream.markdown(text));
    const listening = daemon.onEvent((event) => void (event.sessionId === sessionId && show(event, sessions, spoken, stream)));
    try {
      const report = await prompt(daemon, sessionId, request.prompt, token);
      if (!spoken.hasText) {
        stream.markdown(answerOf(report));
      }
    } finally {
      listening.dispose();
    }
    stream.button({ command: "lashd.openSession", title: "Open Session", arguments: [sessionId] });
    return { metadata: { sessionId } satisfies Metadata };
  });
  return vscode.Disposable.from(participant, registerModel());
}

/** sessionOf returns the session of this chat, or undefined if the chat has none or the session was deleted. */
function sessionOf({ history }: vscode.ChatContext, sessions: Sessions): SessionID | undefined {
  const ids = history.flatMap((turn) => (turn instanceof vscode.ChatResponseTurn ? ((turn.result.metadata as Metadata | undefined)?.sessionId ?? []) : []));
  return ids.findLast((id) => sessions.list.has(id));
}

function show(event: Event, sessions: Sessions, spoken: ReplyStream, stream: vscode.ChatResponseStream) {
  spoken.handle(event);
  if (event.type === "item/started" && event.item?.kind === "toolCall") {
    stream.progress(event.item.tool ?? "a tool");
  }
  if (event.type === "decision/opened" && event.decision) {
    ask(event.decision, sessions.list.get(event.decision.sessionId), stream);
  }
}

function ask(decision: Decision, session: Session | undefined, stream: vscode.ChatResponseStream) {
  stream.markdown(new vscode.MarkdownString().appendText(`${wholeText(decision, session)}\n\n`));
  for (const choice of decision.choices.filter((one) => one !== "answer")) {
    stream.button({ command: "lashd.answer", title: words[choice], arguments: [decision.decisionId, choice] });
  }
}

/** Providers is an API of VS Code 1.104. The extension also supports older versions. */
interface Providers {
  registerLanguageModelChatProvider(vendor: string, provider: object): vscode.Disposable;
}

/** registerModel registers a placeholder model. VS Code calls a participant only if at least one model exists. */
function registerModel(): vscode.Disposable {
  if (!("registerLanguageModelChatProvider" in vscode.lm)) {
    return new vscode.Disposable(() => undefined);
  }
  const model = { id: "lashd", name: "lashd", family: "lashd", version: "1", maxInputTokens: 100_000, maxOutputTokens: 10_000, capabilities: { toolCalling: true } }; // agent mode hides models without tool calling
  const registered = (vscode.lm as unknown as Providers).registerLanguageModelChatProvider("lashd", {
    provideLanguageModelChatInformation: () => [model],
    provideTokenCount: (_: object, text: string | object) => JSON.stringify(text).length / 4,
    provideLanguageModelChatResponse: (_: object, __: object, ___: object, progress: vscode.Progress<vscode.LanguageModelTextPart>) =>
      progress.report(new vscode.LanguageModelTextPart("This model does not answer messages itself. Start your message with @lashd.")),
  });
  void vscode.lm.selectChatModels({ vendor: "lashd" }); // VS Code loads a provider only after the first request for its models
  return registered;
}
