import type { ModelInfo, ModelSpec, Price, ReasoningSpec } from "../protocol";
import { tokensText } from "./context";

/** ModelEntry is a model in a list. */
export interface ModelEntry {
  /** for session/configure */
  name: string;
  title: string;
  description: string;
  current: boolean;
}

/** modelEntries groups models by provider, in the order of the daemon. */
export function modelEntries(models: readonly ModelInfo[], now: ModelSpec): { provider: string; models: ModelEntry[] }[] {
  const groups = new Map<string, ModelEntry[]>();
  for (const info of models) {
    const current = info.model.id === now.id && info.model.provider === now.provider;
    const group = groups.get(info.model.provider) ?? [];
    groups.set(info.model.provider, [...group, { name: info.name, title: info.title ?? info.name, description: describeModel(info), current }]);
  }
  return [...groups].map(([provider, entries]) => ({ provider, models: entries }));
}

/** describeModel describes a model: its name unless that is its title, its context window, its price, and whether it is the default. */
export function describeModel({ name, title, model, price, default: first }: ModelInfo): string {
  const facts = [
    (title ?? name) === name ? "" : name,
    model.id === name || name.endsWith(`/${model.id}`) ? "" : model.id,
    model.contextWindow ? `${tokensText(model.contextWindow)} tokens` : "",
    price ? priceText(price) : "",
    first ? "default" : "",
  ];
  return facts.filter(Boolean).join(" \u00b7 ");
}

/** priceText returns the prices of a million tokens. */
export function priceText({ input, output }: Price): string {
  return `$${input} in, $${output} out per million`;
}

/** effortText returns the reasoning effort of a model for people; empty if it cannot be set. */
export function effortText({ reasoning, effort }: ModelSpec): string {
  return reasoning ? effort || defaultEffort(reasoning) : "";
}

/** defaultEffort names the effort that a model has if none is set. */
export function defaultEffort({ default: usual }: ReasoningSpec): string {
  return usual ? `default (${usual})` : "default";
}

/** defaultEntries returns a choice of the default model among those of a provider, after the default of another provider. */
export function defaultEntries(models: ModelInfo[], provider: string): { label: string; description: string; name?: string }[] {
  const label = ({ title, name }: ModelInfo) => title ?? name;
  const now = models.find((m) => m.default && m.model.provider !== provider);
  const keep = now ? [{ label: `Keep ${label(now)}`, description: "default now" }] : [];
  return [...keep, ...models.filter((m) => m.model.provider === provider).map((m) => ({ label: label(m), description: m.name, name: m.name }))];
}
