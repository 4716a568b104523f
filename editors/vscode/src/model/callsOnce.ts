/** Calls are those that a window has been asked to run, by key. Each is run once, however often it is asked for. */
export class Calls<T> {
  private readonly all = new Map<string, { stop: AbortController; output: Promise<T> }>();

  /** run begins a call, unless it has been begun. One that fails to begin may be asked for again. */
  run(key: string, begin: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const known = this.all.get(key);
    if (known) {
      return known.output;
    }
    const stop = new AbortController();
    const call = { stop, output: begin(stop.signal) };
    this.all.set(key, call);
    call.output.catch(() => this.all.get(key) === call && this.all.delete(key));
    return call.output;
  }

  /** over lets go of a call: nobody waits for it any more. */
  over(key: string): void {
    this.all.get(key)?.stop.abort();
    this.all.delete(key);
  }
}
