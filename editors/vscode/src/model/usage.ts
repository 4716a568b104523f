import type { Usage } from "../protocol";

/** usageText returns a token usage as text, with its cost if known; "" for none. */
export function usageText(usage: Usage | undefined): string {
  const read = usage ? usage.input + usage.cacheRead + usage.cacheWrite : 0;
  if (!usage || read + usage.output === 0) {
    return "";
  }
  const cached = usage.cacheRead > 0 ? ` (${count(usage.cacheRead)} cached)` : "";
  const cost = usage.cost ? `, ${costText(usage.cost)}` : "";
  return `${count(read)} tokens in${cached}, ${count(usage.output)} out${cost}`;
}

/** costText returns a cost, in billionths of a dollar, as text. */
export function costText(cost: number): string {
  const dollars = cost / 1e9;
  return `$${dollars.toFixed(dollars < 1 ? 4 : 2)}`;
}

function count(tokens: number): string {
  return tokens < 10_000 ? String(tokens) : `${Math.round(tokens / 1000)}k`;
}
