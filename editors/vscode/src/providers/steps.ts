import * as vscode from "vscode";
import { kindOf, messageOf } from "../daemon/daemon";
import { addressProblem, groupsOf, keyProblem, stateOf, type Provider } from "../model/providers";
import type { StoredKey } from "../protocol";

export const title = "Set Up a Provider";

/** Choice is what the user chose in the list of providers. */
export type Choice = { provider: Provider; remove?: boolean } | { other: true };

type Entry = vscode.QuickPickItem & { provider?: Provider; other?: boolean };

const trash: vscode.QuickInputButton = { iconPath: new vscode.ThemeIcon("trash"), tooltip: "Remove the stored key" };
const untested: vscode.QuickInputButton = { iconPath: new vscode.ThemeIcon("save"), tooltip: "Store the key without a test" };
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

/** chooseStored lets the user choose one of the providers whose key is stored. */
export async function chooseStored(stored: Provider[]): Promise<Provider | undefined> {
  const items = stored.map((provider) => ({ label: provider.title, description: provider.name, provider }));
  return (await vscode.window.showQuickPick(items, { title: "Remove API Key", placeHolder: "Provider whose key lashd deletes" }))?.provider;
}

function entriesOf(all: Provider[], ready: ReadonlySet<string>): Entry[] {
  const entries: Entry[] = groupsOf(all, ready).flatMap((group) => [
    { label: group.title, kind: vscode.QuickPickItemKind.Separator },
    ...group.providers.map((provider) => entryOf(provider, ready)),
  ]);
  const other = { label: "$(add) Another server\u2026", description: "OpenAI-compatible, such as a gateway of your company or a local server", other: true };
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
  /** what the form does; default the set-up of a provider */
  title?: string;
  step: string;
  /** number of the step among those that add a server; absent: it is a form of its own */
  at?: number;
  prompt: string;
  placeholder: string;
  /** in place of the prompt while accept runs */
  waiting: string;
  value?: string;
  password?: boolean;
  /** an empty value is a value, too */
  optional?: boolean;
  buttons?: vscode.QuickInputButton[];
  /** a value that comes from elsewhere, such as from a browser; it is accepted as if the user had entered it */
  arrives?: Promise<string>;
  /** returns whether to accept the value now */
  onButton?: (button: vscode.QuickInputButton) => boolean;
  /** returns more buttons after an error of accept */
  onError?: (error: unknown) => vscode.QuickInputButton[];
  /** says why the value is wrong; "" if it is right */
  check: (value: string) => string;
  /** uses the value. Its error is shown below the field, and the user can correct the value. The token is cancelled if the user leaves. */
  accept: (value: string, token: vscode.CancellationToken) => Promise<unknown>;
}

/** The number of steps that add a server: its address, its name and its key. */
const stepsOfServer = 3;

/** askText shows a field until its value is accepted. It reports whether that happened. */
export function askText(field: Field): Promise<boolean> {
  const { title: form = title, step, at, prompt, placeholder, value = "", password = false, buttons = [], arrives, onButton, check } = field;
  const box = Object.assign(vscode.window.createInputBox(), { title: `${form}: ${step}`, prompt, placeholder, value, password, buttons, ignoreFocusOut: true, step: at, totalSteps: at && stepsOfServer });
  const leaving = new vscode.CancellationTokenSource();
  return new Promise((resolve) => {
    const send = (_: unknown) => void submit(box, field, leaving.token).then((done) => done && (resolve(true), box.hide()));
    box.onDidTriggerButton((button) => void (onButton?.(button) && send(button)));
    box.onDidChangeValue((text) => (box.validationMessage = text === "" ? "" : check(text)));
    box.onDidAccept(send);
    void arrives?.then((text) => send(Object.assign(box, { value: text })));
    box.onDidHide(() => {
      resolve(false);
      leaving.cancel();
      box.dispose();
    });
    box.show();
  });
}

async function submit(box: vscode.InputBox, { prompt, waiting, optional = false, buttons = [], onError, check, accept }: Field, token: vscode.CancellationToken): Promise<boolean> {
  const value = box.value.trim();
  box.validationMessage = value === "" ? (optional ? "" : "Enter a value.") : check(value);
  if (box.validationMessage !== "" || box.busy) {
    return false;
  }
  Object.assign(box, { busy: true, enabled: false, prompt: waiting });
  try {
    await accept(value, token);
    return true;
  } catch (error) {
    Object.assign(box, { validationMessage: messageOf(error), buttons: [...buttons, ...(onError?.(error) ?? [])] });
    return false;
  } finally {
    Object.assign(box, { busy: false, enabled: true, prompt });
  }
}

/** askAddress asks for the address of a provider, and returns undefined if the user cancels. */
export async function askAddress({ title: name, baseUrl, baseUrlForm = "https://HOST/v1" }: Provider, { prompt = "lashd writes the address into config.toml.", at = undefined as number | undefined } = {}): Promise<string | undefined> {
  let address: string | undefined;
  await askText({
    step: `${name}, address`,
    at,
    prompt,
    placeholder: baseUrlForm,
    waiting: "",
    value: baseUrl,
    check: (text) => addressProblem(text, baseUrlForm),
    accept: (text) => Promise.resolve(void (address = text)),
  });
  return address;
}

/** StoreKey stores a key and returns where it is. */
type StoreKey = (key: string, untested: boolean, token: vscode.CancellationToken) => Promise<StoredKey>;

/** askKey asks for a key, masked, until store accepts one. If the test of a key gets no answer, the user can store the key without a test. It returns undefined if the user cancels. */
export async function askKey({ title: name, keysAt }: Provider, store: StoreKey, { optional = false, at = undefined as number | undefined } = {}): Promise<StoredKey | undefined> {
  let stored: StoredKey | undefined;
  let test = true;
  await askText({
    step: `${name}, API key`,
    at,
    prompt: `${optional ? "Leave it empty if the server needs no key. " : ""}lashd tests the key with one call, then stores it in the system's keyring or in a file that only you can read.`,
    placeholder: "Paste your API key",
    waiting: "Testing with one call\u2026 Escape cancels it and stores nothing.",
    password: true,
    optional,
    buttons: keysAt ? [page] : [],
    onButton: (button) => {
      if (button === page) {
        void vscode.env.openExternal(vscode.Uri.parse(keysAt ?? ""));
        return false;
      }
      test = false;
      return true;
    },
    onError: (error) => (kindOf(error) === "providerUnreachable" ? [untested] : []),
    check: keyProblem,
    accept: async (key, token) => (stored = await store(key, !test, token)),
  });
  return stored;
}
