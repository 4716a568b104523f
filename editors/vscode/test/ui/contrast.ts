import type { Locator } from "playwright-core";

/** Measured is a text with its contrast against what is behind it. */
export interface Measured {
  text: string;
  ratio: number;
  /** the contrast that WCAG AA asks for */
  wanted: number;
  colors: string;
}

/** unreadable returns the texts of the body of a page that have too little contrast. It throws if there are hardly any texts. */
export async function unreadable(body: Locator): Promise<Measured[]> {
  const all = await measureTexts(body);
  if (all.length < 10) {
    throw new Error(`only ${all.length} texts were measured`);
  }
  return all.filter(({ ratio, wanted }) => ratio < wanted);
}

/** measureTexts returns the contrast of every text of the body of a page. A text that appears only under the pointer is measured as if it were shown; disabled controls are exempt from WCAG. */
function measureTexts(body: Locator): Promise<Measured[]> {
  return body.evaluate(() => {
    type Color = [red: number, green: number, blue: number, alpha: number];
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const parse = (css: string): Color => {
      if (!canvas) {
        throw new Error("no canvas");
      }
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = css;
      canvas.fillRect(0, 0, 1, 1);
      const [r = 0, g = 0, b = 0, a = 0] = canvas.getImageData(0, 0, 1, 1).data;
      return [r, g, b, a / 255];
    };
    const over = ([r, g, b, a]: Color, [r2, g2, b2]: Color, opacity = 1): Color => {
      const alpha = a * opacity;
      return [r * alpha + r2 * (1 - alpha), g * alpha + g2 * (1 - alpha), b * alpha + b2 * (1 - alpha), 1];
    };
    const luminance = (color: Color) => {
      const [r = 0, g = 0, b = 0] = color.slice(0, 3).map((one) => (one / 255 <= 0.04045 ? one / 255 / 12.92 : ((one / 255 + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (element: Element): Color => {
      const chain: Element[] = [];
      for (let at: Element | null = element; at; at = at.parentElement) {
        chain.unshift(at);
      }
      return chain.reduce<Color>((color, at) => over(parse(getComputedStyle(at).backgroundColor), color), [255, 255, 255, 1]);
    };
    const opacityOf = (element: Element): number => {
      const own = Number(getComputedStyle(element).opacity);
      return (own === 0 ? 1 : own) * (element.parentElement ? opacityOf(element.parentElement) : 1);
    };
    const measure = (element: Element, text: string) => {
      const style = getComputedStyle(element);
      const back = behind(element);
      const front = over(parse(style.color), back, opacityOf(element));
      const [light = 0, dark = 0] = [luminance(front), luminance(back)].sort((a, b) => b - a);
      const size = parseFloat(style.fontSize);
      const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
      return { text: text.slice(0, 40), ratio: (light + 0.05) / (dark + 0.05), wanted: large ? 3 : 4.5, colors: `${style.color} on ${back.map(Math.round).join()}` };
    };
    const found = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const element = node.parentElement;
      const text = node.textContent?.trim() ?? "";
      if (element && text !== "" && element.getClientRects().length > 0 && !element.closest("script, style, :disabled")) {
        found.push(measure(element, text));
      }
    }
    document.querySelectorAll("textarea").forEach((field) => found.push(measure(field, field.value || field.placeholder)));
    return found;
  });
}
