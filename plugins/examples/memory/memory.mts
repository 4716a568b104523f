/** Notes of the model that survive compaction. See README.md. */
import { Plugin, fail, messageNode } from "./lashd-plugin.mts";
import type { Call, Message } from "./lashd-plugin.mts";

interface Note { number: number; text: string }
interface Notes { last: number; notes: Note[] }
interface Config { notes?: number; compact?: boolean }

const plugin = new Plugin<Notes>({ state: () => ({ last: 0, notes: [] }) });

/** Returns the options of the session over those of the plugin. */
const config = (call: Call<Notes>): Config => ({ ...plugin.config, ...call.session.options });
const lines = (notes: Note[]): string => notes.map((n) => `${n.number}. ${n.text}`).join("\n");

plugin.tool("remember", (call, args: { text: string }) => {
  const limit = config(call).notes ?? 50;
  if (call.session.state.notes.length >= limit) return fail(`There are already ${limit} notes. Forget one first.`, "too_many_notes");
  const number = call.session.change((state) => {
    state.notes.push({ number: ++state.last, text: args.text });
    return state.last;
  });
  return `Note ${number} is stored.`;
});

plugin.tool("forget", (call, args: { number: number }) => {
  const at = call.session.state.notes.findIndex((n) => n.number === args.number);
  if (at < 0) return fail(`There is no note ${args.number}.`, "no_such_note");
  call.session.change((state) => state.notes.splice(at, 1));
  return `Note ${args.number} is deleted.`;
});

plugin.tool("recall", (call, args: { text?: string }) => {
  const wanted = (args.text ?? "").toLowerCase();
  return lines(call.session.state.notes.filter((n) => n.text.toLowerCase().includes(wanted))) || "No matching notes.";
});

plugin.operation("memory.notes", (call) => call.session.state.notes);

plugin.hook("prompt", (call) => {
  const { notes } = call.session.state;
  if (notes.length > 0) return { slot: "runtimeContext", title: "Your notes", content: lines(notes) };
});

plugin.hook("compact", (call, request) => {
  if (config(call).compact === false) return;
  const asked = call.messages.filter((m) => m.role === "user").map(text).filter(Boolean);
  const answer = call.messages.filter((m) => m.role === "assistant").map(text).filter(Boolean).pop();
  const sections = [
    ["The conversation so far was shortened. All your notes:", lines(call.session.state.notes) || "none"],
    ["The user's inputs, in order:", asked.slice(-40).map((t) => `- ${clip(t, 400)}`).join("\n")],
    ["Your last answer:", clip(answer ?? "", 4000)],
    ["Instructions for the summary:", request.instructions ?? ""],
  ];
  return messageNode(sections.filter(([, body]) => body).map(([title, body]) => `${title}\n${body}`).join("\n\n"));
});

const spoken = ["text", "prose", "commentary"];

function text(message: Message): string {
  return (message.parts ?? []).filter((p) => spoken.includes(p.kind)).map((p) => p.text ?? "").join("").trim();
}

function clip(said: string, most: number): string {
  const all = [...said];
  return all.length > most ? `${all.slice(0, most).join("")} ...` : said;
}

plugin.run();
