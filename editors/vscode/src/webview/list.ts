/** Row is an entry of a list. It is rendered again when its version is another one. */
export interface Row {
  key: string;
  version: unknown;
}

/** How many pixels beside what is seen are kept in the document. */
const margin = 600;

const guess = 72;

/**
 * List shows as many rows of a long list as are seen, and some beside. It stays at the end when it is there; otherwise
 * what is seen stays where it is, whatever changes above.
 */
export class List<R extends Row> {
  private rows: R[] = [];
  private tops: number[] = [0];
  private index = new Map<string, number>(); // of rows, by key
  private readonly heights = new Map<string, number>();
  private readonly mounted = new Map<string, { element: HTMLElement; version: unknown }>();
  private following = true;
  private was = 0; // where it was scrolled to
  private drawing = false;
  private readonly sizes: ResizeObserver;

  constructor(
    private readonly scroller: HTMLElement,
    private readonly canvas: HTMLElement,
    private readonly render: (row: R, old: HTMLElement | undefined) => HTMLElement,
    private readonly atTop: () => void,
  ) {
    this.sizes = new ResizeObserver(() => this.draw());
    this.sizes.observe(scroller);
    scroller.addEventListener("scroll", () => this.scrolled(), { passive: true });
  }

  /** set shows other rows, or rows that have changed. */
  set(rows: R[]): void {
    const anchor = this.anchor();
    this.rows = rows;
    this.index = new Map(rows.map((row, at) => [row.key, at]));
    this.measure();
    this.hold(anchor);
    this.draw();
  }

  /** end goes to the end, and stays there. */
  end(): void {
    this.following = true;
    this.draw();
  }

  /** step moves the focus from one row to the next or the one before. */
  step(by: 1 | -1): void {
    const now = this.rows.findIndex(({ key }) => this.mounted.get(key)?.element.contains(document.activeElement));
    const at = now < 0 ? this.rows.length - 1 : Math.min(Math.max(now + by, 0), this.rows.length - 1);
    const row = this.rows[at];
    if (row) {
      const top = this.top(at);
      const bottom = this.top(at + 1);
      const { scrollTop, clientHeight } = this.scroller;
      if (top < scrollTop || bottom > scrollTop + clientHeight) {
        this.following = false;
        this.scroller.scrollTop = by < 0 ? top : Math.min(top, bottom - clientHeight);
        this.draw();
      }
      this.mounted.get(row.key)?.element.focus({ preventScroll: true });
    }
  }

  private top(at: number): number {
    return this.tops[at] ?? this.tops.at(-1) ?? 0;
  }

  /** the first row that is seen, and how far it is above */
  private anchor(): { key: string; offset: number } | undefined {
    const at = this.at(this.scroller.scrollTop);
    const row = this.rows[at];
    return row && { key: row.key, offset: this.scroller.scrollTop - this.top(at) };
  }

  private hold(anchor: { key: string; offset: number } | undefined) {
    const at = anchor && !this.following ? (this.index.get(anchor.key) ?? -1) : -1;
    this.canvas.style.height = `${this.top(this.rows.length)}px`;
    if (anchor && at >= 0) {
      const want = this.top(at) + anchor.offset;
      if (Math.abs(want - this.scroller.scrollTop) > 1) {
        this.scroller.scrollTop = want;
      }
    } else if (this.following) {
      this.scroller.scrollTop = this.top(this.rows.length);
    }
  }

  private measure() {
    let top = 0;
    this.tops = [0];
    for (const row of this.rows) {
      top += this.heights.get(row.key) ?? guess;
      this.tops.push(top);
    }
  }

  /** the row at a height */
  private at(height: number): number {
    let low = 0;
    let high = Math.max(this.rows.length - 1, 0);
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.top(middle) <= height) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }

  private draw() {
    if (this.drawing) {
      return;
    }
    this.drawing = true;
    this.hold(this.anchor());
    // What is mounted may be of another height than was thought, so that more or less of it is seen.
    for (let round = 0; round < 4 && this.mount(); round++) {
      const anchor = this.anchor();
      this.measure();
      this.hold(anchor);
    }
    this.arrange();
    this.drawing = false;
  }

  /** mounts what is seen, and tells whether a height was wrong */
  private mount(): boolean {
    const { scrollTop, clientHeight } = this.scroller;
    const from = this.at(scrollTop - margin);
    const to = this.at(scrollTop + clientHeight + margin);
    const rows = this.rows.slice(from, to + 1);
    const keys = new Set(rows.map((row) => row.key));
    for (const [key, { element }] of this.mounted) {
      if (!keys.has(key) && (!this.index.has(key) || !element.contains(document.activeElement))) {
        this.sizes.unobserve(element);
        element.remove();
        this.mounted.delete(key);
      }
    }
    rows.forEach((row) => this.put(row));
    let wrong = false;
    for (const { key } of rows) {
      const height = this.mounted.get(key)?.element.offsetHeight ?? guess;
      wrong ||= this.heights.get(key) !== height;
      this.heights.set(key, height);
    }
    return wrong;
  }

  private put(row: R) {
    const there = this.mounted.get(row.key);
    if (there && there.version === row.version) {
      return;
    }
    const element = this.render(row, there?.element);
    if (element !== there?.element) {
      there?.element.remove();
      this.canvas.append(element);
      this.sizes.observe(element);
    }
    this.mounted.set(row.key, { element, version: row.version });
  }

  /** puts what is mounted in its place, in the document too: that is the order in which it is read and tabbed through */
  private arrange() {
    const mounted = [...this.mounted].map(([key, { element }]) => ({ element, at: this.index.get(key) ?? -1 }));
    let before: Element | null = null;
    for (const { element, at } of mounted.sort((a, b) => a.at - b.at)) {
      element.style.top = `${this.top(at)}px`;
      element.setAttribute("aria-posinset", String(at + 1));
      element.setAttribute("aria-setsize", String(this.rows.length));
      if (element.previousElementSibling !== before) {
        this.canvas.insertBefore(element, before ? before.nextElementSibling : this.canvas.firstElementChild);
      }
      before = element;
    }
  }

  private scrolled() {
    const { scrollTop, clientHeight, scrollHeight } = this.scroller;
    // What is around the list may take room from it, which moves the end away: only who goes up leaves it.
    if (!this.drawing) {
      this.following = scrollTop + clientHeight >= scrollHeight - 8 || (this.following && scrollTop >= this.was);
    }
    this.was = scrollTop;
    if (scrollTop < margin) {
      this.atTop();
    }
    this.draw();
  }
}
