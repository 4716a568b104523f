import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import { newChatBody, pageBody } from "./pageBody";

/** page returns the HTML of a chat. It shows the title of the session unless its place does. */
export function page(webview: vscode.Webview, extensionUri: vscode.Uri, sessionId: string, titled: boolean): string {
  return html(webview, extensionUri, "webview.js", `<body data-session="${sessionId}"${titled ? "" : ' class="untitled"'}>\n${pageBody}`);
}

/** newChatPage returns the HTML of an input that starts a session. */
export function newChatPage(webview: vscode.Webview, extensionUri: vscode.Uri): string {
  const sendOnEnter = vscode.workspace.getConfiguration("lashd.chat").get("sendOnEnter", true);
  return html(webview, extensionUri, "newChat.js", `<body>\n${newChatBody(sendOnEnter)}`);
}

/** html returns the HTML of a page. Its content security policy allows only the extension's own script and style. */
function html(webview: vscode.Webview, extensionUri: vscode.Uri, script: string, body: string): string {
  const nonce = randomBytes(16).toString("base64");
  const uri = (name: string) => webview.asWebviewUri(vscode.Uri.joinPath(extensionUri, "dist", name)).toString();
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src ${webview.cspSource}; img-src data:; font-src ${webview.cspSource}; script-src 'nonce-${nonce}';">
<link rel="stylesheet" href="${uri("webview.css")}">
<title>lashd</title>
</head>
${body}
<script nonce="${nonce}" src="${uri(script)}"></script>
</body>
</html>`;
}
