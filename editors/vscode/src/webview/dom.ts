type Child = Node | string | undefined | false;

interface Props {
  class?: string;
  title?: string;
  role?: string;
  label?: string;
  tabindex?: number;
  disabled?: boolean;
  open?: boolean;
  onclick?: (event: MouseEvent) => void;
}

/** h makes an element. What it holds is text unless it is an element itself: nothing is read as HTML. */
export function h<K extends keyof HTMLElementTagNameMap>(tag: K, props: Props = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  const { class: name, title, role, label, tabindex, disabled, open, onclick } = props;
  const attributes = { class: name, title, role, "aria-label": label, tabindex };
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined) {
      element.setAttribute(key, String(value));
    }
  }
  element.toggleAttribute("disabled", disabled ?? false);
  element.toggleAttribute("open", open ?? false);
  if (onclick) {
    element.addEventListener("click", onclick as EventListener);
  }
  element.append(...children.filter((child) => child !== undefined && child !== false));
  return element;
}

/** button is a button with a text. */
export function button(text: string, onclick: () => void, props: Props = {}): HTMLButtonElement {
  const made = h("button", { ...props, onclick }, text);
  made.type = "button";
  return made;
}

/** byId is an element of the page. */
export function byId(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (!found) {
    throw new Error(`the page has no #${id}`);
  }
  return found;
}
