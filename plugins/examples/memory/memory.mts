/** Notes that outlive what the model forgets. README.md tells how they are used. */
import { Plugin, fail, messageNode } from "./lashd-plugin.mts";
import type { Call, Message } from "./lashd-plugin.mts";

interface Note { number: number; text: string }
interface Notes { last: number; notes: Note[] }
interface Config { notes?: number; compact?: boolean }

const plugin = new Plugin<Notes>({ state: () => ({ last: 0, notes: [] }) });

/** The options of the session, and those of the plugin for all of them. */
const config = (call: Call<Notes>): Config => ({ ...plugin.config, ...call.session.options });
const lines = (notes: Note[]): string => notes.map((n) => `${n.number}. ${n.text}`).join("\n");

plugin.tool("remember", (call, args: { text: string }) => {
  const limit = config(call).notes ?? 50;
  if (call.session.state.notes.length >= limit) return fail(`There are ${limit} notes already: forget one first.`, "too_many_notes");
  const number = call.session.change((state) => {
    state.notes.push({ number: ++state.last, text: args.text });
    return state.last;
  });
  return `Note ${number} is kept.`;
});

plugin.tool("forget", (call, args: { number: number }) => {
  const at = call.session.state.notes.findIndex((n) => n.number === args.number);
  if (at < 0) return fail(`There is no note ${args.number}.`, "no_such_note");
  call.session.change((state) => state.notes.splice(at, 1));
  return `Note ${args.number} is gone.`;
});

plugin.tool("recall", (call, args: { text?: string }) => {
  const wanted = (args.text ?? "").toLowerCase();
  return lines(call.session.state.notes.filter((n) => n.text.toLowerCase().includes(wanted))) || "There is no such note.";
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
    ["The conversation so far was shortened. Your notes, all of them:", lines(call.session.state.notes) || "none"],
    ["What you were asked, in order:", asked.slice(-40).map((t) => `- ${clip(t, 400)}`).join("\n")],
    ["Your last answer:", clip(answer ?? "", 4000)],
    ["What the summary is for:", request.instructions ?? ""],
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
