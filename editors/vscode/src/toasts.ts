import { toastText } from "./model/toast";

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
