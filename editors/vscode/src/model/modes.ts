import type { ApprovalConfig, ApprovalMode, ApprovalRule, Config, PluginOptions, SandboxMode } from "../protocol";

/** Mode is a preset of approval settings. lashd acp offers the same modes. */
export interface Mode {
  name: string;
  /** what lashd asks about in a session with this sandbox */
  about(sandbox: SandboxMode): string;
  approval?: ApprovalMode;
  /** rules about edits and commands; absent: the sandbox decides about them */
  rules?: readonly ApprovalRule[];
  plan?: boolean;
}

/** commandsText says whether lashd asks before commands. The list of modes shows about 80 characters, so what can surprise stands first. */
const commandsText: Record<SandboxMode, string> = {
  readOnly: "Does not ask before commands, which change nothing.",
  workspace: "Does not ask before commands, which can change this folder.",
  fullAccess: "Asks before commands.",
};

/** editRules decide about the tools that edit files. */
const editRules = (action: "ask" | "allow"): ApprovalRule[] => ["edit", "patch", "write"].map((tool) => ({ tool, action }));

/** askBeforeCommands asks before each command, also in a sandbox. Tools like shell count as shell. */
const askBeforeCommands: ApprovalRule = { tool: "shell", action: "ask" };

const askBeforeChanges: Mode = { name: "Ask before edits and commands", about: () => "Asks before edits and before commands, not before it reads or searches.", rules: [...editRules("ask"), askBeforeCommands] };
const askBeforeEdits: Mode = { name: "Ask before edits", about: (sandbox) => `Asks before edits. ${commandsText[sandbox]}`, rules: editRules("ask") };
const editFreely: Mode = { name: "Edit without asking", about: (sandbox) => `Edits this folder. ${commandsText[sandbox]}`, rules: editRules("allow") };
const plan: Mode = { name: "Plan", about: () => "Reads, searches and plans. Changes nothing.", plan: true };

/** modes go from the one that allows least to the one that allows most. Deny is for sessions that only rules control. */
export const modes: readonly Mode[] = [
  plan,
  { name: "Ask before every call", about: () => "Asks before every tool call, also before one that only reads.", approval: "ask" },
  askBeforeChanges,
  askBeforeEdits,
  editFreely,
  { name: "Do not ask", about: () => "Asks only before calls that leave the sandbox. Calls of MCP servers run, too.", approval: "allow" },
  { name: "Deny", about: () => "Denies every tool call that no rule allows.", approval: "deny" },
];

/** sandboxes are the sandbox modes for the commands of a session. lashd acp offers the same. */
export const sandboxes: readonly { mode: SandboxMode; name: string; about: string }[] = [
  { mode: "readOnly", name: "Read only", about: "Commands run in a sandbox. They change nothing but temporary files." },
  { mode: "workspace", name: "Workspace", about: "Commands run in a sandbox. They change only this folder, and have no network." },
  { mode: "fullAccess", name: "No sandbox", about: "Commands run outside a sandbox." },
];

/** sandboxOf returns the sandbox mode of a session. */
export const sandboxOf = ({ approval }: Config): SandboxMode => approval?.sandbox ?? "fullAccess";

/** sandboxText describes the sandbox of a session. */
export function sandboxText(config: Config): string {
  const mode = sandboxOf(config);
  const name = sandboxes.find((one) => one.mode === mode)?.name ?? mode;
  return mode === "fullAccess" ? name : `Sandbox: ${name.toLowerCase()}`;
}

const same = (a: ApprovalRule, b: ApprovalRule) => a.tool === b.tool && a.action === b.action && ![a, b].some((rule) => rule.command || rule.path || rule.host);

/** isModeRule reports whether a mode adds the rule. */
export const isModeRule = (rule: ApprovalRule) => modes.some(({ rules = [] }) => rules.some((one) => same(one, rule)));

/** readOnlyToolRules allow the editor tools that only read. Without a rule, lashd asks before every call of a client's tool. */
const readOnlyToolRules: readonly ApprovalRule[] = ["editor_open_files", "editor_diagnostics", "editor_reveal"].map((tool) => ({ tool, action: "allow" }));

/** isReadOnlyToolRule reports whether a rule allows a read-only editor tool, as the extension sets it. */
export const isReadOnlyToolRule = (rule: ApprovalRule): boolean => readOnlyToolRules.some((look) => same(look, rule));

/**
 * allowReadOnlyTools returns approval settings that allow the read-only editor tools, or undefined if nothing changes. It leaves a session
 * alone that asks about or denies every call.
 */
export function allowReadOnlyTools({ approval }: Config): ApprovalConfig | undefined {
  const rules = approval?.rules ?? [];
  const missing = readOnlyToolRules.filter((look) => !rules.some((rule) => rule.tool === look.tool));
  return approval?.mode || missing.length === 0 ? undefined : { ...approval, rules: [...rules, ...missing] };
}

/** modeOf returns the mode that matches the settings of a session. Without rules about edits, the sandbox decides about them. */
export function modeOf(config: Config): Mode {
  const { approval, options } = config;
  if ((options?.plan as { mode?: string } | undefined)?.mode === "plan") {
    return plan;
  }
  if (approval?.mode) {
    return modes.find((mode) => mode.approval === approval.mode) ?? askBeforeEdits;
  }
  const ruled = ({ rules = [] }: Mode) => rules.every((one) => (approval?.rules ?? []).some((rule) => same(one, rule)));
  const asks = [askBeforeChanges, askBeforeEdits].find(ruled);
  return asks ?? (ruled(editFreely) || sandboxOf(config) === "workspace" ? editFreely : askBeforeEdits);
}

/** configInMode returns the settings for a mode. It keeps rules and options that no mode sets. */
export function configInMode(config: Config, mode: Mode): { approval: ApprovalConfig; options: PluginOptions } {
  const kept = (config.approval?.rules ?? []).filter((rule) => !isModeRule(rule) && !isReadOnlyToolRule(rule));
  const rules = mode.approval ? kept : [...kept, ...readOnlyToolRules];
  const options = { ...config.options };
  delete options.plan;
  return {
    approval: { ...config.approval, mode: mode.approval, rules: [...rules, ...(mode.rules ?? [])] },
    options: mode.plan ? { ...options, plan: { mode: "plan" } } : options,
  };
}
