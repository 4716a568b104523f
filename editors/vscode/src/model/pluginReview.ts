import type { PluginReadResult, PluginReviewFile } from "../protocol";
import { counted } from "./sessions";
import { onOneLine } from "./printable";

/** reviewText shows what trust in a plugin covers: what the plugin does, and its files with their texts. */
export function reviewText({ plugin, contributes, reach, digest }: PluginReadResult, files: readonly PluginReviewFile[]): string {
  const part = (title: string, lines: string[] | undefined) => (lines?.length ? [`${title}:`, ...lines.map((line) => `  ${onOneLine(line)}`)] : []);
  return [
    `Trust in ${plugin.name} covers exactly the ${counted(files.length, "file")} below and the commands that they declare.`,
    "A change of one needs a new review.",
    "Its programs run with your permissions, in the sandbox of the session if it has one.",
    "Trust with the button in the title of this editor; closing it changes nothing.",
    ...part("Adds", contributes.map(({ kind, name, detail }) => `${kind} ${name}${detail ? `: ${detail}` : ""}`)),
    ...part("Runs", reach.commands?.map((argv) => JSON.stringify(argv))),
    ...part("Not covered by trust", reach.uncovered),
    ...part("Addresses", reach.addresses),
    ...part("Environment", reach.environment),
    ...part("Capabilities", reach.capabilities),
    ...part("Configuration", reach.configures ? ["can change the configuration of sessions; it can make approval only stricter"] : undefined),
    ...part("Missing files that its commands name", reach.files?.filter((file) => !file.digest).map(({ path }) => path)),
    ...part("Digest", digest ? [`sha256 ${digest}`] : undefined),
    ...files.map(fileText),
  ].join("\n");
}

/** beforeText shows the files of the version that is trusted now, to compare them; undefined if there is none. Of a file outside the plugin, only the digest is known. */
export function beforeText(read: PluginReadResult): string | undefined {
  const now = new Map(read.files?.map((file) => [file.path, file]));
  const known = (file: PluginReviewFile): PluginReviewFile => {
    const same = now.get(file.path);
    return same?.digest !== undefined && same.digest === file.digest ? same : file;
  };
  return read.before && reviewText({ ...read, digest: read.plugin.digest ?? "" }, read.before.map(known));
}

function fileText({ path, size = 0, digest = "", link, executable, text = "" }: PluginReviewFile): string {
  if (link !== undefined) {
    return `\n==== ${onOneLine(path)} is a link to ${onOneLine(link)}`;
  }
  const body = text === "" && (size > 0 || isOutside(path)) ? `(${size > 0 ? `${size} bytes, ` : ""}not shown, sha256 ${digest})` : text;
  return `\n==== ${onOneLine(path)}${executable ? " (executable)" : ""}\n${body}`;
}

/** isOutside reports whether a file is outside the directory of the plugin: its path is absolute. */
function isOutside(path: string): boolean {
  return /^([\\/]|[A-Za-z]:)/.test(path);
}
