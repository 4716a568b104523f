import { strict as assert } from "node:assert";
import { configInMode, allowReadOnlyTools, modeOf, modes, sandboxText } from "../../src/model/modes";
import type { ApprovalRule, Config } from "../../src/protocol";
import { session } from "./turn";

const config = (more: Partial<Config>): Config => ({ ...session.config, ...more });

const looking = ["editor_open_files", "editor_diagnostics", "editor_reveal"];

describe("issue/6-1 modes of a session", () => {
  const ruled = (action: string) => ["write", "edit", "patch"].map((tool) => ({ tool, action }));

  it("follow from its settings", () => {
    const names = [
      {}, { approval: { mode: "ask" } }, { approval: { mode: "allow" } }, { approval: { mode: "deny" } }, { options: { plan: { mode: "plan" } } },
      { approval: { rules: ruled("allow") } },
      { approval: { rules: [...ruled("allow").slice(1), { tool: "write", action: "allow", path: "src" }] } },
    ].map((more) => modeOf(config(more as Partial<Config>)).name);
    assert.deepEqual(names, ["Ask before edits", "Ask before every call", "Do not ask", "Deny", "Plan", "Edit without asking", "Ask before edits"]);
  });

  it("part15/23 say what lashd asks about: without rules, the sandbox workspace allows edits and the others do not", () => {
    const named = (approval: object) => modeOf(config({ approval })).name;
    assert.deepEqual(["workspace", "readOnly", "fullAccess"].map((sandbox) => named({ sandbox })), ["Edit without asking", "Ask before edits", "Ask before edits"]);
    assert.equal(named({ sandbox: "workspace", rules: ruled("ask") }), "Ask before edits");
    assert.equal(named({ sandbox: "workspace", rules: [...ruled("ask"), ...ruled("allow")] }), "Ask before edits", "the strictest rule decides");
    assert.equal(named({ sandbox: "readOnly", rules: ruled("allow") }), "Edit without asking");
  });

  it("part15/31 ask before edits in the sandbox workspace by rules, and take them back", () => {
    const own = config({ approval: { sandbox: "workspace" } });
    const asks = configInMode(own, modes[3]!);
    const edits = (rules: ApprovalRule[] = []) => rules.filter(({ tool }) => !looking.includes(tool ?? "")).map(({ tool, action }) => `${action} ${tool}`);
    assert.deepEqual(edits(asks.approval.rules), ["ask edit", "ask patch", "ask write"]);
    assert.equal(asks.approval.sandbox, "workspace");
    assert.deepEqual(edits(configInMode(config(asks), modes[4]!).approval.rules), ["allow edit", "allow patch", "allow write"]);
    assert.deepEqual(edits(configInMode(config(asks), modes[0]!).approval.rules), []);
  });

  it("part13/1 ask before edits and commands, and take that back", () => {
    const own = config({ approval: { sandbox: "workspace", rules: [{ tool: "shell", command: "ls", action: "ask" }] } });
    assert.equal(modeOf(own).name, "Edit without asking");
    const asks = configInMode(own, modes[2]!);
    assert.deepEqual(asks.approval.rules?.filter(({ action }) => action === "ask").map(({ tool, command = "" }) => `${tool} ${command}`), ["shell ls", "edit ", "patch ", "write ", "shell "]);
    assert.equal(modeOf(config(asks)).name, "Ask before edits and commands");
    assert.deepEqual(configInMode(config(asks), modes[3]!).approval.rules?.filter(({ tool }) => tool === "shell"), [{ tool: "shell", command: "ls", action: "ask" }]);
  });

  it("part15/23 describe commands by the sandbox", () => {
    for (const mode of modes) {
      const texts = (["readOnly", "workspace", "fullAccess"] as const).map((sandbox) => mode.about(sandbox));
      assert.deepEqual(texts.filter((text) => text.length > 82), [], "the list of modes cuts longer texts");
    }
    assert.equal(modes[3]!.about("workspace"), "Asks before edits. Does not ask before commands, which can change this folder.");
    assert.equal(modes[3]!.about("readOnly"), "Asks before edits. Does not ask before commands, which change nothing.");
    assert.equal(modes[4]!.about("fullAccess"), "Edits this folder. Asks before commands.");
    assert.deepEqual([{ mode: "ask", sandbox: "workspace" }, { sandbox: "readOnly" }, { sandbox: "fullAccess" }, {}].map((approval) => sandboxText(config({ approval } as Partial<Config>))), ["Sandbox: workspace", "Sandbox: read only", "No sandbox", "No sandbox"]);
  });

  it("keep all other settings", () => {
    const own = config({ approval: { mode: "deny", deadlineMs: 5, rules: [{ tool: "shell", command: "ls", action: "allow" }] }, options: { plan: { mode: "plan" }, toolsearch: {} } });
    for (const mode of modes) {
      const set = configInMode(own, mode);
      assert.equal(modeOf(config(set)), mode);
      assert.deepEqual([set.approval.deadlineMs, set.approval.rules?.[0], set.options.toolsearch], [5, { tool: "shell", command: "ls", action: "allow" }, {}]);
      assert.deepEqual(configInMode(config(set), modes[0]!).approval.rules?.map(({ tool }) => tool), ["shell", ...looking], `back from ${mode.name}`);
    }
  });

  it("outside/8 allow the read-only editor tools, unless the session asks about or denies every call", () => {
    const names = (approval: object) => allowReadOnlyTools(config({ approval }))?.rules?.map(({ tool, action }) => `${tool} ${action}`);
    assert.deepEqual(names({}), looking.map((tool) => `${tool} allow`));
    assert.deepEqual(names({ rules: [{ tool: "editor_reveal", action: "deny" }] }), ["editor_reveal deny", "editor_open_files allow", "editor_diagnostics allow"]);
    assert.equal(names({ mode: "ask" }), undefined);
    assert.equal(names({ mode: "deny" }), undefined);
    assert.equal(allowReadOnlyTools(config({ approval: allowReadOnlyTools(config({})) })), undefined);
  });
});
