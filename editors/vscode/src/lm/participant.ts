import * as vscode from "vscode";
import type { Daemon } from "../daemon/daemon";
import type { Decision, Event, SessionID } from "../protocol";
import type { Sessions } from "../sessions";
import { questionText, words } from "../decisionText";
import { answerOf, prompt, Spoken } from "./prompt";
import { begin } from "./tools";

interface Metadata {
  sessionId?: SessionID;
}

/** registerParticipant has @lashd answer in VS Code's own chat, where that can be: a chat there is one session. */
export function registerParticipant(daemon: Daemon, sessions: Sessions): vscode.Disposable {
  if (!("createChatParticipant" in vscode.chat)) {
    return new vscode.Disposable(() => undefined);
  }
  const participant = vscode.chat.createChatParticipant("lashd.agent", async (request, context, stream, token) => {
    const sessionId = known(context, sessions) ?? (await begin(daemon));
    await daemon.call("session/attach", { sessionId }); // a chat of ours that was closed has let it go
    const spoken = new Spoken((text) => stream.markdown(text));
    const listening = daemon.onEvent((event) => void (event.sessionId === sessionId && show(event, spoken, stream)));
    try {
      const report = await prompt(daemon, sessionId, request.prompt, token);
      if (!spoken.any) {
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

/** The session that this chat has gone on with, if it is there still. */
function known({ history }: vscode.ChatContext, sessions: Sessions): SessionID | undefined {
  const ids = history.flatMap((turn) => (turn instanceof vscode.ChatResponseTurn ? ((turn.result.metadata as Metadata | undefined)?.sessionId ?? []) : []));
  return ids.findLast((id) => sessions.list.has(id));
}

function show(event: Event, spoken: Spoken, stream: vscode.ChatResponseStream) {
  spoken.hear(event);
  if (event.type === "item/started" && event.item?.kind === "toolCall") {
    stream.progress(event.item.tool ?? "a tool");
  }
  if (event.type === "decision/opened" && event.decision) {
    ask(event.decision, stream);
  }
}

function ask(decision: Decision, stream: vscode.ChatResponseStream) {
  stream.markdown(new vscode.MarkdownString().appendText(`${questionText(decision)}\n\n`));
  for (const choice of decision.choices.filter((one) => one !== "answer")) {
    stream.button({ command: "lashd.answer", title: words[choice], arguments: [decision.decisionId, choice] });
  }
}

/** What VS Code has since 1.104, which is newer than the oldest that this runs in. */
interface Providers {
  registerLanguageModelChatProvider(vendor: string, provider: object): vscode.Disposable;
}

/** VS Code asks a participant only where there is a model. Where no other is, this one stands for that of the session. */
function registerModel(): vscode.Disposable {
  if (!("registerLanguageModelChatProvider" in vscode.lm)) {
    return new vscode.Disposable(() => undefined);
  }
  const model = { id: "lashd", name: "lashd", family: "lashd", version: "1", maxInputTokens: 100_000, maxOutputTokens: 10_000, capabilities: { toolCalling: true } }; // without tools it is not there for agents
  const registered = (vscode.lm as unknown as Providers).registerLanguageModelChatProvider("lashd", {
    provideLanguageModelChatInformation: () => [model],
    provideTokenCount: (_: object, text: string | object) => JSON.stringify(text).length / 4,
    provideLanguageModelChatResponse: (_: object, __: object, ___: object, progress: vscode.Progress<vscode.LanguageModelTextPart>) =>
      progress.report(new vscode.LanguageModelTextPart("This model does not answer messages itself. Start your message with @lashd.")),
  });
  void vscode.lm.selectChatModels({ vendor: "lashd" }); // what is not asked for once is not there when it is needed
  return registered;
}
