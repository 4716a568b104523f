import * as vscode from "vscode";
import type { Method, Params, Result } from "../daemon/link";
import type { Provider } from "../model/providers";
import { askText } from "./steps";
import { toastText } from "../model/toast";

/** Call sends a request to the daemon of the user. */
export type Call = <M extends Method>(method: M, params: Params<M>, token?: vscode.CancellationToken) => Promise<Result<M>>;

/** logIn logs the user in to a provider with the browser or with a code. It reports whether the login was stored. */
export async function logIn({ name, title }: Provider, call: Call): Promise<boolean> {
  const ways = [
    { label: "$(globe) Log in with the browser", detail: "You copy the address of the page that follows the login.", device: false },
    { label: "$(device-mobile) Log in with a code", detail: "You enter a code on any device. The security settings of your account must allow that.", device: true },
  ];
  const way = await vscode.window.showQuickPick(ways, { title: `Log in to ${title}` });
  if (!way) {
    return false;
  }
  const { loginId, url, redirect = "", code = "" } = await call("provider/beginLogin", { name, device: way.device });
  if (way.device) {
    return enterCode(title, url, code, (token) => call("provider/finishLogin", { loginId }, token));
  }
  await vscode.env.openExternal(vscode.Uri.parse(url, true));
  return askText({
    step: `${title}, address after the login`,
    prompt: `After the login, the browser opens a page at ${redirect} that it cannot load. Copy the address of that page.`,
    placeholder: `${redirect}?code=\u2026`,
    waiting: "Logging in\u2026",
    check: (text) => (text.trim().startsWith(redirect) ? "" : `The address begins with ${redirect}`),
    accept: (address, token) => call("provider/finishLogin", { loginId, address }, token),
  });
}

/** enterCode shows a code, and waits until the user has entered it on a page. Cancel ends the login. */
async function enterCode(title: string, url: string, code: string, finish: (token: vscode.CancellationToken) => Promise<unknown>): Promise<boolean> {
  await vscode.env.clipboard.writeText(code);
  const open = "Open the Page";
  const detail = "The code is in the clipboard. Enter it only if you started this login yourself.";
  if ((await vscode.window.showInformationMessage(`Enter the code ${code} at ${url}`, { modal: true, detail }, open)) !== open) {
    return false;
  }
  await vscode.env.openExternal(vscode.Uri.parse(url, true));
  const waiting = { location: vscode.ProgressLocation.Notification, title: toastText(`Waiting until you have entered ${code} to log in to ${title}`), cancellable: true };
  return vscode.window.withProgress(waiting, async (_, token) => {
    await finish(token);
    return true;
  });
}
