import { h } from "./dom";

/** icon creates an icon of VS Code. With a label, screen readers read it; without one, the text beside it says what it means. */
export function icon(name: string, label?: string): HTMLElement {
  const made = h("span", { class: `codicon codicon-${name}`, ...(label && { role: "img", label, title: label }) });
  if (!label) {
    made.setAttribute("aria-hidden", "true");
  }
  return made;
}
