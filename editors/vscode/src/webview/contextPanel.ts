import { fillOf, fillText, tokensText, type ContextPart, type Fill } from "../model/context";
import type { SessionView } from "../model/session";
import { button, h, iconButton } from "./dom";
import { icon } from "./icons";

/** ContextPanel shows how full the context window is in a button, and what fills it in a panel that the button opens. */
export class ContextPanel {
  readonly meter = button("", () => this.toggle(), { class: "setting meter" });
  private fill: Fill = {};
  private parts?: ContextPart[];
  private incomplete = false;

  /** request asks the extension for the parts; show receives them. */
  constructor(private readonly place: HTMLElement, private readonly request: () => void) {
    [place, this.meter].forEach((element) => element.addEventListener("keydown", ({ key }) => key === "Escape" && !place.hidden && this.close()));
  }

  /** update shows the newest state of the session. An open panel asks for its parts again when the state changes. */
  update({ context, session }: SessionView): void {
    const fill = fillOf(context, session.config.model);
    const same = fill.used === this.fill.used && fill.window === this.fill.window;
    this.fill = fill;
    this.drawMeter();
    if (!same && !this.place.hidden) {
      this.request();
    }
  }

  /** show receives the parts. With open, it also opens the panel. */
  show(parts: ContextPart[], incomplete: boolean, open = false): void {
    this.place.hidden &&= !open;
    this.meter.setAttribute("aria-expanded", String(!this.place.hidden));
    this.parts = parts;
    this.incomplete = incomplete;
    this.draw();
  }

  private close() {
    this.toggle();
    this.meter.focus();
  }

  private toggle() {
    this.place.hidden = !this.place.hidden;
    this.meter.setAttribute("aria-expanded", String(!this.place.hidden));
    if (!this.place.hidden) {
      this.draw();
      this.request();
    }
  }

  private drawMeter() {
    const { short, long } = fillText(this.fill);
    this.meter.title = `${long}. Click to see what fills it.`;
    this.meter.setAttribute("aria-expanded", String(!this.place.hidden));
    const { percent, used } = this.fill;
    this.meter.ariaLabel = used === undefined ? long : short;
    this.meter.replaceChildren(...(percent === undefined ? [] : [barOf(percent, percent < 70 ? "" : percent < 90 ? "high" : "full")]), ...(used === undefined ? [icon("circle-large-outline")] : wordsOf(short)));
  }

  private draw() {
    const { long } = fillText(this.fill);
    const close = iconButton("close", "Close", () => this.close(), { class: "close" });
    const rows = (this.parts ?? []).map((part) => this.row(part));
    const note = this.incomplete ? [h("p", {}, "Parts of plugins are missing while a turn runs.")] : [];
    this.place.replaceChildren(
      h("div", { class: "contextHead" }, h("b", {}, long), h("span", { class: "space" }), close),
      h("p", {}, this.parts ? "The next request, estimated:" : "Estimating the next request\u2026"),
      h("table", {}, h("tbody", {}, ...rows)),
      ...note,
    );
  }

  private row({ title, detail, tokens }: ContextPart): HTMLElement {
    const { window } = this.fill;
    const total = window ?? (this.parts ?? []).reduce((sum, part) => sum + (part.tokens ?? 0), 0);
    const share = tokens === undefined || total === 0 ? undefined : Math.min(100, (100 * tokens) / total);
    const amount = tokens === undefined ? "not estimated" : `${tokensText(tokens)} tokens`;
    return h("tr", {}, h("th", {}, title), h("td", { class: "number" }, amount), h("td", { class: "share" }, share !== undefined && barOf(share)), h("td", {}, detail));
  }
}

/** wordsOf returns the text of the meter, in which a narrow page hides the first word. */
function wordsOf(short: string): HTMLElement[] {
  const [word = "", ...rest] = short.split(" ");
  return [h("span", {}, h("span", { class: "value" }, `${word} `), rest.join(" "))];
}

/** barOf returns a bar that is filled to a percentage. Its text is elsewhere, so it is hidden from screen readers. */
function barOf(percent: number, level = ""): HTMLElement {
  const filled = h("span", { class: `filled ${level}`.trim() });
  filled.style.setProperty("width", `${percent}%`);
  const bar = h("span", { class: "meterBar" }, filled);
  bar.setAttribute("aria-hidden", "true");
  return bar;
}
