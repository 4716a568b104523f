import { strict as assert } from "node:assert";
import { shownWhole } from "../../src/toasts";
import { toastOf, toastText, toastTitle } from "../../src/model/toast";

/** How VS Code finds links in a notification, copied from its linkedText.ts. */
const links = (text: string) => [...text.matchAll(/\[([^\]]+)\]\(((?:https?:\/\/|command:|file:)[^)\s]+)(?: (["'])(.+?)(\3))?\)/gi)].map(([, label, target]) => [label, target]);

const allow = { label: "Allow once", command: "lashd.answer", args: ["dec_(1)", "allowOnce"], needsWhole: true };
const deny = { label: "Deny", command: "lashd.answer", args: ["dec_(1)", "reject"] };

describe("part/13 a notification", () => {
  it("shows parentheses and brackets of a command as they are", () => {
    const command = "f() { echo $(date) ${a[0]}; }; [ -e x ] && (cd y)";
    assert.equal(toastText(command), command);
    assert.ok(toastOf(command, [deny]).startsWith(`${command} \u00b7 [Deny](`));
  });

  it("has no period between a title and the question", () => {
    assert.deepEqual(["Start the server.", "Write a list:", "v1.2", "[a](b)."].map(toastTitle), ["Start the server", "Write a list", "v1.2", "[a]\u2060(b)"]);
  });

  it("lets no text from an agent form a link", () => {
    const text = 'echo "[Allow once](command:lashd.answer?%5B%22dec_2%22%5D)"';
    assert.deepEqual(links(text).length, 1, "the pattern finds links");
    assert.deepEqual(links(toastOf(text, [])), []);
    assert.equal(toastOf(text, []).replaceAll("\u2060", ""), text);
  });

  it("lets no error, and no name of a client, form a link", () => {
    const text = 'lashd: docs: [Sign in](command:workbench.action.terminal.sendSequence?%7B%22text%22%3A%22id%5Cn%22%7D)';
    assert.deepEqual([links(text).length, links(shownWhole(text, "Show Log")[0]), links(shownWhole(text)[0])], [1, [], []]);
  });

  it("has links that VS Code can read", () => {
    const target = links(toastOf("rm x", [allow]))[0]?.[1] ?? "";
    assert.deepEqual(JSON.parse(decodeURIComponent(target.slice(target.indexOf("?") + 1))), ["dec_(1)", "allowOnce"]);
  });

  it("offers to allow only a command that it shows to its end, and VS Code cuts none of it", () => {
    const whole = toastOf(`${"x".repeat(700)} end`, [allow, deny]);
    assert.deepEqual([links(whole).map(([label]) => label), whole.startsWith(`${"x".repeat(700)} end \u00b7 [`), whole.length <= 1000], [["Allow once", "Deny"], true, true]);
    const cut = toastOf(`${"x".repeat(1200)} end`, [allow, deny]);
    assert.deepEqual([links(cut).map(([label]) => label), /x\u2026 \u00b7 \[Deny\]\(\S+\)$/.test(cut), cut.length], [["Deny"], true, 1000]);
  });
});
