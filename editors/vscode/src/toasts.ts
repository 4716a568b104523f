import { toastText } from "./model/toast";
import type { SessionID } from "./protocol";

/**
 * Say says something about a session where the user sees it, without covering an input: in its chat if that is visible, else in a notification. It
 * returns the button that the user chooses. Without a session, the chat is the active one.
 */
export type Say = (sessionId: SessionID | undefined, text: string, ...buttons: string[]) => Thenable<string | undefined>;

/** The longest text of which VS Code shows every word without a button, in characters. */
const maxWithoutButton = 60;

/**
 * shownWhole returns the arguments of a notification, in which a text of others forms no link that runs a command. VS Code cuts a text after one line unless the notification has a button, so a long
 * text without a button gets one that only closes it.
 */
export function shownWhole(message: string, ...buttons: string[]): [string, ...string[]] {
  const text = toastText(message);
  return buttons.length > 0 || text.length <= maxWithoutButton ? [text, ...buttons] : [text, "Close"];
}
