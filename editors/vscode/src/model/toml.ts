/** Schema is the part of JSON Schema that the schema of config.toml uses. */
export interface Schema {
  type?: string;
  description?: string;
  enum?: string[];
  properties?: Record<string, Schema>;
  /** the schema of the members that have names of the user's choice */
  additionalProperties?: boolean | Schema;
  items?: Schema;
}

/** Suggestion is a completion. */
export interface Suggestion {
  label: string;
  /** VS Code snippet that replaces the current word */
  insert: string;
  description: string;
}

const head = /^\s*\[\[?\s*([\w."'-]+)\s*\]\]?/;
const assignment = /^\s*([\w.-]+)\s*=/;

/** suggestions returns the completions at the end of the TOML text before. after is the text on the following lines. */
export function suggestions(schema: Schema, before: string, after: string): Suggestion[] {
  const lines = before.split("\n");
  const line = lines.pop() ?? "";
  const table = tableOf(lines);
  const value = /^\s*([\w.-]+)\s*=\s*["']?\w*$/.exec(line);
  if (value?.[1]) {
    return values(schemaAt(schema, [...table, ...value[1].split(".")]));
  }
  if (/^\s*\[+[\w.]*$/.test(line)) {
    return tables(schema);
  }
  if (!/^\s*[\w-]*$/.test(line)) {
    return [];
  }
  const existing = new Set([...keysBelow(lines.slice(lines.findLastIndex((l) => head.test(l)) + 1)), ...keysBelow(after.split("\n"))]);
  const keys = Object.entries(schemaAt(schema, table)?.properties ?? {}).filter(([key, s]) => !existing.has(key) && (table.length > 0 || !isTable(s)));
  return [...keys.map(([key, s]) => keySuggestion(key, s)), ...tables(schema)];
}

/** describe returns the description of the key or table on the last line of a text. */
export function describe(schema: Schema, text: string): string | undefined {
  const lines = text.split("\n");
  const line = lines.pop() ?? "";
  const key = assignment.exec(line)?.[1];
  return key === undefined ? schemaAt(schema, head.exec(line)?.[1]?.split(".") ?? [""])?.description : schemaAt(schema, [...tableOf(lines), ...key.split(".")])?.description;
}

/** tableOf returns the path of the table that is open after the lines. */
function tableOf(lines: string[]): string[] {
  return head.exec(lines.findLast((line) => head.test(line)) ?? "")?.[1]?.split(".") ?? [];
}

/** keysBelow returns the keys that the lines set before the next table. */
function keysBelow(lines: string[]): string[] {
  const end = lines.findIndex((line) => head.test(line));
  return lines.slice(0, end < 0 ? undefined : end).flatMap((line) => assignment.exec(line)?.[1] ?? []);
}

/** schemaAt returns the schema of a path. For an array of tables it returns the schema of one table. */
function schemaAt(schema: Schema, path: string[]): Schema | undefined {
  const found = path.reduce<Schema | undefined>((at, key) => memberOf(at?.items ?? at, key), schema);
  return found?.items?.properties ? { ...found.items, description: found.description } : found;
}

/** memberOf returns the schema of a member of a table. */
function memberOf(table: Schema | undefined, key: string): Schema | undefined {
  const named = table?.additionalProperties;
  return table?.properties?.[key] ?? (typeof named === "object" ? named : undefined);
}

const isTable = (s: Schema) => s.type === "object" || s.items?.type === "object";

function tables(schema: Schema): Suggestion[] {
  const all = Object.entries(schema.properties ?? {}).filter(([, s]) => isTable(s));
  return all.map(([key, s]) => {
    const named = !s.properties && !s.items;
    const [open, close] = s.items ? ["[[", "]]"] : ["[", "]"];
    const written = (name: string) => `${open}${key}${named ? `.${name}` : ""}${close}`;
    return { label: written("NAME"), insert: `${written("${1:NAME}")}\n`, description: s.description ?? "" };
  });
}

function keySuggestion(key: string, s: Schema): Suggestion {
  const value = s.enum ? `"\${1|${s.enum.join(",")}|}"` : ({ string: '"$1"', boolean: "${1|true,false|}", array: "[$1]", object: "{ $1 }" }[s.type ?? ""] ?? "$1");
  return { label: key, insert: `${key} = ${value}`, description: s.description ?? "" };
}

function values(s: Schema | undefined): Suggestion[] {
  const words = s?.type === "boolean" ? ["true", "false"] : (s?.enum?.map((word) => `"${word}"`) ?? []);
  return words.map((word) => ({ label: word, insert: word, description: s?.description ?? "" }));
}
