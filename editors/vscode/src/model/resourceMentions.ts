import type { MCPResourcesResult, ResourceMention } from "../protocol";
import { matches } from "./resourceTemplates";

/** The maximum number of resources of one input. */
const mostMentions = 16;

/** A character that can follow a mention without a space. */
const closing = /[.,;:!?)\]}>'`]$/;

/** Mention is a part of a text that names a resource. The rules are those of docs/mcp.md. */
export interface Mention extends ResourceMention {
  /** as it is in the text */
  word: string;
}

/** Candidate is a part of a text that may be a mention. */
interface Candidate extends Mention {
  quoted: boolean;
}

/** mayMention returns the parts of a text that may be mentions. */
export function mayMention(text: string): string[] {
  return candidates(text).map(({ word }) => word);
}

/** mentionsIn returns the resources that a text names, each once and at most 16. Those that no server has are not among them; if a server did not list its resources, each mention of it counts. */
export function mentionsIn(text: string, known: MCPResourcesResult): Mention[] {
  const all = candidates(text).flatMap((candidate) => mentionOf(candidate, known) ?? []);
  return all.filter(({ server, uri }, at) => all.findIndex((one) => one.server === server && one.uri === uri) === at).slice(0, mostMentions);
}

/** written returns how people write a resource: @server:uri, with quotes around a uri with spaces. */
export function written({ server, uri }: ResourceMention): string {
  return /[ \t]/.test(uri) ? `@"${server}:${uri}"` : `@${server}:${uri}`;
}

function candidates(text: string): Candidate[] {
  const found = text.matchAll(/(?<=^|[ \t\r\n([{<,;:'"`])@(?:"([\w.-]+):([^"\r\n]+)"|([\w.-]+):([^ \t\r\n"]+))/g);
  return [...found].map(([word, quotedServer, quotedUri, server = "", uri = ""]) => ({ word, server: quotedServer ?? server, uri: quotedUri ?? uri, quoted: quotedServer !== undefined }));
}

/** mentionOf returns the resource that a candidate names. Punctuation at its end belongs to it only in quotes, or if a server lists it. */
function mentionOf({ server, uri, word, quoted }: Candidate, known: MCPResourcesResult): Mention | undefined {
  if (known.data.some((one) => !one.template && one.server === server && one.uri === uri)) {
    return { server, uri, word };
  }
  if (!quoted && uri.length > 1 && closing.test(uri)) {
    return mentionOf({ server, uri: uri.slice(0, -1), word: word.slice(0, -1), quoted }, known);
  }
  const may = known.failed.some((one) => one.server === server) || known.data.some((one) => one.template && one.server === server && matches(one.uri, uri));
  return may ? { server, uri, word } : undefined;
}
