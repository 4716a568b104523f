import { words } from "../decisionText";
import { hunkCount, isEditable, isLasting, widthsOf, withCommand, type Answer } from "../model/approvals";
import type { Decision, DecisionChoice } from "../protocol";
import { button, h } from "./dom";
import { icon } from "./icons";

/** answerKeys makes Enter send the text of a field and Escape call back. Escape then reaches nothing else, so it stops no turn. */
export function answerKeys(field: HTMLTextAreaElement, send: () => void, back?: () => void): void {
  field.addEventListener("keydown", (event) => {
    const done = event.key === "Escape" ? back : event.key === "Enter" && !event.shiftKey && !event.isComposing ? send : undefined;
    if (done) {
      event.preventDefault();
      event.stopPropagation();
      done();
    }
  });
}

/** Asked is the surroundings of the answers to a decision. */
export interface Asked {
  disabled: boolean;
  /** the changes that the user takes; undefined: all */
  taken(): number[] | undefined;
  hint(choice: DecisionChoice): string | undefined;
  send(answer: Answer): void;
}

/** ApprovalAnswers are the buttons of a decision. Some of them open a second step: what an answer covers, an edited call, or a reason. */
export class ApprovalAnswers {
  readonly element = h("div", { class: "answers" });
  private unfolded = false; // the answers under More are visible

  constructor(private readonly decision: Decision, private readonly asked: Asked) {
    this.choices();
  }

  /** changed shows how many changes are taken. */
  changed(): void {
    this.choices();
  }

  /** choose takes a choice, or opens the list of what it can cover. */
  choose(choice: DecisionChoice): void {
    const taken = this.taken();
    if (isLasting(choice) && this.decision.detail && !taken) {
      this.widths(choice);
    } else if (!taken || choice === "reject") {
      this.asked.send({ choice });
    } else if (choice === "allowOnce" && taken.length > 0) {
      this.asked.send({ choice, hunks: taken });
    }
  }

  private taken(): number[] | undefined {
    return hunkCount(this.decision) > 0 ? this.asked.taken() : undefined;
  }

  private choices() {
    const { decision, asked } = this;
    const { disabled } = asked;
    const taken = this.taken();
    const offered = decision.choices.filter((choice) => choice !== "answer" && !(taken && isLasting(choice)) && !(taken?.length === 0 && choice === "allowOnce"));
    const label = (choice: DecisionChoice) => (taken && choice === "allowOnce" ? this.someText(taken) : words[choice]);
    const plain = (choice: DecisionChoice) => button(label(choice), () => this.choose(choice), { title: asked.hint(choice), disabled, class: choice === "allowOnce" ? "first" : undefined });
    const approval = decision.kind === "approval" && decision.detail && decision.choices.includes("reject");
    const more = [
      ...offered.filter(isLasting).map(plain),
      isEditable(decision) && button("Edit\u2026", () => this.edit(), { title: "Change the call before it runs", disabled }),
      approval && taken && taken.length > 0 && button(`${label("allowOnce")} with a reason\u2026`, () => this.reason("allowOnce", taken), { title: "The agent reads why you leave out the others", disabled }),
      approval && button("Deny with a reason\u2026", () => this.reason("reject"), { title: "The agent reads the reason", disabled }),
    ].filter((one) => one !== false && one !== undefined);
    const few = offered.filter((choice) => !isLasting(choice)).map(plain);
    this.fill(...few, ...(more.length > 1 ? [] : more));
    if (more.length > 1) {
      this.fold(more);
    }
  }

  /** fold puts further answers below the others. A button shows and hides them. */
  private fold(answers: HTMLElement[]) {
    const below = h("div", { class: "choices more", role: "group", label: "More answers" }, ...answers);
    below.id = `more-${this.decision.decisionId}`;
    const toggle = button("More\u2026", () => (show(!this.unfolded), below.scrollIntoView({ block: "nearest" })), { class: "unfold" });
    toggle.setAttribute("aria-controls", below.id);
    toggle.append(icon("chevron-down"));
    const show = (unfolded: boolean) => {
      this.unfolded = unfolded;
      below.hidden = !unfolded;
      toggle.setAttribute("aria-expanded", String(unfolded));
    };
    below.addEventListener("keydown", ({ key }) => {
      if (key === "Escape") {
        show(false);
        toggle.focus();
      }
    });
    this.element.firstElementChild?.append(toggle);
    this.element.append(below);
    show(this.unfolded);
  }

  /** fill shows a row of buttons below other elements. */
  private fill(...buttons: (HTMLElement | false | undefined)[]) {
    this.element.replaceChildren(h("div", { class: "choices" }, ...buttons));
  }

  private back(): HTMLElement {
    return button("Back", () => this.goBack(), { title: "Escape" });
  }

  /** goBack shows the choices again. The card gets the focus, not a button, so that Enter answers nothing. */
  private goBack() {
    this.choices();
    this.element.closest<HTMLElement>(".card")?.focus();
  }

  /** widths asks what a lasting answer covers. The proposal is chosen at first. */
  private widths(choice: DecisionChoice) {
    const all = widthsOf(this.decision);
    const name = `width-${this.decision.decisionId}`;
    const inputs = all.map((_, index) => {
      const input = h("input", {});
      Object.assign(input, { type: "radio", name, checked: index === 0 });
      return input;
    });
    const send = () => {
      const index = all[inputs.findIndex((input) => input.checked)]?.index;
      this.asked.send({ choice, ...(index !== undefined && { width: index }) });
    };
    const title = choice === "allowSession" ? "Allow for the rest of this session:" : "Always allow in this workspace:";
    const allow = button("Allow", send, { class: "first", disabled: this.asked.disabled });
    this.fill(allow, this.back());
    const [only, ...others] = all;
    if (only && others.length === 0) {
      this.element.prepend(h("p", { class: "facts" }, h("b", {}, title), ` ${only.text}. `, onlyExact(this.decision)));
      allow.focus();
      return;
    }
    this.element.prepend(h("div", { class: "widths", role: "radiogroup", label: title }, h("b", {}, title), ...inputs.map((input, index) => h("label", {}, input, all[index]?.text))));
    inputs[0]?.focus();
  }

  /** edit asks for the command, or the arguments as JSON, to run instead. */
  private edit() {
    const { call, detail } = this.decision;
    const command = detail?.command?.command;
    const text = command ?? JSON.stringify(call?.args, undefined, 2);
    this.field(command === undefined ? "Arguments to run instead" : "Command to run instead", text, "Run once", (entered) => {
      if (!call || entered.trim() === "") {
        return "Enter what to run.";
      }
      try {
        const args = command === undefined ? (JSON.parse(entered) as unknown) : withCommand(call, entered);
        this.asked.send({ choice: "allowOnce", ...(entered !== text && { args }) });
        return "";
      } catch {
        return "Enter valid JSON.";
      }
    });
  }

  /** reason asks why the call is denied, or which of its changes are left out. */
  private reason(choice: "reject" | "allowOnce", hunks?: number[]) {
    const [label, action] = hunks ? ["Reason for the agent to leave out the other changes", this.someText(hunks)] : ["Reason for the agent", words[choice]];
    this.field(label, "", action, (reason) => {
      this.asked.send({ choice, ...(hunks && { hunks }), ...(reason.trim() !== "" && { reason: reason.trim() }) });
      return "";
    });
  }

  /** someText says how many changes an answer allows. */
  private someText(taken: number[]): string {
    return `Allow ${taken.length} of ${hunkCount(this.decision)} changes`;
  }

  /** field asks for a text. send returns what is wrong with it, or "". */
  private field(label: string, text: string, action: string, send: (text: string) => string) {
    const input = h("textarea", { label, class: "answer" });
    input.value = text;
    const wrong = h("small", { class: "wrong", role: "alert" });
    const submit = () => void (!this.asked.disabled && (wrong.textContent = send(input.value)));
    answerKeys(input, submit, () => this.goBack());
    this.fill(button(action, submit, { class: "first", title: "Enter. Shift+Enter starts a new line.", disabled: this.asked.disabled }), this.back());
    this.element.prepend(h("small", {}, label), input, wrong);
    input.focus();
  }
}

/** onlyExact says why a lasting answer covers no more than one command; "" for other calls. */
function onlyExact({ detail }: Decision): string {
  return detail?.command ? "Wider rules are offered only for programs that do one job, such as npm test. You can write others with lashd: Rules." : "";
}
