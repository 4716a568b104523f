import type { ApprovalConfig, ApprovalMode, ApprovalRule, Config, PluginOptions, SandboxMode } from "../protocol";

/** Mode is a preset of approval settings. lashd acp offers the same modes. */
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

/** sandboxes are the sandbox modes for the commands of a session. lashd acp offers the same. */
export const sandboxes: readonly { mode: SandboxMode; name: string; about: string }[] = [
  { mode: "readOnly", name: "Read only", about: "Commands run in a sandbox without a question. They change nothing but temporary files." },
  { mode: "workspace", name: "Workspace", about: "Commands run in a sandbox without a question. They change only the workspace, and have no network." },
  { mode: "fullAccess", name: "Full access", about: "Commands run outside a sandbox, after a question." },
];

/** sandboxOf returns the sandbox mode of a session. */
export const sandboxOf = ({ approval }: Config): SandboxMode => approval?.sandbox ?? "fullAccess";

/** modeText describes the approval mode of a session, and its sandbox if it has one. */
export function modeText(config: Config): string {
  const box = sandboxOf(config);
  return box === "fullAccess" ? modeOf(config).name : `${modeOf(config).name}, sandbox: ${sandboxes.find(({ mode }) => mode === box)?.name.toLowerCase()}`;
}

/** editRules allow the tools that edit files. */
const editRules: readonly ApprovalRule[] = ["edit", "patch", "write"].map((tool) => ({ tool, action: "allow" }));

const same = (a: ApprovalRule, b: ApprovalRule) => a.tool === b.tool && a.action === b.action && ![a, b].some((rule) => rule.command || rule.path || rule.host);

const isEditRule = (rule: ApprovalRule) => editRules.some((edit) => same(edit, rule));

/** readOnlyToolRules allow the editor tools that only read. Without a rule, lashd asks before every call of a client's tool. */
const readOnlyToolRules: readonly ApprovalRule[] = ["editor_open_files", "editor_diagnostics", "editor_reveal"].map((tool) => ({ tool, action: "allow" }));

const isReadOnlyToolRule = (rule: ApprovalRule) => readOnlyToolRules.some((look) => same(look, rule));

/**
 * allowReadOnlyTools returns approval settings that allow the read-only editor tools, or undefined if nothing changes. It leaves a session
 * alone that asks about or denies every call.
 */
export function allowReadOnlyTools({ approval }: Config): ApprovalConfig | undefined {
  const rules = approval?.rules ?? [];
  const missing = readOnlyToolRules.filter((look) => !rules.some((rule) => rule.tool === look.tool));
  return approval?.mode || missing.length === 0 ? undefined : { ...approval, rules: [...rules, ...missing] };
}

/** modeOf returns the mode that matches the settings of a session. */
export function modeOf({ approval, options }: Config): Mode {
  if ((options?.plan as { mode?: string } | undefined)?.mode === "plan") {
    return plan;
  }
  const rules = approval?.rules ?? [];
  const accepts = !approval?.mode && editRules.every((edit) => rules.some((rule) => same(edit, rule)));
  return modes.find((mode) => !mode.plan && mode.approval === (approval?.mode || undefined) && (mode.edits ?? false) === accepts) ?? ask;
}

/** configInMode returns the settings for a mode. It keeps rules and options that no mode sets. */
export function configInMode(config: Config, mode: Mode): { approval: ApprovalConfig; options: PluginOptions } {
  const kept = (config.approval?.rules ?? []).filter((rule) => !isEditRule(rule) && !isReadOnlyToolRule(rule));
  const rules = mode.approval ? kept : [...kept, ...readOnlyToolRules];
  const options = { ...config.options };
  delete options.plan;
  return {
    approval: { ...config.approval, mode: mode.approval, rules: mode.edits ? [...rules, ...editRules] : rules },
    options: mode.plan ? { ...options, plan: { mode: "plan" } } : options,
  };
}
