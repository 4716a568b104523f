/** The length of the text around a selection that a model gets, in characters on each side. */
const maxAround = 8000;

/** Edit is a part of a document with what is around it. */
export interface Edit {
  path: string;
  language: string;
  before: string;
  selected: string;
  after: string;
  /** what the user wants */
  wish: string;
}

/** editPrompt asks a model for a replacement of the selected text. */
export function editPrompt({ path, language, before, selected, after, wish }: Edit): string {
  return [
    `You edit a part of the file ${path} (${language}). Reply with the text that replaces the part between <selection> and </selection>, and nothing else: no explanation, no code fence.`,
    "Keep the indentation and everything that the request does not concern.",
    `Request: ${wish}`,
    `${before.slice(-maxAround)}<selection>${selected}</selection>${after.slice(0, maxAround)}`,
  ].join("\n\n");
}

/** replacementOf returns the replacement in a reply. It ends with a line break exactly if the selected text does. */
export function replacementOf(reply: string, selected: string): string {
  const fenced = /^\s*```[^\n]*\n([^]*?)\n?```\s*$/.exec(reply);
  const text = (fenced?.[1] ?? reply).replace(/^<selection>|<\/selection>\s*$/g, "");
  const end = selected.endsWith("\n") ? "\n" : "";
  return text.replace(/\n+$/, "") + end;
}
