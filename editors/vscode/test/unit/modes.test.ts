import { strict as assert } from "node:assert";
import { configInMode, allowReadOnlyTools, modeOf, modes, modeText } from "../../src/model/modes";
import type { Config } from "../../src/protocol";
import { session } from "./turn";

const config = (more: Partial<Config>): Config => ({ ...session.config, ...more });

const looking = ["editor_open_files", "editor_diagnostics", "editor_reveal"];

describe("issue/6-1 modes of a session", () => {
  it("follow from its settings", () => {
    const names = [
      {}, { approval: { mode: "ask" } }, { approval: { mode: "allow" } }, { approval: { mode: "deny" } }, { options: { plan: { mode: "plan" } } },
      { approval: { rules: [{ tool: "write", action: "allow" }, { tool: "edit", action: "allow" }, { tool: "patch", action: "allow" }] } },
      { approval: { rules: [{ tool: "write", action: "allow" }, { tool: "edit", action: "allow", path: "src" }, { tool: "patch", action: "allow" }] } },
    ].map((more) => modeOf(config(more as Partial<Config>)).name);
    assert.deepEqual(names, ["Ask", "Ask always", "Bypass", "Deny", "Plan", "Accept edits", "Ask"]);
  });

  it("part11/1 are shown with the sandbox of commands, and keep it", () => {
    const boxed = config({ approval: { mode: "ask", sandbox: "workspace" } });
    assert.deepEqual([modeText(boxed), modeText(config({ approval: { sandbox: "readOnly" } })), modeText(config({ approval: { sandbox: "fullAccess" } })), modeText(config({}))], [
      "Ask always, sandbox: workspace", "Ask, sandbox: read only", "Ask", "Ask",
    ]);
    assert.equal(configInMode(boxed, modes[2]!).approval.sandbox, "workspace");
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
