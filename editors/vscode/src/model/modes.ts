import type { ApprovalConfig, ApprovalMode, ApprovalRule, Config, PluginOptions } from "../protocol";

/** Mode is a way in which a session may be set. They are those that lashd acp has. */
export interface Mode {
  name: string;
  about: string;
  approval?: ApprovalMode;
  edits?: boolean;
  plan?: boolean;
}

const ask: Mode = { name: "Ask", about: "Asks before a tool changes something." };
const plan: Mode = { name: "Plan", about: "Reads, searches and plans. Changes nothing.", plan: true };

export const modes: readonly Mode[] = [
  ask,
  { name: "Accept edits", about: "Edits workspace files without asking. Asks before other changes.", edits: true },
  plan,
  { name: "Ask always", about: "Asks before every tool call.", approval: "ask" },
  { name: "Bypass", about: "Runs every tool call without asking, unless an approval rule says otherwise.", approval: "allow" },
  { name: "Deny", about: "Denies every tool call that no approval rule allows.", approval: "deny" },
];

/** edits are the rules that let files be edited. */
const edits: readonly ApprovalRule[] = ["edit", "patch", "write"].map((tool) => ({ tool, action: "allow" }));

const same = (a: ApprovalRule, b: ApprovalRule) => a.tool === b.tool && a.action === b.action && !a.prefix && !b.prefix;

const isEdit = (rule: ApprovalRule) => edits.some((edit) => same(edit, rule));

/** looking are the rules that let the editor's own tools look without asking. lashd asks about every tool of a client, whatever it says of itself. */
const looking: readonly ApprovalRule[] = ["editor_open_files", "editor_diagnostics", "editor_reveal"].map((tool) => ({ tool, action: "allow" }));

const isLooking = (rule: ApprovalRule) => looking.some((look) => same(look, rule));

/** looks are the settings in which the editor's own tools may look; undefined: nothing is to be changed. A session that asks about everything, or denies it, stays so. */
export function looks({ approval }: Config): ApprovalConfig | undefined {
  const rules = approval?.rules ?? [];
  const missing = looking.filter((look) => !rules.some((rule) => rule.tool === look.tool));
  return approval?.mode || missing.length === 0 ? undefined : { ...approval, rules: [...rules, ...missing] };
}

/** modeOf is the mode that a session is in. */
export function modeOf({ approval, options }: Config): Mode {
  if ((options?.plan as { mode?: string } | undefined)?.mode === "plan") {
    return plan;
  }
  const rules = approval?.rules ?? [];
  const accepts = !approval?.mode && edits.every((edit) => rules.some((rule) => same(edit, rule)));
  return modes.find((mode) => !mode.plan && mode.approval === (approval?.mode || undefined) && (mode.edits ?? false) === accepts) ?? ask;
}

/** inMode are settings changed to those of a mode; what it does not speak of stays. */
export function inMode(config: Config, mode: Mode): { approval: ApprovalConfig; options: PluginOptions } {
  const kept = (config.approval?.rules ?? []).filter((rule) => !isEdit(rule) && !isLooking(rule));
  const rules = mode.approval ? kept : [...kept, ...looking];
  const options = { ...config.options };
  delete options.plan;
  return {
    approval: { ...config.approval, mode: mode.approval, rules: mode.edits ? [...rules, ...edits] : rules },
    options: mode.plan ? { ...options, plan: { mode: "plan" } } : options,
  };
}
