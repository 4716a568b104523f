/** Row is an entry of a list. It is rendered again when its version changes. */
export interface Row {
  key: string;
  version: unknown;
  /** keys of rows that this one replaces */
  keys?: string[];
}

/** The height above and below the visible area in which rows stay mounted, in pixels. */
const margin = 600;

const estimatedHeight = 72;

/**
 * List is a virtual list: it mounts only the visible rows and some around them. At the end it follows new rows. Elsewhere the
 * visible rows keep their position when rows above them change.
 */
export class List<R extends Row> {
  private rows: R[] = [];
  private tops: number[] = [0];
  private index = new Map<string, number>(); // key to row index
  private readonly heights = new Map<string, number>();
  private readonly mounted = new Map<string, { element: HTMLElement; version: unknown }>();
  private following = true;
  private lastScrollTop = 0;
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

  /** set replaces the rows. */
  set(rows: R[]): void {
    const anchor = this.anchor();
    this.rows = rows;
    this.canvas.hidden = rows.length === 0; // a feed without entries says nothing
    this.index = new Map(rows.map((row, at) => [row.key, at]));
    this.computeTops();
    this.keepPosition(anchor);
    this.draw();
  }

  /** followEnd scrolls to the end and follows new rows. */
  followEnd(): void {
    this.following = true;
    this.draw();
  }

  /** reveal scrolls to a row and gives it the focus. */
  reveal(key: string): void {
    const at = this.index.get(key);
    if (at === undefined) {
      return;
    }
    this.following = false;
    for (let round = 0; round < 3; round++) { // rows around it get their heights when they are mounted
      this.scroller.scrollTop = this.top(at);
      this.draw();
    }
    this.mounted.get(key)?.element.focus({ preventScroll: true });
  }

  /** moveFocus moves the focus to the next or previous row. */
  moveFocus(by: 1 | -1): void {
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

  /** anchor returns the first visible row and how far it is scrolled out of view, in pixels. */
  private anchor(): { key: string; offset: number } | undefined {
    const at = this.indexAt(this.scroller.scrollTop);
    const row = this.rows[at];
    return row && { key: row.key, offset: this.scroller.scrollTop - this.top(at) };
  }

  private keepPosition(anchor: { key: string; offset: number } | undefined) {
    const at = anchor && !this.following ? (this.index.get(anchor.key) ?? this.rows.findIndex(({ keys }) => keys?.includes(anchor.key))) : -1;
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

  private computeTops() {
    let top = 0;
    this.tops = [0];
    for (const row of this.rows) {
      top += this.heights.get(row.key) ?? estimatedHeight;
      this.tops.push(top);
    }
  }

  /** indexAt returns the index of the row at a vertical position. */
  private indexAt(height: number): number {
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
    this.keepPosition(this.anchor());
    // Mounted rows may differ from their estimated height, which changes the set of visible rows.
    for (let round = 0; round < 4 && this.mountVisible(); round++) {
      const anchor = this.anchor();
      this.computeTops();
      this.keepPosition(anchor);
    }
    this.placeRows();
    this.drawing = false;
  }

  /** mountVisible mounts the visible rows and reports whether a known height was wrong. */
  private mountVisible(): boolean {
    const { scrollTop, clientHeight } = this.scroller;
    const from = this.indexAt(scrollTop - margin);
    const to = this.indexAt(scrollTop + clientHeight + margin);
    const rows = this.rows.slice(from, to + 1);
    const keys = new Set(rows.map((row) => row.key));
    for (const [key, { element }] of this.mounted) {
      if (!keys.has(key) && (!this.index.has(key) || !element.contains(document.activeElement))) {
        this.sizes.unobserve(element);
        element.remove();
        this.mounted.delete(key);
      }
    }
    rows.forEach((row) => this.mountRow(row));
    let wrong = false;
    for (const { key } of rows) {
      const height = this.mounted.get(key)?.element.offsetHeight ?? estimatedHeight;
      wrong ||= this.heights.get(key) !== height;
      this.heights.set(key, height);
    }
    return wrong;
  }

  private mountRow(row: R) {
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

  /** placeRows positions the mounted rows. Their order in the document matters to screen readers and the Tab key. */
  private placeRows() {
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
    // A shrinking list moves the end away. Only scrolling up ends following.
    if (!this.drawing) {
      this.following = scrollTop + clientHeight >= scrollHeight - 8 || (this.following && scrollTop >= this.lastScrollTop);
    }
    this.lastScrollTop = scrollTop;
    if (scrollTop < margin) {
      this.atTop();
    }
    this.draw();
  }
}
