/** Throttle runs a function after calls of request: at once for the first one, then at most once in each interval. */
export class Throttle {
  private timer?: NodeJS.Timeout;
  private again = false;

  constructor(private readonly run: () => void, private readonly intervalMs: number) {}

  request(): void {
    if (this.timer) {
      this.again = true;
      return;
    }
    this.run();
    this.timer = setTimeout(() => this.elapsed(), this.intervalMs);
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.again = false;
  }

  private elapsed() {
    this.timer = undefined;
    if (this.again) {
      this.again = false;
      this.request();
    }
  }
}
