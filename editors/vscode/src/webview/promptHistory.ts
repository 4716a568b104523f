/** PromptHistory goes through inputs that were sent before, newest first. */
export class PromptHistory {
  private inputs?: string[];
  private at = -1;
  private pending = 0; // steps asked for before the inputs are known

  /** request asks for the inputs; apply puts one into the field. */
  constructor(private readonly request: () => void, private readonly apply: (text: string) => void) {}

  /** step goes one input back, or forth, and reports whether the field is part of the history. */
  step(by: 1 | -1, text: string): boolean {
    const shown = this.at < 0 ? "" : this.inputs?.[this.at];
    if (text !== shown || (by < 0 && this.at < 0)) {
      return false;
    }
    if (!this.inputs) {
      this.pending += this.pending === 0 ? (this.request(), 1) : 0;
      return true;
    }
    this.move(by);
    return true;
  }

  /** show receives the inputs. */
  show(inputs: string[]): void {
    this.inputs = [...new Set(inputs)];
    if (this.pending > 0) {
      this.pending = 0;
      this.move(1);
    }
  }

  /** reset starts again at the newest input, which is read again. */
  reset(): void {
    this.inputs = undefined;
    this.at = -1;
  }

  private move(by: 1 | -1) {
    this.at = Math.min(this.at + by, (this.inputs ?? []).length - 1);
    this.apply(this.at < 0 ? "" : (this.inputs?.[this.at] ?? ""));
  }
}
