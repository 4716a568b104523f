import { strict as assert } from "node:assert";
import { readFileSync } from "node:fs";
import { driverEntries, driverText } from "../../src/model/drivers";
import { session } from "./turn";

describe("issue/19 the driver of a session", () => {
  it("is chosen from the drivers of the daemon, the default first, with a sentence each", () => {
    const drivers = [
      { name: "mine", title: "mine" },
      { name: "rlm", title: "Code cells", about: "The model writes programs." },
      { name: "standard", title: "Tool calls", about: "The model calls tools.", default: true },
    ];
    assert.deepEqual(driverEntries(drivers), [
      { name: "standard", title: "Tool calls", description: "standard \u00b7 default", about: "The model calls tools." },
      { name: "mine", title: "mine", description: "", about: "" },
      { name: "rlm", title: "Code cells", description: "rlm", about: "The model writes programs." },
    ]);
  });

  it("is named unless it is the standard one", () => {
    const texts = ["standard", "rlm", "mine"].map((driver) => driverText({ ...session.config, driver }));
    assert.deepEqual(texts, ["", "Code cells", "mine"]);
  });

  it("has a setting that leaves the choice to the daemon by default", () => {
    const manifest = JSON.parse(readFileSync("package.json", "utf8")) as { contributes: { configuration: { properties: Record<string, { default: unknown; examples?: string[] }> } } };
    const setting = manifest.contributes.configuration.properties["lashd.driver"];
    assert.deepEqual([setting?.default, setting?.examples], ["", ["", "standard", "rlm", "ask"]]);
  });
});
