import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import * as vscode from "vscode";
import type { Daemon } from "../daemon/daemon";
import type { LoginParties, MCPServerParams } from "../protocol";
import { askText } from "../providers/steps";

const page = "<!doctype html><title>lashd</title><p>lashd has received the login. You can close this page and go back to VS Code.";

/**
 * signIn logs the user in to an MCP server with the browser, and reports whether that succeeded. The browser reports to a port of this
 * machine. If it runs on another one, the user pastes the address of the page that it cannot load.
 */
export async function signIn(daemon: Daemon, params: MCPServerParams): Promise<boolean> {
  const receiver = await receive();
  try {
    const { loginId, url, redirect, parties } = await daemon.call("mcp/login", { ...params, redirect: receiver.address });
    if (!(await accepts(params.server, parties))) {
      await daemon.call("mcp/cancelLogin", { loginId });
      return false;
    }
    await vscode.env.openExternal(vscode.Uri.parse(url, true));
    const done = await askText({
      title: "Sign In",
      step: params.server,
      prompt: "Log in with the browser. If it then shows a page that it cannot load, paste the address of that page.",
      placeholder: `${redirect}?code=\u2026`,
      waiting: "Signing in\u2026",
      arrives: receiver.arrived,
      check: (text) => (text.trim().startsWith(redirect) ? "" : `The address begins with ${redirect}`),
      accept: (address, token) => daemon.call("mcp/finishLogin", { loginId, address }, token),
    });
    if (!done) {
      await daemon.call("mcp/cancelLogin", { loginId });
    }
    return done;
  } finally {
    receiver.close();
  }
}

/** accepts shows which servers take part in a login, and reports whether the user goes on to the browser. */
async function accepts(server: string, parties: LoginParties): Promise<boolean> {
  const lines = [`MCP server: ${parties.server}`, `Authorization server: ${parties.issuer}`, `Login page: ${parties.authorization}`, `Tokens from: ${parties.token}`];
  const detail = [...(parties.warning ? [parties.warning, ""] : []), ...lines].join("\n");
  const show = parties.warning ? vscode.window.showWarningMessage : vscode.window.showInformationMessage;
  return (await show(`Sign in to ${server}?`, { modal: true, detail }, "Open Browser")) === "Open Browser";
}

/** receive opens a port of this machine for the browser. arrived is the address that the browser opens there. */
async function receive(): Promise<{ address: string; arrived: Promise<string>; close: () => void }> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", resolve));
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback`;
  const arrived = new Promise<string>((resolve) => {
    server.on("request", (request, response) => {
      const at = new URL(request.url ?? "/", address);
      const isLogin = at.pathname === "/callback" && at.searchParams.has("state");
      response.writeHead(isLogin ? 200 : 404, { "content-type": "text/html; charset=utf-8", connection: "close" }).end(isLogin ? page : "");
      if (isLogin) {
        resolve(at.href);
      }
    });
  });
  return { address, arrived, close: () => void server.close() };
}
