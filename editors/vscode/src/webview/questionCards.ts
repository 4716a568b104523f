import type { FromWebview } from "../chat/messages";
import type { Decision, DecisionChoice } from "../protocol";
import { questionText, words } from "../decisionText";
import { button, h } from "./dom";

const automatic: Partial<Record<DecisionChoice, string>> = { allowOnce: "Allows", reject: "Denies" };
const keys: Partial<Record<DecisionChoice, string>> = { allowOnce: "Y", allowSession: "S", allowAlways: "A", reject: "N" };
const scopes: Partial<Record<DecisionChoice, string>> = { allowSession: "in this session", allowAlways: "in this workspace" };

/** hint returns the keyboard shortcut of an answer and, if the answer covers later calls, which ones. */
function hint({ varying }: Decision, choice: DecisionChoice): string | undefined {
  const args = `the same arguments${varying ? `, except that ${varying.join(" and ")} may differ` : ""}`;
  return keys[choice] && `Alt+${keys[choice]}${scopes[choice] ? `: also allow later calls ${scopes[choice]} with ${args}` : ""}`;
}

/** QuestionCards shows the open decisions of a session. Without a connection their buttons are disabled. */
export class QuestionCards {
  private shown: Decision[] = [];
  private connected = false;

  constructor(private readonly place: HTMLElement, private readonly post: (message: FromWebview) => void) {}

  show(decisions: Decision[], connected: boolean): void {
    const open = decisions.filter((decision) => decision.kind !== "completion");
    const same = connected === this.connected && open.map((d) => d.decisionId).join() === this.shown.map((d) => d.decisionId).join();
    if (same) {
      return; // keep the text that the user is typing
    }
    this.shown = open;
    this.connected = connected;
    this.place.replaceChildren(...open.map((decision) => this.card(decision)));
  }

  /** key answers the first question by its shortcut and reports whether the key is one of its shortcuts. */
  key(code: string): boolean {
    const [first] = this.shown;
    const choice = first?.choices.find((c) => `Key${keys[c]}` === code);
    if (first && choice && this.connected) {
      this.answer(first, choice);
    }
    return choice !== undefined;
  }

  private card(decision: Decision): HTMLElement {
    const { call, choices, sessionId, deadlineAtMs } = decision;
    const question = questionText(decision);
    const field = choices.includes("answer") ? this.field(decision) : undefined;
    const plain = choices.filter((choice) => choice !== "answer");
    const until = deadlineAtMs > 0 ? `${automatic[decision.default] ?? "Closes"} automatically at ${new Date(deadlineAtMs).toLocaleTimeString()}.` : "";
    const card = h(
      "div",
      { class: "card", role: "group", label: question },
      h("p", {}, call ? question.slice(0, 600) : question),
      call && h("details", {}, h("summary", {}, `All arguments of ${call.name}`), h("pre", {}, JSON.stringify(call.args, undefined, 2))),
      field,
      h("div", { class: "choices" }, ...plain.map((choice) => this.choice(decision, choice))),
      h("small", {}, [this.connected ? "" : "Not connected to lashd.", until].filter(Boolean).join(" ")),
    );
    card.dataset.session = sessionId;
    return card;
  }

  private choice(decision: Decision, choice: DecisionChoice): HTMLElement {
    const title = hint(decision, choice);
    return button(words[choice], () => this.answer(decision, choice), { title, disabled: !this.connected, class: choice === "allowOnce" ? "first" : undefined });
  }

  /** field returns the input for a value: buttons for an enumeration, otherwise a field for text or, if the form requires it, JSON. */
  private field(decision: Decision): HTMLElement {
    const { type, enum: offered } = (decision.form ?? {}) as { type?: string; enum?: unknown[] };
    if (Array.isArray(offered)) {
      return h("div", { class: "choices" }, ...offered.map((value) => button(String(value), () => this.answer(decision, "answer", value), { disabled: !this.connected })));
    }
    const input = h("textarea", { label: "Answer", class: "answer" });
    const wrong = h("small", { class: "wrong" });
    const send = () => {
      try {
        const text = type === undefined || type === "string";
        this.answer(decision, "answer", text ? input.value : JSON.parse(input.value));
      } catch {
        wrong.textContent = "Enter valid JSON.";
      }
    };
    return h("div", {}, input, wrong, h("div", { class: "choices" }, button(words.answer, send, { disabled: !this.connected })));
  }

  private answer({ decisionId }: Decision, choice: DecisionChoice, value?: unknown) {
    this.post({ type: "answer", decisionId, choice, ...(value !== undefined && { value }) });
  }
}
