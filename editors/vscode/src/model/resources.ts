import type { Suggestion } from "../chat/messages";
import type { ResourceInfo } from "../protocol";
import { written } from "./resourceMentions";
import { fixedStart, variableOf, withValue, type Variable } from "./resourceTemplates";

/** The number of resources that a list of suggestions shows. */
const most = { anyWord: 4, oneWord: 12 };

/** resourceSuggestions returns the resources and templates that a word after @ can stand for: by server and address, or by a part of the name. */
export function resourceSuggestions(word: string, listed: readonly ResourceInfo[]): Suggestion[] {
  const wanted = word.replace(/^"/, "").toLowerCase();
  const addressed = (one: ResourceInfo) => addressOf(one).toLowerCase().startsWith(wanted);
  const named = (one: ResourceInfo) => `${one.name} ${one.title ?? ""} ${one.uri}`.toLowerCase().includes(wanted);
  const found = [...listed.filter(addressed), ...listed.filter((one) => !addressed(one) && named(one))];
  return found.slice(0, wanted === "" ? most.anyWord : most.oneWord).map(suggestionOf);
}

function suggestionOf(one: ResourceInfo): Suggestion {
  const { server, uri, name, title, description, template } = one;
  const detail = [`@${server}:${uri}`, description].filter(Boolean).join(" \u00b7 ");
  const label = title || name || uri;
  return template ? { label, detail, icon: "symbol-parameter", insert: `@${addressOf(one)}`, open: true } : { label, detail, icon: "mcp", insert: written({ server, uri }) };
}

/** addressOf returns what a person writes after @ for a resource: of a template, the part before its first variable. */
function addressOf({ server, uri, template }: ResourceInfo): string {
  return `${server}:${template ? fixedStart(uri) : uri}`;
}

/** TemplateValue asks for values of a variable of a template. */
export interface TemplateValue {
  server: string;
  template: string;
  variable: Variable;
}

/** templateValuesAt returns what to ask for while a person types a word after @ that belongs to templates. */
export function templateValuesAt(word: string, listed: readonly ResourceInfo[]): TemplateValue[] {
  const at = word.indexOf(":");
  const [server, uri] = [word.slice(0, at), word.slice(at + 1)];
  return listed.flatMap((one) => {
    const variable = one.template && one.server === server ? variableOf(one.uri, uri) : undefined;
    return variable ? [{ server, template: one.uri, variable }] : [];
  });
}

/** valueSuggestions returns suggestions for the values of a variable. The user goes on typing if another variable follows. */
export function valueSuggestions({ server, template, variable }: TemplateValue, values: readonly string[]): Suggestion[] {
  const others = values.filter((value) => value !== variable.value);
  return others.map((value) => ({ label: value, detail: `${variable.name} of ${template}`, icon: "symbol-parameter", insert: `@${server}:${withValue(variable, value)}`, ...(!variable.last && { open: true }) }));
}
