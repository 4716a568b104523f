import type { FromWebview } from "../chat/messages";
import { words } from "../decisionText";
import { headline, isLasting, leavesSandbox, pageOf, saysAll, timeLeft, timesOf, type Answer } from "../model/approvals";
import { reasonText } from "../model/decided";
import type { Decision, DecisionChoice, DecisionID, Session } from "../protocol";
import { answerKeys, ApprovalAnswers } from "./approvalAnswers";
import { argumentElements } from "./arguments";
import { previewOf } from "./approvalPreview";
import { button, h } from "./dom";
import type { Highlights } from "./highlights";

const keys: Partial<Record<DecisionChoice, string>> = { allowOnce: "Y", allowSession: "S", allowAlways: "A", reject: "N" };

/** Card is a decision on the page. */
interface Card {
  decision: Decision;
  element: HTMLElement;
  left: HTMLElement;
  answers: ApprovalAnswers;
}

/** QuestionCards shows the open decisions of a session. Without a connection their buttons are disabled. */
export class QuestionCards {
  private shown: Card[] = [];
  private connected = false;
  private times: Record<DecisionID, number> = {};
  private timer?: ReturnType<typeof setInterval>;
  private readonly answered = new Set<DecisionID>(); // answers that the daemon has not confirmed; a second click adds none

  /** leave moves the focus away after the last question is answered. */
  constructor(private readonly place: HTMLElement, private readonly post: (message: FromWebview) => void, private readonly leave: () => void, private readonly highlights: Highlights) {}

  /** show shows decisions. times are when their default answers apply, by the clock of this page, for those that are known. */
  show(decisions: Decision[], connected: boolean, session?: Session, times: Record<DecisionID, number> = {}): void {
    const open = decisions.filter((decision) => decision.kind !== "completion");
    this.times = timesOf(open, { ...this.times, ...times }, Date.now());
    const same = connected === this.connected && open.map((d) => d.decisionId).join() === this.shown.map((card) => card.decision.decisionId).join();
    if (same) {
      return; // keep the text that the user is typing
    }
    this.connected = connected;
    this.shown = open.map((decision) => this.card(decision, session));
    const focused = this.place.contains(document.activeElement);
    this.place.replaceChildren(...this.shown.map((card) => card.element));
    if (focused) {
      this.keepFocus();
    }
    this.countDown();
  }

  /** keepFocus moves the focus of an answered question to the next one. Its card gets it, not a button, so that a second Enter answers nothing. */
  private keepFocus() {
    const [first] = this.shown;
    if (first) {
      first.element.focus();
    } else {
      this.leave();
    }
  }

  /** key answers the first question by its shortcut and reports whether the key is one of its shortcuts. */
  key(code: string): boolean {
    const [first] = this.shown;
    const choice = first?.decision.choices.find((c) => `Key${keys[c]}` === code);
    if (first && choice && this.connected) {
      first.answers.choose(choice);
    }
    return choice !== undefined;
  }

  private answer(decisionId: DecisionID, answer: Answer) {
    if (!this.answered.has(decisionId)) {
      this.answered.add(decisionId);
      this.post({ type: "answer", decisionId, ...answer });
    }
  }

  /** failed lets the user answer again, because an answer may not have arrived. */
  failed(): void {
    this.answered.clear();
  }

  /** countDown renews the time left each second, as long as a question has a deadline. */
  private countDown() {
    clearInterval(this.timer);
    this.timer = undefined;
    this.tick();
    if (Object.keys(this.times).length > 0) {
      this.timer = setInterval(() => this.tick(), 1000);
    }
  }

  private tick() {
    for (const { decision, left } of this.shown) {
      const end = this.times[decision.decisionId];
      left.textContent = end === undefined ? "" : timeLeft(decision, end - Date.now());
    }
  }

  private card(decision: Decision, session?: Session): Card {
    const { call, kind, sessionId, detail, decisionId } = decision;
    const approval = kind === "approval" && detail !== undefined;
    const page = pageOf(decision);
    const question = approval ? headline(decision, session) : (page?.question ?? decision.prompt);
    const left = h("span", { class: "left", role: "timer" });
    const preview = approval ? previewOf(decision, session, this.highlights, (file) => this.post({ type: "preview", decisionId, file }), () => answers.changed()) : undefined;
    const send = (answer: Answer) => this.answer(decisionId, answer);
    const answers = new ApprovalAnswers(decision, { disabled: !this.connected, taken: () => preview?.taken(), hint: (choice) => hint(choice), send });
    const element = h(
      "div",
      { class: leavesSandbox(decision, session) ? "card outside" : "card", role: "group", label: question, tabindex: -1 },
      h("p", { class: "question" }, h("b", {}, question), left),
      page && h("p", { class: "page" }, page.parts[0], h("b", {}, page.parts[1]), page.parts[2]),
      preview?.element,
      call && h("details", { open: preview?.bare && !saysAll(question, decision) }, h("summary", {}, `All arguments of ${call.name}`), ...argumentElements(call.args, this.highlights)),
      approval && h("p", { class: "why" }, reasonText(detail.why, session?.config)),
      decision.choices.includes("answer") ? this.field(decision, send) : undefined,
      answers.element,
      !this.connected && h("small", {}, "Not connected to lashd."),
    );
    element.dataset.session = sessionId;
    return { decision, element, left, answers };
  }

  /** field returns the input for a value: buttons for an enumeration, otherwise a field for text or, if the form requires it, JSON. */
  private field(decision: Decision, answer: (answer: Answer) => void): HTMLElement {
    const { type, enum: offered } = (decision.form ?? {}) as { type?: string; enum?: unknown[] };
    if (Array.isArray(offered)) {
      return h("div", { class: "choices" }, ...offered.map((value) => button(String(value), () => answer({ choice: "answer", value }), { disabled: !this.connected })));
    }
    const input = h("textarea", { label: "Answer", class: "answer" });
    const wrong = h("small", { class: "wrong" });
    const send = () => {
      try {
        const text = type === undefined || type === "string";
        answer({ choice: "answer", value: text ? input.value : JSON.parse(input.value) });
      } catch {
        wrong.textContent = "Enter valid JSON.";
      }
    };
    answerKeys(input, () => void (this.connected && send()), this.leave);
    return h("div", {}, input, wrong, h("div", { class: "choices" }, button(words.answer, send, { title: "Enter. Shift+Enter starts a new line.", disabled: !this.connected })));
  }
}

/** hint returns the keyboard shortcut of an answer, and how long it holds. */
function hint(choice: DecisionChoice): string | undefined {
  const scope = isLasting(choice) ? `: also allow later calls ${choice === "allowSession" ? "in this session" : "in this workspace"}` : "";
  return keys[choice] && `Alt+${keys[choice]}${scope}`;
}
