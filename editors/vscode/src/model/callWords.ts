import type { CallTitle, FileChange, Item, Task, ToolKind } from "../protocol";
import { counted } from "./sessions";

/** Tense says what the words about a call say: that it was made, that it runs, or what it would do, if it is asked about or failed. */
export type Tense = "done" | "running" | "verb";

/** Subject is what a call is about. */
export type Subject = { file: string } | { code: string } | { words: string };

/** CallWords describe a call, such as "Read src/total.ts". */
export interface CallWords {
  /** name of a codicon for the kind of the call */
  icon: string;
  verb: string;
  about?: Subject;
  /** further words after the subject, such as where a search looked */
  rest?: string;
}

/** Made is a call as far as its words need it. */
export type Made = Pick<Item, "tool" | "args" | "output" | "title">;

/** Known is what the words about calls need to know of a session. */
export interface Known {
  cwd: string;
  tasks: Task[];
}

/** kindIcons are the icons of kinds of calls. */
const kindIcons: Partial<Record<ToolKind, string>> = { read: "eye", edit: "edit", delete: "trash", move: "edit", search: "search", execute: "terminal", think: "lightbulb", fetch: "globe" };

/** toolIcons are the icons of tools for which that of the kind says little. */
const toolIcons: Partial<Record<string, string>> = {
  list: "list-tree", glob: "list-tree", update_plan: "checklist", skill: "book", llm_query: "comment", batch: "layers",
  start_command: "server-process", write_stdin: "server-process", read_output: "server-process", list_processes: "server-process", stop_command: "server-process",
  start_monitor: "pulse", stop_monitor: "pulse", list_monitors: "pulse",
  spawn_agent: "hubot", send_agent: "hubot", wait_agents: "hubot", list_agents: "hubot", close_agent: "hubot",
};

const files = new Set(["read", "write", "edit", "patch", "list", "editor_reveal", "editor_apply_edit", "editor_diagnostics"]);
const codes = new Set(["glob", "grep", "tool_search", "shell", "start_command", "start_monitor"]);

/** editorTitles are the titles of calls of the tools of this extension. The daemon names those of its own tools. */
const editorTitles: Partial<Record<string, CallTitle>> = {
  editor_open_files: { kind: "read", verb: "List the open files", running: "Listing the open files", done: "Listed the open files" },
  editor_diagnostics: { kind: "read", verb: "Read the problems", running: "Reading the problems", done: "Read the problems" },
  editor_reveal: { kind: "read", verb: "Show", running: "Showing", done: "Showed" },
  editor_apply_edit: { kind: "edit", verb: "Edit", running: "Editing", done: "Edited" },
  editor_run_task: { kind: "execute", verb: "Run the task", running: "Running the task", done: "Ran the task" },
};

/** titleOf returns the title of a call; undefined for a tool without one that neither the daemon nor this extension knows. */
function titleOf({ tool = "", title, args }: Made): CallTitle | undefined {
  const own = Object.hasOwn(editorTitles, tool) ? editorTitles[tool] : undefined;
  const { path, name } = (args ?? {}) as { path?: unknown; name?: unknown };
  const subject = [path, name].find((value) => typeof value === "string");
  return title ?? (own && { ...own, ...(typeof subject === "string" && { subject }) });
}

/** callWords describes a call in words. A tool without a title keeps its name, with its most informative argument. */
export function callWords(call: Made, tense: Tense, known: Known): CallWords {
  const title = titleOf(call);
  const change = call.output?.change;
  if (!title) {
    const code = summaryOf(call);
    const file = change?.path ?? fileIn(call, known.cwd);
    return { icon: "tools", verb: call.tool ?? "", ...(file !== undefined ? { about: { file: relative(file, known.cwd) } } : code !== "" && { about: { code } }) };
  }
  const verb = (tense === "done" && change && !title.detail && changeVerb(change)) || title[tense];
  const about = subjectOf(call, title, known);
  return { icon: toolIcons[call.tool ?? ""] ?? kindIcons[title.kind] ?? "tools", verb, ...(about && { about }), ...(title.detail && { rest: title.detail }) };
}

function subjectOf({ tool = "" }: Made, { subject }: CallTitle, { cwd, tasks }: Known): Subject | undefined {
  if (!subject) {
    return undefined;
  }
  const task = tasks.find(({ taskId }) => taskId === subject);
  const path = relative(subject, cwd);
  return task ? { words: taskName(task) } : codes.has(tool) ? { code: subject } : files.has(tool) ? (path === "." ? { words: "the folder" } : { file: path }) : { words: subject };
}

/** looks says at what a call of a tool that changes nothing looks; undefined for other tools. */
export function looks({ tool = "" }: Made): "files" | "searches" | "lists" | undefined {
  return ({ read: "files", grep: "searches", glob: "searches", list: "lists" } as const)[tool as "read"];
}

/** looksText describes several calls that only looked at files, such as "Read 3 files, searched 2 times". */
export function looksText(calls: Made[], known: Known): string {
  const of = (what: string) => calls.filter((call) => looks(call) === what);
  const read = new Set(of("files").map((call) => subjectText(callWords(call, "done", known).about)));
  const [searches, lists] = [of("searches").length, of("lists").length];
  const parts = [read.size > 0 && `read ${counted(read.size, "file")}`, searches > 0 && `searched ${counted(searches, "time")}`, lists > 0 && `listed ${counted(lists, "folder")}`].filter((part) => part !== false);
  return parts.join(", ").replace(/^./, (first) => first.toUpperCase());
}

/** question asks whether a call that has neither a command nor a diff may be made, such as "Read src/total.ts?". The arguments of a foreign tool are not in it. */
export function question(call: Made, known: Known): string {
  const title = titleOf(call);
  const { verb, about, rest } = callWords(call, "verb", known);
  return title ? `${[verb, subjectText(about), title.foreign ? "" : rest].filter(Boolean).join(" ")}?` : `Call the tool ${call.tool}?`;
}

/** subjectText returns a subject as plain text. */
export function subjectText(about: Subject | undefined): string {
  return about === undefined ? "" : "file" in about ? about.file : "code" in about ? about.code : about.words;
}

/** taskName names a task for people. */
export function taskName({ taskId, spec }: Task): string {
  return spec.label || spec.command?.script.split("\n")[0] || taskId;
}

/** isWhole reports whether the words about a call have all of its command. */
export function isWhole({ args, title }: Made): boolean {
  const { command } = (args ?? {}) as { command?: unknown };
  return typeof command === "string" && title?.subject === command;
}

/** changeVerb says that a call created or deleted its file; "" for other changes. */
function changeVerb({ diff }: FileChange): string {
  return diff.startsWith("--- /dev/null\n") ? "Created" : /^--- .*\n\+\+\+ \/dev\/null\n/.test(diff) ? "Deleted" : "";
}

/** relative returns a path in a directory without that directory; others stay. */
function relative(path: string, cwd: string): string {
  return path === cwd ? "." : cwd !== "" && path.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path.replace(/^\.\/(?=.)/, "");
}

/** fileIn returns the path in a directory that an argument of a call has, such as a call of another agent in an imported session. */
function fileIn({ args }: Made, cwd: string): string | undefined {
  const { path, file_path: file } = (args ?? {}) as { path?: unknown; file_path?: unknown };
  return [path, file].find((one): one is string => typeof one === "string" && one.startsWith(`${cwd}/`));
}

/** summaryOf returns the most informative argument of a tool call, on one line. */
function summaryOf({ args: all }: Made): string {
  const args = (all ?? {}) as Record<string, unknown>;
  const known = ["command", "path", "pattern", "query", "url", "task", "name"].map((name) => args[name]);
  const argument = known.find((value) => typeof value === "string") ?? Object.values(args).find((value) => typeof value === "string");
  const long = typeof argument === "string" ? argument : "";
  const line = long.split("\n")[0] ?? "";
  return line.length < long.length || line.length > 160 ? `${line.slice(0, 160)}\u2026` : line;
}
