import type { PluginInfo, PluginStatus } from "../protocol";

const texts: Partial<Record<PluginStatus, string>> = { untrusted: "not approved", modified: "changed, not approved", degraded: "partly loaded", failed: "failed to load" };

/** statusText says in words how a plugin is. */
export function statusText(status: PluginStatus): string {
  return texts[status] ?? status;
}

/** untrustedPlugins returns the names of the plugins of a workspace that do nothing until a person approves them. */
export function untrustedPlugins(plugins: readonly PluginInfo[]): string[] {
  return plugins.filter(({ scope, status }) => scope === "workspace" && status === "untrusted").map(({ name }) => name);
}

/** pluginTitle names a plugin for people. The files that a folder has for agents have the name of the folder. */
export function pluginTitle(plugin: PluginInfo): string {
  const { name, dir = "" } = plugin;
  return (isLayout(plugin) && dir.split(/[\\/]/).filter(Boolean).at(-1)) || name;
}

/** isLayout reports whether a plugin is made of the files that a folder has for agents: .mcp.json, .claude and .agents. */
export function isLayout({ name, scope }: PluginInfo): boolean {
  return name === "project" && scope === "workspace";
}
