/** Schema is as much of JSON Schema as that of config.toml uses. */
export interface Schema {
  type?: string;
  description?: string;
  enum?: string[];
  properties?: Record<string, Schema>;
  items?: Schema;
}

/** Offer is something that may be written. */
export interface Offer {
  label: string;
  /** a snippet of VS Code, which takes the place of what stands there */
  insert: string;
  description: string;
}

const head = /^\s*\[\[?\s*([\w."'-]+)\s*\]\]?/;
const assignment = /^\s*([\w.-]+)\s*=/;

/** offers is what may be written at the end of a text in TOML; after is what follows on other lines. */
export function offers(schema: Schema, before: string, after: string): Offer[] {
  const lines = before.split("\n");
  const line = lines.pop() ?? "";
  const table = tableOf(lines);
  const value = /^\s*([\w.-]+)\s*=\s*["']?\w*$/.exec(line);
  if (value?.[1]) {
    return values(find(schema, [...table, ...value[1].split(".")]));
  }
  if (/^\s*\[+[\w.]*$/.test(line)) {
    return tables(schema);
  }
  if (!/^\s*[\w-]*$/.test(line)) {
    return [];
  }
  const there = new Set([...keysBelow(lines.slice(lines.findLastIndex((l) => head.test(l)) + 1)), ...keysBelow(after.split("\n"))]);
  const keys = Object.entries(find(schema, table)?.properties ?? {}).filter(([key, s]) => !there.has(key) && !isTable(s));
  return [...keys.map(([key, s]) => keyOffer(key, s)), ...tables(schema)];
}

/** describe is what is said of the key of a line, the last one of a text. */
export function describe(schema: Schema, text: string): string | undefined {
  const lines = text.split("\n");
  const line = lines.pop() ?? "";
  const key = assignment.exec(line)?.[1];
  return key === undefined ? find(schema, head.exec(line)?.[1]?.split(".") ?? [""])?.description : find(schema, [...tableOf(lines), ...key.split(".")])?.description;
}

/** The table that lines are in which come after these. */
function tableOf(lines: string[]): string[] {
  return head.exec(lines.findLast((line) => head.test(line)) ?? "")?.[1]?.split(".") ?? [];
}

/** The keys that are set before the next table begins. */
function keysBelow(lines: string[]): string[] {
  const end = lines.findIndex((line) => head.test(line));
  return lines.slice(0, end < 0 ? undefined : end).flatMap((line) => assignment.exec(line)?.[1] ?? []);
}

/** The schema of a key, or of each of several tables of that name. */
function find(schema: Schema, path: string[]): Schema | undefined {
  const found = path.reduce<Schema | undefined>((at, key) => (at?.items ?? at)?.properties?.[key], schema);
  return found?.items?.properties ? { ...found.items, description: found.description } : found;
}

const isTable = (s: Schema) => s.type === "object" || s.items?.type === "object";

function tables(schema: Schema): Offer[] {
  const all = Object.entries(schema.properties ?? {}).filter(([, s]) => isTable(s));
  return all.map(([key, s]) => {
    const named = s.properties || s.items ? key : `${key}.\${1:NAME}`;
    const [open, close] = s.items ? ["[[", "]]"] : ["[", "]"];
    return { label: `${open}${key}${close}`, insert: `${open}${named}${close}\n`, description: s.description ?? "" };
  });
}

function keyOffer(key: string, s: Schema): Offer {
  const value = s.enum ? `"\${1|${s.enum.join(",")}|}"` : ({ string: '"$1"', boolean: "${1|true,false|}", array: "[$1]" }[s.type ?? ""] ?? "$1");
  return { label: key, insert: `${key} = ${value}`, description: s.description ?? "" };
}

function values(s: Schema | undefined): Offer[] {
  const words = s?.type === "boolean" ? ["true", "false"] : (s?.enum?.map((word) => `"${word}"`) ?? []);
  return words.map((word) => ({ label: word, insert: word, description: s?.description ?? "" }));
}
