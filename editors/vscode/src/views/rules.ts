import * as vscode from "vscode";
import type { Daemon } from "../daemon/daemon";
import { parseRule, ruleGroups, ruleNote, ruleText, verdictText } from "../model/rules";
import type { ListedRule, RuleLevel, SessionID } from "../protocol";
import { shownWhole } from "../toasts";
import { labelText } from "../model/printable";

/** Place says whose rules are shown: those of a session, or of a directory. */
export type Place = { sessionId: SessionID } | { cwd?: string };

type RuleItem = vscode.QuickPickItem & { rule?: ListedRule; run?: () => Promise<unknown> };

const trash: vscode.QuickInputButton = { iconPath: new vscode.ThemeIcon("trash"), tooltip: "Remove this rule" };

/** showRules lists the approval rules in a quick pick. The user can add one, try a command, and remove rules by their button. */
export async function showRules(daemon: Daemon, place: Place): Promise<void> {
  const pick = vscode.window.createQuickPick<RuleItem>();
  pick.title = "Approval rules";
  pick.placeholder = "If several rules match a call, deny wins, then ask, then allow";
  pick.matchOnDescription = true;
  const remove = async (rule: ListedRule) => {
    await daemon.change("rule/remove", { ruleId: rule.ruleId ?? "", ...("sessionId" in place && place) });
    void vscode.window.showInformationMessage(...shownWhole(`lashd: removed the rule: ${ruleText(rule)}`));
  };
  const load = async () => {
    pick.busy = true;
    const { data, problems = [] } = await daemon.call("rule/list", place);
    pick.items = [
      { label: "$(add) Add a rule\u2026", run: () => addRule(daemon, place) },
      { label: "$(beaker) Try a command\u2026", run: () => tryCommand(daemon, place) },
      ...ruleGroups(data).flatMap(({ title, rules }): RuleItem[] => [{ label: title, kind: vscode.QuickPickItemKind.Separator }, ...rules.map((rule) => ruleItem(rule, () => askRemoval(rule, remove)))]),
      ...problems.map((problem): RuleItem => ({ label: `$(warning) ${labelText(problem)}` })),
    ];
    pick.busy = false;
  };
  const shown = new Promise<RuleItem | undefined>((resolve) => {
    pick.onDidAccept(() => pick.selectedItems[0]?.run && resolve(pick.selectedItems[0]));
    pick.onDidHide(() => resolve(undefined));
  });
  pick.onDidTriggerItemButton(async ({ item }) => {
    try {
      await (item.rule && remove(item.rule));
      await load();
    } catch (error) {
      void vscode.window.showErrorMessage(...shownWhole(`lashd: ${error instanceof Error ? error.message : String(error)}`));
    }
  });
  pick.show();
  try {
    await load();
    const chosen = await shown;
    pick.hide();
    await chosen?.run?.();
  } finally {
    pick.dispose();
  }
}

function ruleItem(rule: ListedRule, chosen: () => Promise<void>): RuleItem {
  const item = { label: labelText(ruleText(rule)), description: labelText(ruleNote(rule)), rule };
  return rule.ruleId ? { ...item, buttons: [trash], run: chosen } : item;
}

/** askRemoval removes a rule that the user has chosen after the user confirms it. */
async function askRemoval(rule: ListedRule, remove: (rule: ListedRule) => Promise<void>): Promise<void> {
  const items = [{ label: "$(trash) Remove this rule", removes: true }, { label: "$(close) Keep it", removes: false }];
  const picked = await vscode.window.showQuickPick(items, { title: `${ruleText(rule)} (${ruleNote(rule)})` });
  await (picked?.removes && remove(rule));
}

/** addRule asks for a rule and where it applies. */
async function addRule(daemon: Daemon, place: Place): Promise<void> {
  const text = await vscode.window.showInputBox({
    title: "Add a rule",
    prompt: "allow, ask or deny; then command, path, host or tool; then its value",
    placeHolder: "allow command go test",
    validateInput: (value) => (parseRule(value) ? undefined : "For example: allow command go test, deny path **/.env, ask host example.com, deny tool mcp_*"),
  });
  const rule = text === undefined ? undefined : parseRule(text);
  if (!rule) {
    return;
  }
  const levels: (vscode.QuickPickItem & { level: RuleLevel })[] = [
    { label: "In this workspace", level: "workspace" },
    ...("sessionId" in place ? [{ label: "In this session", level: "session" as const }] : []),
    { label: "Everywhere", description: "stored in config.toml", level: "user" },
  ];
  const picked = await vscode.window.showQuickPick(levels, { title: `Where does "${text}" apply?` });
  if (picked) {
    await daemon.change("rule/add", { level: picked.level, rule, ...(picked.level !== "user" && place) });
    void vscode.window.showInformationMessage(...shownWhole(`lashd: added the rule: ${text}`));
  }
}

/** tryCommand shows what lashd would do with a command. Nothing runs. */
async function tryCommand(daemon: Daemon, place: Place): Promise<void> {
  const command = await vscode.window.showInputBox({ title: "Try a command; nothing runs", placeHolder: "go test ./... && curl example.com" });
  if (command) {
    void vscode.window.showInformationMessage(...shownWhole(verdictText(await daemon.call("rule/test", { ...place, command }))));
  }
}
