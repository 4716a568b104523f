import type { ApprovalRule, ListedRule, RuleTestResult } from "../protocol";

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
