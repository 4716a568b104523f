import type { FilePoint, Item, Monitor, PluginState, SnapshotInfo, SnapshotPreviewResult, SnapshotSide, ToolState } from "../protocol";
import { counted } from "./sessions";

/** sideText returns one side of a restore as text: the session now, or after the restore. */
export function sideText(side: SnapshotSide): string {
  const { nodes, items, plugins, tools, monitors, execution } = side;
  const parts: [string, string[]][] = [
    ["Conversation (where the two sides differ)", conversation(nodes, items)],
    ["Plugins", plugins.map(pluginText)],
    ["Tools", toolLines(tools)],
    ["Monitors", monitors.map(monitorText)],
    ["Code executor state", execution ? [`sha256 ${execution}`] : []],
  ];
  return parts.map(([title, lines]) => `${title}\n${lines.map((line) => `  ${line.replaceAll("\n", "\n  ")}\n`).join("")}`).join("\n");
}

function conversation(nodes: number, items: Item[]): string[] {
  const earlier = nodes > items.length ? [`(${nodes} entries; only the newest are shown)`] : [];
  return [...earlier, ...items.map(itemText)];
}

const speakers: Partial<Record<Item["kind"], string>> = { userMessage: "You", agentMessage: "Agent", reasoning: "Reasoning" };

function itemText({ kind, text = "", tool, args, status }: Item): string {
  return tool === undefined ? `${speakers[kind] ?? kind}: ${text}` : `Tool ${tool} ${JSON.stringify(args ?? {})}: ${status}`;
}

function pluginText({ plugin, version, state, artifacts = [] }: PluginState): string {
  const bulk = artifacts.map(({ name, size, digest }) => `${name}: ${size} bytes, sha256 ${digest}`);
  return [`${plugin} ${version}`, ...(state === undefined ? [] : [JSON.stringify(state, undefined, 2)]), ...bulk].join("\n");
}

function toolLines({ tools }: ToolState): string[] {
  const lines = Object.values(tools).map(({ manifest, member, override }) => {
    const how = override === undefined ? "" : `, ${JSON.stringify(override)}`;
    return `${manifest.name}: ${member === false ? "off" : "on"}${how}`;
  });
  return lines.sort();
}

function monitorText({ spec, state, armed }: Monitor): string {
  return `${spec.monitorId}: ${state}${armed ? ", armed" : ""}\n${spec.command}`;
}

/** restoreText returns the question before a restore. */
export function restoreText({ snapshot, now, then }: SnapshotPreviewResult): string {
  const entries = (n: number) => (n === 1 ? "1 conversation entry" : `${n} conversation entries`);
  const lines = [
    `Restore the snapshot "${snapshot.name}"?`,
    now.nodes > 0 ? `${entries(now.nodes)} will be hidden, not deleted.` : "",
    then.nodes > 0 ? `${entries(then.nodes)} will reappear.` : "",
    now.monitors.some(({ state }) => state === "running") ? "Running monitors will be stopped." : "",
    "Files will not change.",
  ];
  return lines.filter(Boolean).join(" ");
}

/** sizeText returns the size of a snapshot. */
export function sizeText({ nodes, bytes = 0 }: SnapshotInfo): string {
  const size = bytes < 1024 ? `${bytes} bytes` : `${Math.round(bytes / 1024)} KiB`;
  return `${nodes === 1 ? "1 entry" : `${nodes} entries`}, ${size}`;
}

/** pointTitle returns the title of a file point. */
export function pointTitle({ kind, files }: FilePoint): string {
  return `${kind === "turn" ? "Turn" : "Undo"} changed ${counted(files, "file")}`;
}
