/** The longest text of which VS Code shows every word without a button, in characters. */
const maxWithoutButton = 60;

/**
 * shownWhole returns the arguments of a notification. VS Code cuts a text after one line unless the notification has a button, so a long
 * text without a button gets one that only closes it.
 */
export function shownWhole(text: string, ...buttons: string[]): [string, ...string[]] {
  return buttons.length > 0 || text.length <= maxWithoutButton ? [text, ...buttons] : [text, "Close"];
}
