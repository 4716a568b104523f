import type { Suite } from "mocha";
import type { Browser, Page } from "playwright-core";
import type { FromWebview, ToWebview } from "../../src/chat/messages";
import type { Draft } from "../../src/model/draft";
import { snapshot } from "../../src/model/session";
import type { Config } from "../../src/protocol";
import { attached, session } from "../unit/turn";
import { launch, openPage, patienceMs } from "./browser";

type Of<T extends FromWebview["type"]> = FromWebview & { type: T };

/** ChatPage is the page of a chat, opened anew for each test of a suite. The test takes the part of the extension. */
export class ChatPage {
  page!: Page;
  browser!: Browser;

  /** tell sends a message of the extension to the page. */
  tell = (message: ToWebview): Promise<unknown> => this.page.evaluate((m) => window.dispatchEvent(new MessageEvent("message", { data: m })), message);

  /** reset shows a session; more is its state, config what differs from the configuration of an ordinary one. */
  reset = (more: object = {}, config: Partial<Config> = {}): Promise<unknown> => {
    const view = snapshot({ ...attached, session: { ...session, config: { ...session.config, ...config } } });
    return this.tell({ type: "reset", view: { ...view, ...more }, options: { sendOnEnter: true, showReasoning: false }, connected: true, left: {} });
  };

  /** asked returns the messages of these types that the page has sent. */
  asked = <T extends FromWebview["type"]>(...types: T[]): Promise<Of<T>[]> => this.page.evaluate((wanted) => window.asked.filter(({ type }) => (wanted as string[]).includes(type)), types) as Promise<Of<T>[]>;

  /** reopen opens the page again, with a saved draft. */
  reopen = async (draft: Draft): Promise<void> => {
    await this.page.close();
    this.page = await openPage(this.browser, { sessionId: session.sessionId, drafts: { [session.sessionId]: draft } });
  };

  /** drawn waits until the page has drawn its newest state. */
  drawn = (): Promise<unknown> => this.page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
}

/** chatPage opens the page of a chat before each test of a suite, and returns it. */
export function chatPage(suite: Suite, patience = 2): ChatPage {
  const chat = new ChatPage();
  suite.timeout(patience * patienceMs);
  before(async () => {
    chat.browser = await launch();
  });
  after(() => chat.browser.close());
  beforeEach(async () => {
    chat.page = await openPage(chat.browser);
  });
  afterEach(() => chat.page.close());
  return chat;
}
