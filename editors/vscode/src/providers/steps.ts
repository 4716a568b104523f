import * as vscode from "vscode";
import { addressProblem, groupsOf, keyProblem, stateOf, type Provider } from "../model/providers";

export const title = "Set Up a Provider";

/** Choice is what the user chose in the list of providers. */
export type Choice = { provider: Provider; remove?: boolean } | { other: true };

type Entry = vscode.QuickPickItem & { provider?: Provider; other?: boolean };

const trash: vscode.QuickInputButton = { iconPath: new vscode.ThemeIcon("trash"), tooltip: "Remove the stored key" };
const page: vscode.QuickInputButton = { iconPath: new vscode.ThemeIcon("link-external"), tooltip: "Get a key in the browser" };

/** chooseProvider shows the list of providers. It returns undefined if the user cancels. */
export function chooseProvider(all: Provider[], ready: ReadonlySet<string>): Promise<Choice | undefined> {
  const pick = vscode.window.createQuickPick<Entry>();
  pick.title = title;
  pick.placeholder = "Choose a provider of models";
  pick.matchOnDescription = true;
  pick.items = entriesOf(all, ready);
  return new Promise((resolve) => {
    pick.onDidTriggerItemButton(({ item, button }) => {
      if (button === page) {
        void vscode.env.openExternal(vscode.Uri.parse(item.provider?.keysAt ?? ""));
      } else if (item.provider) {
        resolve({ provider: item.provider, remove: true });
        pick.hide();
      }
    });
    pick.onDidAccept(() => {
      const [item] = pick.activeItems;
      resolve(item?.provider ? { provider: item.provider } : item?.other ? { other: true } : undefined);
      pick.hide();
    });
    pick.onDidHide(() => {
      resolve(undefined);
      pick.dispose();
    });
    pick.show();
  });
}

function entriesOf(all: Provider[], ready: ReadonlySet<string>): Entry[] {
  const entries: Entry[] = groupsOf(all, ready).flatMap((group) => [
    { label: group.title, kind: vscode.QuickPickItemKind.Separator },
    ...group.providers.map((provider) => entryOf(provider, ready)),
  ]);
  const other = { label: "$(edit) Another server\u2026", description: "add it to config.toml", other: true };
  return [...entries, { label: "", kind: vscode.QuickPickItemKind.Separator }, other];
}

function entryOf(provider: Provider, ready: ReadonlySet<string>): Entry {
  const works = provider.key !== undefined || ready.has(provider.name) || (provider.models ?? []).length > 0;
  const icon = works ? "check" : provider.local ? "vm-outline" : provider.pasted ? "key" : provider.login ? "account" : "edit";
  const buttons = [...(provider.keysAt ? [page] : []), ...(provider.stored ? [trash] : [])];
  return { label: `$(${icon}) ${provider.title}`, description: stateOf(provider, ready), buttons, provider };
}

/** Field is a step of the form in which the user enters a text. */
interface Field {
  step: string;
  prompt: string;
  placeholder: string;
  value?: string;
  password?: boolean;
  buttons?: vscode.QuickInputButton[];
  onButton?: () => void;
  /** says why the value is wrong; "" if it is right */
  check: (value: string) => string;
  /** uses the value. Its error is shown below the field, and the user can correct the value. */
  accept: (value: string) => Promise<void>;
}

/** ask shows a field until its value is accepted. It reports whether that happened. */
function ask({ step, prompt, placeholder, value = "", password = false, buttons = [], onButton, check, accept }: Field): Promise<boolean> {
  const box = Object.assign(vscode.window.createInputBox(), { title: `${title}: ${step}`, prompt, placeholder, value, password, buttons, ignoreFocusOut: true });
  return new Promise((resolve) => {
    box.onDidTriggerButton(() => onButton?.());
    box.onDidChangeValue((text) => (box.validationMessage = text === "" ? "" : check(text)));
    box.onDidAccept(() => void submit(box, check, accept).then((done) => done && (resolve(true), box.hide())));
    box.onDidHide(() => {
      resolve(false);
      box.dispose();
    });
    box.show();
  });
}

async function submit(box: vscode.InputBox, check: Field["check"], accept: Field["accept"]): Promise<boolean> {
  const value = box.value.trim();
  box.validationMessage = value === "" ? "Enter a value." : check(value);
  if (box.validationMessage !== "" || box.busy) {
    return false;
  }
  const { prompt } = box;
  Object.assign(box, { busy: true, enabled: false, prompt: "Testing with one call\u2026" });
  try {
    await accept(value);
    return true;
  } catch (error) {
    Object.assign(box, { validationMessage: error instanceof Error ? error.message : String(error) });
    return false;
  } finally {
    Object.assign(box, { busy: false, enabled: true, prompt });
  }
}

/** askAddress asks for the address of a provider, and returns undefined if the user cancels. */
export async function askAddress({ title: name, baseUrl, baseUrlForm = "https://HOST/v1" }: Provider): Promise<string | undefined> {
  let address: string | undefined;
  await ask({
    step: `${name}, address`,
    prompt: "lashd writes the address into config.toml.",
    placeholder: baseUrlForm,
    value: baseUrl,
    check: (text) => addressProblem(text, baseUrlForm),
    accept: (text) => Promise.resolve(void (address = text)),
  });
  return address;
}

/** askKey asks for a key, masked, until accept stores one. It reports whether that happened. */
export function askKey({ title: name, keysAt }: Provider, accept: (key: string) => Promise<void>): Promise<boolean> {
  return ask({
    step: `${name}, API key`,
    prompt: "lashd tests the key with one call, then stores it in the system's keyring or in a file that only you can read.",
    placeholder: "Paste your API key",
    password: true,
    buttons: keysAt ? [page] : [],
    onButton: () => void vscode.env.openExternal(vscode.Uri.parse(keysAt ?? "")),
    check: keyProblem,
    accept,
  });
}
