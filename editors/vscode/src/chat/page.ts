import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import { pageBody } from "./pageBody";

/** page returns the HTML of a chat. It shows the title of the session unless its place does. Its content security policy allows only the extension's own script and style. */
export function page(webview: vscode.Webview, extensionUri: vscode.Uri, sessionId: string, titled: boolean): string {
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
<body data-session="${sessionId}"${titled ? "" : ' class="untitled"'}>
${pageBody}
<script nonce="${nonce}" src="${uri("webview.js")}"></script>
</body>
</html>`;
}
