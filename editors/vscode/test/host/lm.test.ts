import { strict as assert } from "node:assert";
import * as vscode from "vscode";
import { until } from "./until";

const tools = () => vscode.lm.tools.map((tool) => tool.name).filter((name) => name.startsWith("lashd_")).sort();
const turn = (on: boolean | undefined) => vscode.workspace.getConfiguration("lashd").update("vscodeChat", on, vscode.ConfigurationTarget.Global);
const call = async (name: string, input: object) => {
  const { content } = await vscode.lm.invokeTool(name, { input, toolInvocationToken: undefined });
  return content.map((part) => (part instanceof vscode.LanguageModelTextPart ? part.value : "")).join("");
};

describe("issue/6-1 language model tools in the extension host", () => {
  before(async () => {
    await vscode.extensions.getExtension("lash.lashd")?.activate();
  });
  after(() => turn(undefined));

  it("exist only if the setting is on", async () => {
    await assert.rejects(call("lashd_list_sessions", {}));
    await turn(true);
    await until("there are two", () => tools().length === 2);
    assert.deepEqual(tools(), ["lashd_list_sessions", "lashd_prompt_session"]);
  });

  it("prompt, continue and list a session", async () => {
    const said = await call("lashd_prompt_session", { prompt: "hi" });
    const [, id = ""] = /^Session (ses_\w+):\n\nHello!$/.exec(said) ?? assert.fail(said);
    assert.equal(await call("lashd_prompt_session", { prompt: "hi again", sessionId: id }), said);
    assert.match(await call("lashd_list_sessions", {}), new RegExp(`^${id} idle in .*/work: `, "m"));
  });

  it("cannot access sessions of other folders", async () => {
    await assert.rejects(call("lashd_prompt_session", { prompt: "hi", sessionId: "ses_of_nobody" }), /open folders have no session ses_of_nobody/);
  });

  it("stop the turn of a cancelled request", async () => {
    const stop = new vscode.CancellationTokenSource();
    const asked = Promise.resolve(vscode.lm.invokeTool("lashd_prompt_session", { input: { prompt: "tell a story" }, toolInvocationToken: undefined }, stop.token));
    setTimeout(() => stop.cancel(), 1500);
    await asked.catch(() => undefined);
    let sessions = await call("lashd_list_sessions", {});
    for (const end = Date.now() + 20_000; / running in /.test(sessions) && Date.now() < end; ) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      sessions = await call("lashd_list_sessions", {});
    }
    assert.doesNotMatch(sessions, / running in /);
  });
});
