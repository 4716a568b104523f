import type { DebugPromptResult, Message, ModelSpec, Usage } from "../protocol";
import { counted } from "./sessions";

/** The average bytes of a token in English text and code, with which lashd estimates. */
const bytesPerToken = 4;

/** Fill is how full the context window was at the newest model call. */
export interface Fill {
  /** absent until the next call: no call since the session began or its history was compacted */
  used?: number;
  /** tokens; absent: unknown */
  window?: number;
  /** 0 to 100, if both are known */
  percent?: number;
}

/** ContextPart is a part of the next request. */
export interface ContextPart {
  title: string;
  detail: string;
  /** an estimate; absent: not estimated */
  tokens?: number;
}

/** fillOf returns how full the context window of a model is after a call. */
export function fillOf(usage: Usage | undefined, { contextWindow: window }: ModelSpec): Fill {
  const used = usage && usage.input + usage.cacheRead + usage.cacheWrite + usage.output;
  const percent = used !== undefined && window ? Math.min(100, Math.round((100 * used) / window)) : undefined;
  return { used, window: window || undefined, percent };
}

/** fillText describes how full the context window is, in a few words and in a sentence. */
export function fillText({ used, window, percent }: Fill): { short: string; long: string } {
  if (used === undefined) {
    return { short: "Context", long: `Context window${window ? ` of ${tokensText(window)} tokens` : ""}, known after the next model call` };
  }
  if (percent === undefined || !window) {
    return { short: `Context ${tokensText(used)}`, long: `Context: ${tokensText(used)} tokens; the window of this model is not known` };
  }
  return { short: `Context ${percent}%`, long: `Context: ${tokensText(used)} of ${tokensText(window)} tokens, ${percent}% full` };
}

/** contextParts estimates what fills the next request. */
export function contextParts({ system, tools, messages }: DebugPromptResult): ContextPart[] {
  const toolBytes = tools.reduce((sum, { name, description, input }) => sum + bytesOf(name) + bytesOf(description) + bytesOf(JSON.stringify(input ?? {})), 0);
  const files = messages.flatMap(({ parts: all }) => all.flatMap((part) => [...(part.attachment ? [part.attachment] : []), ...(part.result?.output.attachments ?? [])]));
  const estimates = files.map((file) => file.estimatedTokens).filter((tokens) => tokens !== undefined);
  const parts: ContextPart[] = [
    { title: "System prompt", detail: "", tokens: tokensOf(bytesOf(system)) },
    { title: "Tools", detail: counted(tools.length, "tool"), tokens: tokensOf(toolBytes) },
    { title: "History", detail: counted(messages.length, "message"), tokens: tokensOf(messages.reduce((sum, message) => sum + messageBytes(message), 0)) },
  ];
  const all = estimates.length === files.length ? { tokens: estimates.reduce((sum, tokens) => sum + tokens, 0) } : {};
  return files.length > 0 ? [...parts, { title: "Attachments", detail: counted(files.length, "file"), ...all }] : parts;
}

function messageBytes({ parts }: Message): number {
  return parts.reduce((sum, { text, call, result }) => sum + bytesOf(text) + bytesOf(call && JSON.stringify(call.args)) + resultBytes(result?.output), 0);
}

function resultBytes(output: { text?: string; value?: unknown } | undefined): number {
  return output ? Math.max(bytesOf(output.text), output.value === undefined ? 0 : bytesOf(JSON.stringify(output.value))) : 0;
}

const encoder = new TextEncoder();

function bytesOf(text: string | undefined): number {
  return text ? encoder.encode(text).length : 0;
}

function tokensOf(bytes: number): number {
  return Math.round(bytes / bytesPerToken);
}

/** tokensText returns a number of tokens for people, such as 950, 6.2k or 200k. */
export function tokensText(tokens: number): string {
  if (tokens < 1000) {
    return String(tokens);
  }
  if (tokens >= 1_000_000) {
    return `${(tokens / 1_000_000).toFixed(1).replace(/\.0$/, "")}M`;
  }
  return tokens < 10_000 ? `${(tokens / 1000).toFixed(1).replace(/\.0$/, "")}k` : `${Math.round(tokens / 1000)}k`;
}
