import type { PluginReadResult, PluginReviewFile } from "../protocol";
import { pluginTitle } from "./pluginStatus";
import { counted } from "./sessions";
import { onOneLine } from "./printable";

/** The length of the lines of a sentence, in characters, so that a narrow editor shows all of it. */
const maxLine = 60;

/** reviewText shows what trust in a plugin covers: what the plugin does, and its files with their texts. */
export function reviewText({ plugin, contributes, reach, digest }: PluginReadResult, files: readonly PluginReviewFile[]): string {
  const part = (title: string, lines: string[] | undefined) => (lines?.length ? [`${title}:`, ...lines.map((line) => `  ${onOneLine(line)}`)] : []);
  return [
    ...linesOf(`Trust in ${onOneLine(pluginTitle(plugin))} covers exactly the ${counted(files.length, "file")} below and the commands that they declare.`),
    ...linesOf("A change of one of them needs a new review."),
    ...linesOf("Its programs run with your permissions, in the sandbox of the session if it has one."),
    ...linesOf("The button Trust These Files is in the title of this editor. Closing the editor changes nothing."),
    "",
    ...part("Adds", contributes.map(({ kind, name, detail }) => `${kind} ${name}${detail ? `: ${detail}` : ""}`)),
    ...part("Runs", reach.commands?.map((argv) => JSON.stringify(argv))),
    ...part("Not covered by trust", reach.uncovered),
    ...part("Addresses", reach.addresses),
    ...part("Environment", reach.environment),
    ...part("Capabilities", reach.capabilities),
    ...part("Configuration", reach.configures ? linesOf("can change the configuration of sessions; it can make approval only stricter") : undefined),
    ...part("Missing files that its commands name", reach.files?.filter((file) => !file.digest).map(({ path }) => path)),
    ...part("Digest", digest ? [`sha256 ${digest}`] : undefined),
    ...files.map(fileText),
  ].join("\n");
}

/** linesOf breaks a sentence into lines. */
function linesOf(sentence: string): string[] {
  return sentence.split(" ").reduce<string[]>((lines, word) => {
    const last = lines.pop();
    return last === undefined ? [word] : last.length + 1 + word.length <= maxLine ? [...lines, `${last} ${word}`] : [...lines, last, word];
  }, []);
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
