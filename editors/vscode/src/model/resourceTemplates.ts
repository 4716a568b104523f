/** matches reports whether a uri has the fixed parts of a template in their order. Each expression in braces stands for any text. */
export function matches(template: string, uri: string): boolean {
  const { fixed } = split(template);
  const first = fixed[0] ?? "";
  if (fixed.length === 1 || !uri.startsWith(first)) {
    return uri === first;
  }
  let rest = uri.slice(first.length);
  for (const part of fixed.slice(1, -1)) {
    const at = rest.indexOf(part);
    if (at < 0) {
      return false;
    }
    rest = rest.slice(at + part.length);
  }
  return rest.endsWith(fixed.at(-1) ?? "");
}

/** fixedStart returns the part of a template before its first variable. */
export function fixedStart(template: string): string {
  return split(template).fixed[0] ?? "";
}

/** split returns the fixed parts of a template, and the expressions between them without braces. */
function split(template: string): { fixed: string[]; expressions: string[] } {
  const parts = template.split(/\{([^}]*)\}/);
  return { fixed: parts.filter((_, at) => at % 2 === 0), expressions: parts.filter((_, at) => at % 2 === 1) };
}

/** Variable is the variable of a template whose value a person is writing. */
export interface Variable {
  name: string;
  value: string;
  /** the values of the variables before it */
  others: Record<string, string>;
  /** the uri before the value, and the fixed text after the value */
  before: string;
  after: string;
  /** the value can have reserved characters, such as slashes */
  reserved: boolean;
  /** no other variable follows */
  last: boolean;
}

/**
 * variableOf returns the variable at the end of the beginning of a uri; undefined if the uri does not begin as the template does, if it is
 * complete, or if the template has other expressions there than {name} and {+name}.
 */
export function variableOf(template: string, begun: string): Variable | undefined {
  const { fixed, expressions } = split(template);
  let before = fixed[0] ?? "";
  let others: Record<string, string> = {};
  for (const [at, expression] of expressions.entries()) {
    const [, plus, name] = /^(\+?)([^+#./;?&,:*=!@|]+)$/.exec(expression) ?? [];
    if (name === undefined || !begun.startsWith(before)) {
      return undefined;
    }
    const after = fixed[at + 1] ?? "";
    const rest = begun.slice(before.length);
    const end = after === "" ? -1 : rest.indexOf(after);
    if (end < 0) {
      return { name, value: unescaped(rest), others, before, after, reserved: plus === "+", last: at === expressions.length - 1 };
    }
    others = { ...others, [name]: unescaped(rest.slice(0, end)) };
    before += rest.slice(0, end) + after;
  }
  return undefined;
}

/** withValue returns the uri up to the next variable, with a value of the variable. */
export function withValue({ before, after, reserved }: Variable, value: string): string {
  return `${before}${reserved ? encodeURI(value) : encodeURIComponent(value)}${after}`;
}

/** unescaped returns the value of a variable in a uri. */
function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
