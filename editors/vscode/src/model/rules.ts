import type { ApprovalRule, ListedRule, RuleLevel, RuleTestResult } from "../protocol";
import { isReadOnlyToolRule } from "./modes";

/** RuleGroup are the rules of one kind of origin. */
export interface RuleGroup {
  title: string;
  rules: ListedRule[];
}

/** ruleGroups returns the rules by where they come from, those that a person made first. Empty groups are left out. */
export function ruleGroups(rules: readonly ListedRule[]): RuleGroup[] {
  const ofSettings = rules.filter(({ from }) => from === "settings");
  const all: RuleGroup[] = [
    { title: "your rules", rules: rules.filter((rule) => !ofSettings.includes(rule)) },
    { title: "from the mode and other settings of the session", rules: ofSettings.filter(({ rule }) => !isReadOnlyToolRule(rule)) },
    { title: "from the extension, for its tools that only read", rules: ofSettings.filter(({ rule }) => isReadOnlyToolRule(rule)) },
  ];
  return all.filter((group) => group.rules.length > 0);
}

const levels: Record<RuleLevel, string> = { user: "everywhere", workspace: "in this workspace", session: "in this session" };

const origins: Record<string, string> = { answer: "from your answer", lashd: "", settings: "" };

/** ruleNote says where a rule applies, and which file or answer it is from. */
export function ruleNote({ level, from }: Pick<ListedRule, "level" | "from">): string {
  return [levels[level], origins[from] ?? from].filter(Boolean).join(" \u00b7 ");
}

/** ruleText returns a rule in words, such as "deny command git push". */
export function ruleText({ rule, exact, about = "" }: Pick<ListedRule, "rule" | "exact" | "about">): string {
  if (exact) {
    return `allow exactly this call: ${rule.tool ?? ""} ${about}`.trimEnd();
  }
  const parts = (["tool", "command", "path", "host"] as const).flatMap((kind) => (rule[kind] ? [kind, rule[kind]] : []));
  return [rule.action, ...parts].join(" ");
}

/** parseRule returns the rule that words describe, or undefined if they describe none. */
export function parseRule(words: string): ApprovalRule | undefined {
  const [, action, kind, value] = /^\s*(allow|ask|deny)\s+(command|path|host|tool)\s+(\S.*?)\s*$/u.exec(words) ?? [];
  return action && kind && value ? { action: action as ApprovalRule["action"], [kind]: value } : undefined;
}

/** verdictText says what lashd would do with a call, and why. */
export function verdictText({ decision, reason, commands = [] }: RuleTestResult): string {
  const said = { allow: "lashd would run it.", ask: "lashd would ask.", deny: "lashd would deny it." }[decision];
  const about = commands.map((c) => (c.reason.text === reason.text ? c.command : `${c.command} (${c.reason.text})`)).join(", ");
  return [said, reason.text, ...(about ? [`${commands.length > 1 ? "The commands that decide" : "The command that decides"}: ${about}`] : [])].join(" ");
}
