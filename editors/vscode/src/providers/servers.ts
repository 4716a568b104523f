import * as vscode from "vscode";
import { nameFor, nameProblem, type Provider } from "../model/providers";
import type { Call } from "./login";
import { askAddress, askKey, askText, title } from "./steps";

/** Added is a server that now works. */
export interface Added {
  provider: Provider;
  /** the daemon uses it after its restart */
  restart: boolean;
}

/** addServer asks for the address, a name and the key of a server that lashd does not know. It returns undefined if the user cancels. */
export async function addServer(call: Call, taken: string[]): Promise<Added | undefined> {
  const another = { name: "", title: "another server" };
  const address = await askAddress(another, { prompt: "Its API is that of OpenAI (Chat Completions). The address usually ends in /v1.", at: 1 });
  const name = address === undefined ? undefined : await askName(address, taken);
  return address === undefined || name === undefined ? undefined : addKey({ name, title: name, pasted: true }, address, call, 3);
}

async function askName(address: string, taken: string[]): Promise<string | undefined> {
  let name: string | undefined;
  await askText({
    step: "another server, name",
    at: 2,
    prompt: "Choose a name. The models of the server are then named NAME/MODEL.",
    placeholder: "For example: work",
    value: nameFor(address, taken),
    waiting: "",
    check: (text) => nameProblem(text.trim(), taken),
    accept: (text) => Promise.resolve(void (name = text)),
  });
  return name;
}

/** addKey asks for the key of a server at an address, which can need none. at is the number of the step. */
async function addKey(provider: Provider, address: string, call: Call, at?: number): Promise<Added | undefined> {
  const { name } = provider;
  let restart = false;
  const stored = await askKey(provider, async (key, untested, token) => {
    if (key !== "") {
      return call("provider/setKey", { name, key, untested, baseUrl: address }, token);
    }
    const result = await call("provider/setAddress", { name, baseUrl: address }, token);
    if (result.keyWanted) {
      throw new Error("This server wants a key.");
    }
    restart = result.restart ?? false;
    return { restart };
  }, { optional: true, at });
  return stored && { provider: { ...provider, baseUrl: address }, restart: stored.restart ?? restart };
}

/** moveServer asks for the address of a server on this machine, and for its key if the server wants one. It returns undefined if the user cancels. */
export async function moveServer(provider: Provider, call: Call): Promise<Added | undefined> {
  const { name, title: shown, baseUrl = "" } = provider;
  let keyWanted = false;
  let restart = false;
  let address = baseUrl;
  const done = await askText({
    step: `${shown}, address`,
    prompt: `No ${shown} answers at ${baseUrl}. Start it and press Enter, or enter its address.`,
    placeholder: "http://localhost:8000/v1",
    waiting: "Asking the server for its models\u2026",
    value: baseUrl,
    check: () => "",
    accept: async (text, token) => {
      ({ keyWanted = false, restart = false } = await call("provider/setAddress", { name, baseUrl: text }, token));
      address = text;
    },
  });
  if (!done) {
    return undefined;
  }
  return keyWanted ? addKey(provider, address, call) : { provider: { ...provider, baseUrl: address }, restart };
}

/** chooseModel lets the user choose one of the models that the server of a provider lists, and returns its id. Without a list, for example because the server does not answer, the user enters it. */
export async function chooseModel(provider: Provider, ids: string[]): Promise<string | undefined> {
  const step = `${title}: ${provider.title}`;
  if (ids.length > 0) {
    return vscode.window.showQuickPick(ids, { title: step, placeHolder: "Model for new sessions", ignoreFocusOut: true });
  }
  let id: string | undefined;
  await askText({
    step: `${provider.title}, model`,
    prompt: "The server lists no models now. Enter the id of one, as its documentation names it.",
    placeholder: "For example: llama-3.3-70b",
    waiting: "",
    check: () => "",
    accept: (text) => Promise.resolve(void (id = text)),
  });
  return id;
}
