/** The contrast that WCAG AA asks of text. */
const wanted = 4.5;

type Color = [red: number, green: number, blue: number];

/** readable returns a color for text on a background: the color itself if it has enough contrast, else as little of the foreground in it as is needed. Colors that are not #rrggbb stay as they are. */
export function readable(color: string, background: string, foreground: string): string {
  const [text, back, front] = [color, background, foreground].map(parse);
  if (!text || !back || !front) {
    return color;
  }
  const steps = Array.from({ length: 11 }, (_, step) => mix(text, front, step / 10));
  return format(steps.find((one) => contrast(one, back) >= wanted) ?? front);
}

/** parse reads #rrggbb, with or without an alpha value, which is left out. */
function parse(color: string): Color | undefined {
  const [, ...parts] = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})(?:[0-9a-f]{2})?$/i.exec(color.trim()) ?? [];
  const [red, green, blue] = parts.map((part) => parseInt(part, 16));
  return red === undefined || green === undefined || blue === undefined ? undefined : [red, green, blue];
}

function format(color: Color): string {
  return `#${color.map((one) => Math.round(one).toString(16).padStart(2, "0")).join("")}`;
}

function mix(a: Color, b: Color, share: number): Color {
  const at = (index: 0 | 1 | 2) => a[index] * (1 - share) + b[index] * share;
  return [at(0), at(1), at(2)];
}

function contrast(a: Color, b: Color): number {
  const [dark = 0, light = 0] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (light + 0.05) / (dark + 0.05);
}

function luminance(color: Color): number {
  const [red = 0, green = 0, blue = 0] = color.map((one) => (one / 255 <= 0.04045 ? one / 255 / 12.92 : ((one / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
