import { Drafts, type StateApi } from "./drafts";
import { byId, h, iconButton } from "./dom";

// The page of the side bar without a session: an input that starts one.

interface Api extends StateApi {
  postMessage(message: { type: "start"; text: string }): void;
}

declare function acquireVsCodeApi(): Api;

const api = acquireVsCodeApi();
const drafts = new Drafts(api, "");
const place = byId("composer");
const field = h("textarea", { label: "Message to the agent" });
const send = iconButton("arrow-up", "Send", start, { class: "first send", title: "Start a session with this message" });

function store() {
  drafts.store({ text: field.value, attached: [] }, () => undefined);
}

function start() {
  const text = field.value.trim();
  if (text === "" || field.readOnly) {
    return;
  }
  field.readOnly = send.disabled = true;
  drafts.store({ text: "", attached: [] }, () => undefined); // the chat that takes the place of this page has it
  api.postMessage({ type: "start", text });
}

field.rows = 3;
field.placeholder = "Ask lashd to do something.";
field.value = drafts.restore()?.text ?? "";
field.addEventListener("input", store);
field.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.isComposing && !event.shiftKey && (place.dataset.enter === "true" || event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    start();
  }
});
window.addEventListener("message", () => {
  field.readOnly = send.disabled = false; // no session was started
  store();
});
place.append(h("div", { class: "box" }, field, h("div", { class: "bar" }, h("span", { class: "settings" }), send)));
field.focus();
