import type { FromWebview } from "../chat/messages";
import { tokensText } from "../model/context";
import { counted } from "../model/sessions";
import type { CompactionPart, CompactionPreviewResult } from "../protocol";
import { button, h } from "./dom";

/** The number of inputs of a part that are shown, the newest ones. */
const maxInputs = 5;

/** CompactionCard shows what a compaction would summarize and keep, and starts it. */
export class CompactionCard {
  private readonly instructions = h("textarea", { label: "What the summary must keep", class: "answer" });
  private readonly compact = button("Compact", () => this.start(), { class: "first" });

  /** leave moves the focus away after the card is closed. */
  constructor(private readonly place: HTMLElement, private readonly post: (message: FromWebview) => void, private readonly leave: () => void) {
    this.instructions.placeholder = "What must the summary keep? (optional)";
    this.instructions.rows = 1;
    place.addEventListener("keydown", ({ key }) => key === "Escape" && this.close());
  }

  /** show shows the preview of a compaction with instructions for its summary. */
  show({ summarized, kept, tokens, tokensAfter }: CompactionPreviewResult, instructions: string): void {
    this.instructions.value = instructions;
    this.ended(false);
    const title = "Replace older history by a summary?";
    const change = h("p", {}, `The history has about ${tokensText(tokens)} tokens. Afterwards it has about ${tokensText(tokensAfter)} and the summary. You still see all of it; only the model gets less.`);
    const parts = h("div", { class: "parts" }, part("Summarized", summarized), part("Kept word for word", kept));
    const answers = h("div", { class: "choices" }, this.compact, button("Cancel", () => this.close()));
    this.place.replaceChildren(h("div", { class: "card", role: "group", label: title }, h("b", {}, title), change, parts, this.instructions, answers));
    this.place.hidden = false;
    this.compact.focus();
  }

  /** ended closes the card after a compaction, or lets the user try again. */
  ended(ok: boolean): void {
    this.compact.disabled = false;
    this.compact.textContent = "Compact";
    if (ok) {
      this.close();
    }
  }

  private start() {
    this.compact.disabled = true;
    this.compact.textContent = "Compacting\u2026";
    this.post({ type: "compact", instructions: this.instructions.value.trim() });
  }

  private close() {
    this.place.hidden = true;
    this.place.replaceChildren();
    this.leave();
  }
}

/** part shows a part of the history: its size, and the beginnings of its newest inputs. */
function part(title: string, { messages, tokens, inputs, moreInputs = 0 }: CompactionPart): HTMLElement {
  const shown = inputs.slice(-maxInputs);
  const earlier = moreInputs + inputs.length - shown.length;
  const entries = [...(earlier > 0 ? [h("li", { class: "earlier" }, counted(earlier, "earlier input"))] : []), ...shown.map((text) => h("li", { title: text }, text))];
  return h("div", {}, h("b", {}, title), h("small", {}, ` ${counted(messages, "message")}, about ${tokensText(tokens)} tokens`), h("ul", {}, ...entries));
}
