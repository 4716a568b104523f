import * as vscode from "vscode";
import type { Daemon } from "./daemon/daemon";
import { driverEntries } from "./model/drivers";

/** The value of the setting lashd.driver that asks for each new session. */
const asks = "ask";

/** driverSetting returns the driver that the setting lashd.driver names; undefined if it leaves the choice to the daemon or the user. */
export function driverSetting(): string | undefined {
  const name = setting();
  return name === asks ? undefined : name;
}

/**
 * driverOfNew returns the params of session/new that choose a driver: the one of the setting lashd.driver or, if that or ask says so, the one
 * that the user chooses. It returns undefined if the user cancels.
 */
export async function driverOfNew(daemon: Daemon, ask: boolean): Promise<{ driver?: string } | undefined> {
  if (!ask && setting() !== asks) {
    return { driver: driverSetting() };
  }
  const items = daemon.call("server/status", {}).then(({ drivers }) =>
    driverEntries(drivers).map(({ name, title, description, about }) => ({ label: title, description, detail: about, name })));
  const picked = await vscode.window.showQuickPick(items, { placeHolder: "How the session works with its model. A session keeps this choice.", matchOnDescription: true });
  return picked && { driver: picked.name };
}

const setting = () => vscode.workspace.getConfiguration("lashd").get<string>("driver") || undefined;
