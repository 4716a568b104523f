import type { ProviderInfo as Provider } from "../protocol";

export type { Provider };

/** Group is a part of the list of providers. */
export interface Group {
  title: string;
  providers: Provider[];
}

/** groupsOf sorts providers into those that work, those that need a key, and those that do not run. It leaves out empty groups. */
export function groupsOf(all: Provider[], ready: ReadonlySet<string>): Group[] {
  const works = (p: Provider) => p.key !== undefined || ready.has(p.name) || (p.models ?? []).length > 0;
  const groups = [
    { title: "ready", providers: all.filter(works) },
    { title: "not set up yet", providers: all.filter((p) => !works(p) && (p.pasted || p.login || p.keyWanted)) },
    { title: "config.toml", providers: all.filter((p) => !works(p) && !p.pasted && !p.login && !p.local) },
    { title: "not running", providers: all.filter((p) => !works(p) && p.local && !p.keyWanted) },
  ];
  return groups.filter((group) => group.providers.length > 0);
}

/** stateOf says whether a provider works, and why. */
export function stateOf({ name, key, local, models, pasted, login, keyWanted, baseUrl = "" }: Provider, ready: ReadonlySet<string>): string {
  if (local && !models?.length && keyWanted) {
    return `answers at ${baseUrl}, but ${key === undefined ? "wants a key" : "rejects its key"}`;
  }
  if (local) {
    return models?.length ? `runs at ${baseUrl}` : `no answer at ${baseUrl}`;
  }
  if (key === "stored") {
    return login ? "logged in" : "key stored by lashd";
  }
  if (login) {
    return "log in with your subscription";
  }
  if (key !== undefined) {
    return { "config.toml": "key from config.toml", client: "key in the daemon" }[key] ?? `key from the variable ${key}`;
  }
  return ready.has(name) ? "key in the daemon" : pasted ? "needs a key" : "set its address and a key command in config.toml";
}

/** keyProblem says why a text cannot be a key, or returns "" if it can be one. */
export function keyProblem(text: string): string {
  return /\s/.test(text.trim()) ? "A key is one line without spaces." : "";
}

/** nameProblem says why a text cannot be the name of a new provider, or returns "" if it can be one. */
export function nameProblem(text: string, taken: string[]): string {
  if (!/^[A-Za-z0-9][A-Za-z0-9-]*$/.test(text)) {
    return "Use letters, digits and hyphens.";
  }
  return taken.includes(text) ? `${text} is the name of another provider.` : "";
}

/** nameFor proposes a name for a server at an address: that of its domain, or "local" for an address of a machine, with a number if it is taken. */
export function nameFor(address: string, taken: string[]): string {
  const labels = /^https?:\/\/([^/:[]*)/.exec(address)?.[1]?.toLowerCase().split(".") ?? [];
  const domain = /^\d+$/.test(labels.at(-1) ?? "") ? undefined : labels.at(-2);
  const names = ["", "-2", "-3", "-4"].map((end) => `${domain ?? "local"}${end}`);
  return names.find((name) => nameProblem(name, taken) === "") ?? "";
}

/** addressProblem says why a text cannot be an address, or returns "" if it can be one. */
export function addressProblem(text: string, form: string): string {
  if (/[A-Z]{4,}/.test(text)) {
    return "Replace the words in capital letters by the names of your own account.";
  }
  const typed = text.trim();
  return /^https?:\/\/[^\s/]+/.test(typed) ? "" : typed.includes("://") ? `Enter an address of the form ${form}` : `Begin the address with https:// or http://, as in ${form}`;
}
