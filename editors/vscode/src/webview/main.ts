import type { FromWebview, Options, ToWebview } from "../chat/messages";
import { newestInput, sameContent, wasSent } from "../model/draft";
import { page, reduce, type SessionView } from "../model/session";
import { costText } from "../model/usage";
import type { Event as SessionEvent, RetryStatus } from "../protocol";
import { QuestionCards } from "./questionCards";
import { Composer } from "./composer";
import { Drafts, type StateApi } from "./drafts";
import { CompactionCard } from "./compactionCard";
import { ContextPanel } from "./contextPanel";
import { byId, h, iconButton, redraw } from "./dom";
import type { PageColors } from "./highlights";
import { icon } from "./icons";
import { Items } from "./items";
import { openLinks } from "./links";
import { List } from "./list";
import { NoticeLines } from "./noticeLines";
import { OlderPages } from "./olderPages";
import { Queue } from "./queue";
import { planOf, rowsOf, type ChatRow } from "./rows";
import { Welcome } from "./welcome";

interface Api extends StateApi {
  postMessage(message: FromWebview): void;
}

declare function acquireVsCodeApi(): Api;

const api = acquireVsCodeApi();
const post = (message: FromWebview) => api.postMessage(message);
const sessionId = document.body.dataset.session ?? "";

let view: SessionView | undefined;
let options: Options = { sendOnEnter: true, showReasoning: false };
let connected = false;
let origin: string | undefined; // title of the session of which this one is a fork
let times: Record<string, number> = {}; // when the default answers to open decisions apply

const items = new Items(post, pageColors);
const list = new List<ChatRow>(byId("scroller"), byId("list"), (row, old) => items.row(row, old), () => older.load(view));
const older = new OlderPages(post, (itemId) => list.reveal(itemId));
const questions = new QuestionCards(byId("asked"), post, () => composer.focus(), items.highlights);
const notices = new NoticeLines(byId("asked"), post, () => composer.focus());
const welcome = new Welcome(byId("welcome"), post, (text) => composer.setText(text));
const context = new ContextPanel(byId("context"), () => post({ type: "context" }));
const compaction = new CompactionCard(byId("compaction"), post, () => composer.focus());
const drafts = new Drafts(api, sessionId);
const composer = new Composer(byId("composer"), context.meter, (message) => (message.type === "stop" ? queue.stop(view) : post(message)), (draft) => drafts.store(draft, () => (view ? newestInput(view) : drafts.saved?.seen)), showFailure);
const queue = new Queue(byId("queue"), post, (parts) => {
  notices.say("Taken out of the queue. It does not run until you send it again.");
  composer.restoreInput(parts);
});

/** pageColors returns the colors around code in the theme. */
function pageColors(): PageColors {
  const style = getComputedStyle(document.documentElement);
  return { background: style.getPropertyValue("--vscode-editor-background"), foreground: style.getPropertyValue("--vscode-editor-foreground") };
}

function receive(message: ToWebview) {
  switch (message.type) {
    case "reset":
      dropSentDraft(message.view);
      ({ view, options, connected } = message);
      times = Object.fromEntries(Object.entries(message.left).map(([id, left]) => [id, Date.now() + left]));
      older.reset();
      ({ origin } = message);
      items.showReasoning = options.showReasoning;
      break;
    case "events":
      applyEvents(message.events);
      break;
    case "page":
      view &&= page(view, message.page);
      break;
    case "connected":
      ({ connected } = message);
      break;
    case "attached":
      composer.attach(message.attached);
      return;
    case "file":
      composer.attachFile(message.file);
      return;
    case "stored":
      composer.stored(message.id, message.digest);
      return;
    case "picture":
      items.pictures.arrived(message.digest, message.url);
      return;
    case "highlighted":
      items.highlights.arrived(message.id, message.lines);
      return;
    case "theme":
      items.highlights.forget();
      return;
    case "recent":
      welcome.showRecent(message.sessions);
      return;
    case "untrusted":
      welcome.showUntrusted(message.plugins);
      return;
    case "suggestions":
      composer.suggest(message.id, message.suggestions, message.last);
      return;
    case "resources":
      composer.showResources(message.mentioned);
      return;
    case "history":
      composer.showHistory(message.inputs);
      return;
    case "context":
      context.show(message.parts, message.incomplete, message.open);
      return;
    case "compaction":
      compaction.show(message.preview, message.instructions);
      return;
    case "compacted":
      compaction.ended(message.ok);
      return;
    case "goTo":
      older.goTo(message.nodeId);
      break;
    case "draft":
      composer[message.replace ? "setText" : "restoreText"](message.text);
      if (message.send) {
        composer.sendSoon();
      }
      return;
    case "undraft":
      composer.dropText(message.text);
      return;
    case "unknown":
      composer.noCommand.show(message.name, message.near);
      return;
    case "sent":
      composer.sent(message.ok);
      notices.pass();
      list.followEnd();
      return;
    case "notice":
      notices.show(message);
      return;
    case "focus":
      composer.focus();
      return;
    case "failed":
      questions.failed();
      showFailure(message.message);
      return;
  }
  draw();
}

/** dropSentDraft empties the composer, with the first state of the session, if it still has the restored draft and that has been sent. */
function dropSentDraft(first: SessionView) {
  const { saved } = drafts;
  if (!view && draft && saved && sameContent(draft, saved) && wasSent(draft, first)) {
    composer.sent(true);
  }
}

function applyEvents(events: SessionEvent[]) {
  view &&= reduce(view, events);
}

function draw() {
  if (!view) {
    return;
  }
  items.known = { cwd: view.session.cwd, tasks: view.tasks };
  list.set(rowsOf(view, origin));
  older.seek(view);
  welcome.show(view.items.length === 0 && view.turnId === undefined, view.session.config, options.demo);
  questions.show(view.decisions, connected, view.session, times);
  composer.show(view.turnId !== undefined, connected, options);
  composer.showSettings(view.session.config);
  context.update(view);
  drawHead(view);
  drawState(view);
  queue.draw(view);
}

/** retryText describes a failed model call and what follows; the daemon's own clients show the same. */
function retryText(retry: RetryStatus) {
  if (retry.reason === "admission") {
    return `The model call waits: ${retry.message ?? retry.reason}`;
  }
  const status = retry.status === undefined ? "" : ` (HTTP ${retry.status})`;
  const next = retry.counted ? `attempt ${retry.attempt} of ${retry.maxAttempts}` : "trying again";
  return `The model call failed: ${retry.message ?? retry.reason}${status}; ${next} in ${Math.ceil(retry.waitMs / 1000)} s`;
}

/** stateText says what the session does now; "" if it waits for an input. */
function stateText(shown: SessionView): string {
  if (!connected) {
    return "Reconnecting to lashd\u2026";
  }
  if (shown.retry) {
    return retryText(shown.retry);
  }
  return shown.turnId === undefined ? "" : shown.decisions.length > 0 ? "Waiting for your answer" : "Working\u2026";
}

/** drawState changes the state only if it is another one, because screen readers read each change. */
function drawState(shown: SessionView) {
  const text = stateText(shown);
  const place = byId("state");
  if (place.textContent !== text) {
    const sign = shown.decisions.length > 0 && connected ? "question" : "loading codicon-modifier-spin";
    place.replaceChildren(...(text === "" ? [] : [icon(sign), h("span", {}, text)]));
  }
}

function drawHead(shown: SessionView) {
  const { title } = shown.session;
  const steps = planOf(shown);
  const cost = shown.total?.cost ? costText(shown.total.cost) : "";
  redraw(byId("head"), { title, steps, cost }, () => headOf(title, steps, cost));
}

function headOf(title: string | undefined, steps: ReturnType<typeof planOf>, cost: string) {
  const done = steps.filter((step) => step.status === "completed").length;
  const marks = { pending: () => icon("circle-large-outline", "open"), inProgress: () => icon("circle-filled", "in progress"), completed: () => icon("pass-filled", "done") };
  const plan = h("details", { class: "plan" }, h("summary", {}, `Plan: ${done} of ${steps.length}`), ...steps.map((step) => h("div", { class: step.status }, marks[step.status](), ` ${step.text}`)));
  const unfolded = document.querySelector<HTMLDetailsElement>(".plan")?.open ?? false;
  plan.open = unfolded;
  return [title ? h("h1", {}, title) : undefined, h("span", { class: "space" }), cost !== "" && h("span", { class: "usage", title: "Cost of this session so far" }, cost), steps.length > 0 && plan];
}

function showFailure(message: string) {
  const line = h("div", { class: "failure", role: "alert" }, h("span", {}, message), iconButton("close", "Dismiss", () => line.remove(), { class: "close" }));
  byId("asked").before(line);
}

window.addEventListener("message", (event: MessageEvent<ToWebview>) => receive(event.data));
new MutationObserver(() => items.highlights.recolor()).observe(document.documentElement, { attributeFilter: ["style"] }); // the colors of the theme
document.addEventListener("keydown", (event) => {
  if (event.altKey && (questions.key(event.code) || moveFocus(event.key))) {
    event.preventDefault();
  }
});
openLinks(post);

function moveFocus(key: string): boolean {
  const by = ({ ArrowUp: -1, ArrowDown: 1 } as const)[key as "ArrowUp" | "ArrowDown"];
  if (by) {
    list.moveFocus(by);
  }
  return by !== undefined;
}

const draft = drafts.restore();
if (draft) {
  composer.restore(draft);
}
composer.focus();
post({ type: "ready" });
