import { printable } from "../model/printable";

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

/** h creates an element. String children become text and are never parsed as HTML. Characters that would hide a part of it are shown. */
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
  element.append(...children.filter((child) => child !== undefined && child !== false).map((child) => (typeof child === "string" ? printable(child) : child)));
  return element;
}

/** button creates a button with a label. */
export function button(text: string, onclick: () => void, props: Props = {}): HTMLButtonElement {
  const made = h("button", { ...props, onclick }, text);
  made.type = "button";
  return made;
}

/** iconButton creates a button that shows an icon of VS Code. Its label is its tooltip, too. */
export function iconButton(name: string, label: string, onclick: () => void, props: Props = {}): HTMLButtonElement {
  const made = button("", onclick, { title: label, label, ...props });
  made.append(h("span", { class: `codicon codicon-${name}` }));
  return made;
}

/** MenuButton opens a menu and shows the chosen value. */
export interface MenuButton {
  element: HTMLButtonElement;
  /** shows a value; text is its longer form, if the value alone is unclear, and about says more in the tooltip */
  show(value: string, text?: string, about?: string): void;
  /** draw shows another icon; warning colors the button */
  draw(icon: string, warning: boolean): void;
}

/** menuButton creates a button with an icon of VS Code, a value and a chevron. name is what the value is called. */
export function menuButton(icon: string, name: string, onclick: () => void, title: string): MenuButton {
  const text = h("span", { class: "value" });
  const element = button("", onclick, { class: "setting" });
  const picture = h("span", { class: `codicon codicon-${icon}` });
  element.append(picture, text, h("span", { class: "codicon codicon-chevron-down" }));
  const show = (value: string, long = value, about = "") => {
    text.textContent = long;
    element.setAttribute("aria-label", `${name}: ${value}`);
    element.title = [`${name}: ${value}.`, about, title].filter(Boolean).join(" ");
  };
  const draw = (other: string, warning: boolean) => {
    picture.className = `codicon codicon-${other}`;
    element.classList.toggle("warning", warning);
  };
  return { element, show, draw };
}

const drawn = new WeakMap<HTMLElement, string>();

/** redraw replaces the children of an element if they show something else than before. A press on a button ends on the same button only if it stays. */
export function redraw(place: HTMLElement, shown: unknown, make: () => Child[]): void {
  const version = JSON.stringify(shown);
  if (drawn.get(place) !== version) {
    drawn.set(place, version);
    place.replaceChildren(...make().filter((child) => child !== undefined && child !== false));
  }
}

/** byId returns an element of the page. It throws if there is none. */
export function byId(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (!found) {
    throw new Error(`the page has no #${id}`);
  }
  return found;
}

/** showDropTarget marks an element while something is dragged over the page, which takes drops. */
export function showDropTarget(element: HTMLElement): void {
  document.addEventListener("dragover", (event) => {
    event.preventDefault();
    element.classList.add("target");
  });
  const end = (event: DragEvent) => element.classList.toggle("target", event.type === "dragleave" && event.relatedTarget !== null);
  document.addEventListener("dragleave", end);
  document.addEventListener("drop", end);
}
