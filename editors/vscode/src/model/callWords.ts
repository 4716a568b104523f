import type { FileChange, Item, Task } from "../protocol";
import { counted } from "./sessions";

/** Tense says what the words about a call say: that it was made, that it runs, or what it would do, if it is asked about or failed. */
export type Tense = "past" | "present" | "plain";

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
export type Made = Pick<Item, "tool" | "args" | "output">;

/** Known is what the words about calls need to know of a session. */
export interface Known {
  cwd: string;
  tasks: Task[];
}

type Args = Record<string, unknown>;

interface Tool {
  icon: string;
  verbs: Record<Tense, string>;
  /** returns what a call is about; undefined: its arguments are not those of the tool that this program knows */
  about(args: Args, known: Known): Pick<CallWords, "about" | "rest"> | undefined;
}

const text = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);

const tool = (icon: string, past: string, present: string, plain: string, about: Tool["about"] = () => ({})): Tool => ({ icon, verbs: { past, present, plain }, about });

const ofFile = (name = "path"): Tool["about"] => (args, known) => {
  const path = text(args[name]);
  return path === undefined ? undefined : { about: { file: relative(path, known.cwd) } };
};

const ofCode = (name: string): Tool["about"] => (args, known) => {
  const code = text(args[name]);
  return code === undefined ? undefined : { about: { code }, ...where(args, known) };
};

const ofWords = (name: string): Tool["about"] => (args) => {
  const words = text(args[name]);
  return words === undefined ? undefined : { about: { words } };
};

/** where says in which place a search looked, unless that is the whole workspace. */
function where({ path }: Args, { cwd }: Known): { rest?: string } {
  const place = relative(text(path) ?? ".", cwd);
  return place === "." ? {} : { rest: `in ${place}` };
}

const ofFolder: Tool["about"] = ({ path = "." }, { cwd }) => (typeof path === "string" ? { about: { words: relative(path, cwd) === "." ? "the workspace" : relative(path, cwd) } } : undefined);

const ofCommand: Tool["about"] = (args, known) => (text(args.label) === undefined ? ofCode("command")(args, known) : { about: { words: String(args.label) } });

const ofTask: Tool["about"] = ({ task }, { tasks }) => {
  const id = text(task);
  const found = tasks.find(({ taskId }) => taskId === id);
  return id === undefined ? undefined : { about: { words: found ? taskName(found) : "a task" } };
};

const ofPatch: Tool["about"] = ({ patch }, { cwd }) => {
  const [file, ...more] = typeof patch === "string" ? patchedFiles(patch) : [];
  return file === undefined ? {} : { about: more.length > 0 ? { words: `${more.length + 1} files` } : { file: relative(file, cwd) } };
};

/** tools are the tools of lashd and of this extension. Others keep their names. */
const tools: Partial<Record<string, Tool>> = {
  read: tool("eye", "Read", "Reading", "Read", ofFile()),
  write: tool("edit", "Wrote", "Writing", "Write", ofFile()),
  edit: tool("edit", "Edited", "Editing", "Edit", ofFile()),
  patch: tool("edit", "Edited", "Editing", "Edit", ofPatch),
  list: tool("list-tree", "Listed", "Listing", "List", ofFolder),
  glob: tool("search", "Searched for files", "Searching for files", "Search for files", ofCode("pattern")),
  grep: tool("search", "Searched for", "Searching for", "Search for", ofCode("pattern")),
  shell: tool("terminal", "Ran", "Running", "Run", ofCode("command")),
  start_command: tool("server-process", "Started", "Starting", "Start", ofCommand),
  write_stdin: tool("server-process", "Sent input to", "Sending input to", "Send input to", ofTask),
  read_output: tool("server-process", "Read the output of", "Reading the output of", "Read the output of", ofTask),
  stop_command: tool("server-process", "Stopped", "Stopping", "Stop", ofTask),
  list_processes: tool("server-process", "Listed the tasks", "Listing the tasks", "List the tasks"),
  start_monitor: tool("pulse", "Started the monitor", "Starting the monitor", "Start the monitor", ofWords("id")),
  stop_monitor: tool("pulse", "Stopped the monitor", "Stopping the monitor", "Stop the monitor", ofWords("id")),
  list_monitors: tool("pulse", "Listed the monitors", "Listing the monitors", "List the monitors"),
  update_plan: tool("checklist", "Updated the plan", "Updating the plan", "Update the plan"),
  skill: tool("book", "Read the skill", "Reading the skill", "Read the skill", ofWords("name")),
  tool_search: tool("search", "Searched the tools for", "Searching the tools for", "Search the tools for", ofCode("query")),
  llm_query: tool("comment", "Asked a model", "Asking a model", "Ask a model"),
  batch: tool("layers", "Made several calls", "Making several calls", "Make several calls"),
  spawn_agent: tool("hubot", "Started the agent", "Starting the agent", "Start the agent", ofWords("name")),
  send_agent: tool("hubot", "Gave a task to", "Giving a task to", "Give a task to", ofWords("name")),
  wait_agents: tool("hubot", "Waited for agents", "Waiting for agents", "Wait for agents"),
  list_agents: tool("hubot", "Listed the agents", "Listing the agents", "List the agents"),
  close_agent: tool("hubot", "Closed the agent", "Closing the agent", "Close the agent", ofWords("name")),
  editor_open_files: tool("files", "Listed the open files", "Listing the open files", "List the open files"),
  editor_diagnostics: tool("warning", "Read the problems", "Reading the problems", "Read the problems", (args, known) => where(args, known)),
  editor_reveal: tool("go-to-file", "Showed", "Showing", "Show", ofFile()),
  editor_apply_edit: tool("edit", "Edited", "Editing", "Edit", ofFile()),
  editor_run_task: tool("play", "Ran the task", "Running the task", "Run the task", ofWords("name")),
};

/** callWords describes a call in words. A tool that this program does not know keeps its name, with its most informative argument. */
export function callWords(call: Made, tense: Tense, known: Known): CallWords {
  const name = call.tool ?? "";
  const change = call.output?.change;
  const words = Object.hasOwn(tools, name) ? tools[name] : undefined;
  const about = words?.about((call.args ?? {}) as Args, known);
  if (!words || !about) {
    const code = summaryOf(call);
    return { icon: "tools", verb: name, ...(change ? { about: { file: relative(change.path, known.cwd) } } : code !== "" && { about: { code } }) };
  }
  return { icon: words.icon, verb: (tense === "past" && change && changeVerb(call, change)) || words.verbs[tense], ...about };
}

/** looks counts calls that only look at files, by what they look at: files that they read, searches and lists. A call of another tool gives undefined. */
export function looks({ tool: name = "" }: Made): "files" | "searches" | "lists" | undefined {
  return ({ read: "files", grep: "searches", glob: "searches", list: "lists" } as const)[name as "read"];
}

/** looksText describes several calls that only looked at files, such as "Read 3 files, searched 2 times". */
export function looksText(calls: Made[], known: Known): string {
  const of = (what: string) => calls.filter((call) => looks(call) === what);
  const files = new Set(of("files").map((call) => subjectText(callWords(call, "past", known).about)));
  const [searches, lists] = [of("searches").length, of("lists").length];
  const parts = [files.size > 0 && `read ${counted(files.size, "file")}`, searches > 0 && `searched ${counted(searches, "time")}`, lists > 0 && `listed ${counted(lists, "folder")}`].filter((part) => part !== false);
  return parts.join(", ").replace(/^./, (first) => first.toUpperCase());
}

/** question asks whether a call that has neither a command nor a diff may be made, such as "Read src/total.ts?". */
export function question(call: Made, known: Known): string {
  const { icon, verb, about, rest } = callWords(call, "plain", known);
  return icon === "tools" ? `Call the tool ${call.tool}?` : `${[verb, subjectText(about), rest].filter(Boolean).join(" ")}?`;
}

/** subjectText returns a subject as plain text. */
export function subjectText(about: Subject | undefined): string {
  return about === undefined ? "" : "file" in about ? about.file : "code" in about ? about.code : about.words;
}

/** taskName names a task for people. */
export function taskName({ taskId, spec }: Task): string {
  return spec.label || spec.command?.script.split("\n")[0] || taskId;
}

/** changeVerb says that a call created or deleted its only file; "" for other changes. */
function changeVerb({ args }: Made, { diff }: FileChange): string {
  const { patch } = (args ?? {}) as { patch?: unknown };
  if (typeof patch === "string" && patchedFiles(patch).length > 1) {
    return "";
  }
  return diff.startsWith("--- /dev/null\n") ? "Created" : /^--- .*\n\+\+\+ \/dev\/null\n/.test(diff) ? "Deleted" : "";
}

/** relative returns a path in a directory without that directory; others stay. */
function relative(path: string, cwd: string): string {
  return path === cwd ? "." : cwd !== "" && path.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path.replace(/^\.\/(?=.)/, "");
}

/** summaryOf returns the most informative argument of a tool call, on one line. */
function summaryOf({ args: all }: Made): string {
  const args = (all ?? {}) as Args;
  const known = ["command", "path", "pattern", "query", "url", "task", "name"].map((name) => args[name]);
  const argument = known.find((value) => typeof value === "string") ?? Object.values(args).find((value) => typeof value === "string");
  return oneLine(typeof argument === "string" ? argument : "");
}

/** oneLine returns the first line of a text, shortened if it is long. */
export function oneLine(long: string): string {
  const line = long.split("\n")[0] ?? "";
  return line.length < long.length || line.length > 160 ? `${line.slice(0, 160)}\u2026` : line;
}

/** patchedFiles returns the files that a patch changes. */
function patchedFiles(patch: string): string[] {
  return [...patch.matchAll(/^\*\*\* (?:Add|Update|Delete) File: (.+)$/gm)].map(([, path = ""]) => path);
}
