/** RunOnce runs each call once. A repeated request with the same key gets the result of the first. */
export class RunOnce<T> {
  private readonly calls = new Map<string, { stop: AbortController; output: Promise<T> }>();

  /** run starts a call, or returns the result of the call with this key. A call that failed can run again. */
  run(key: string, start: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const existing = this.calls.get(key);
    if (existing) {
      return existing.output;
    }
    const stop = new AbortController();
    const call = { stop, output: start(stop.signal) };
    this.calls.set(key, call);
    call.output.catch(() => this.calls.get(key) === call && this.calls.delete(key));
    return call.output;
  }

  /** cancel aborts the call with this key, if any, and forgets its result. */
  cancel(key: string): void {
    this.calls.get(key)?.stop.abort();
    this.calls.delete(key);
  }
}
