import { strict as assert } from "node:assert";
import { addressProblem, groupsOf, keyProblem, nameFor, nameProblem, stateOf, type Provider } from "../../src/model/providers";
import { describeModel, effortText, modelEntries } from "../../src/model/models";
import { selectedOf, withMark } from "../../src/model/menu";
import type { ModelInfo } from "../../src/protocol";

const all: Provider[] = [
  { name: "anthropic", title: "Anthropic", pasted: true, key: "stored", stored: true },
  { name: "openai", title: "OpenAI", pasted: true, key: "OPENAI_API_KEY" },
  { name: "google", title: "Google Gemini", pasted: true },
  { name: "azure", title: "Azure OpenAI", pasted: true },
  { name: "chatgpt", title: "ChatGPT", login: true },
  { name: "vertex", title: "Google Vertex AI" },
  { name: "ollama", title: "Ollama", local: true, baseUrl: "http://localhost:11434/v1", models: ["qwen3"] },
  { name: "vllm", title: "vLLM", local: true, baseUrl: "http://localhost:8000/v1" },
  { name: "lmstudio", title: "LM Studio", local: true, baseUrl: "http://localhost:1234/v1", keyWanted: true },
  { name: "llamacpp", title: "llama.cpp", local: true, baseUrl: "http://localhost:8080/v1", keyWanted: true, key: "stored" },
];

describe("issue/18 the list of providers", () => {
  it("begins with those that work, and says why", () => {
    const ready = new Set(["google"]);
    assert.deepEqual(groupsOf(all, ready).map(({ title, providers }) => [title, ...providers.map((p) => p.name)]), [
      ["ready", "anthropic", "openai", "google", "ollama", "llamacpp"],
      ["not set up yet", "azure", "chatgpt", "lmstudio"],
      ["config.toml", "vertex"],
      ["not running", "vllm"],
    ]);
    assert.deepEqual(all.map((p) => stateOf(p, ready)), [
      "key stored by lashd", "key from the variable OPENAI_API_KEY", "key in the daemon", "needs a key", "log in with your subscription", "set its address and a key command in config.toml",
      "runs at http://localhost:11434/v1", "no answer at http://localhost:8000/v1",
      "answers at http://localhost:1234/v1, but wants a key", "answers at http://localhost:8080/v1, but rejects its key",
    ]);
  });

  it("accepts what can be the name of a new server", () => {
    assert.deepEqual(["work", "gpt-4o-proxy", "vllm", "a/b", "", "my server"].map((text) => nameProblem(text, ["vllm"]) === ""), [true, true, false, false, false, false]);
    assert.equal(nameProblem("vllm", ["vllm"]), "vllm is the name of another provider.");
  });

  it("accepts what can be a key or an address", () => {
    assert.deepEqual(["sk-1", " sk-1\n", "sk 1", "a\nb"].map((text) => keyProblem(text) === ""), [true, true, false, false]);
    const form = "https://RESOURCE.openai.azure.com/openai/v1";
    assert.match(addressProblem("127.0.0.1:8080", "https://HOST/v1"), /^Begin the address with https:\/\/ or http:\/\//);
    assert.deepEqual(["https://mine.openai.azure.com/openai/v1", form, "mine", "https://"].map((text) => addressProblem(text, form) === ""), [true, false, false, false]);
  });
});

describe("issue/18 the list of models", () => {
  const model = (name: string, more: object = {}): ModelInfo => {
    const [provider = "", id = ""] = name.split("/");
    return { name, model: { provider, id, contextWindow: 200_000 }, ...more };
  };

  it("is grouped by provider, and marks the current one", () => {
    const models = [model("anthropic/big", { title: "Big", default: true }), model("openai/small"), model("openai/other"), model("anthropic/old"), model("ollama/qwen3")];
    const groups = modelEntries(models, { provider: "openai", id: "small" });
    assert.deepEqual(groups.map(({ provider, models: of }) => [provider, ...of.map(({ title, current }) => `${title}${current ? " *" : ""}`)]), [
      ["anthropic", "Big", "anthropic/old"],
      ["openai", "openai/small *", "openai/other"],
      ["ollama", "ollama/qwen3"],
    ]);
  });

  it("selects the current entry at first, and keeps the user's selection when more entries come", () => {
    const entries = [{ label: "a" }, { label: "b", description: "1", current: false }, { label: "b", description: "2", current: true }];
    const shown = entries.map(withMark);
    assert.deepEqual(shown.map(({ label }) => label), ["a", "$(blank) b", "$(check) b"]);
    assert.deepEqual(selectedOf(shown, undefined), [shown[2]]);
    assert.deepEqual(selectedOf(shown, shown[1]), [shown[1]]);
    assert.deepEqual(selectedOf(shown, { label: "gone" }), [shown[2]]);
    assert.deepEqual(selectedOf(shown.slice(0, 2), undefined), []);
  });

  it("has the context window and the price of each", () => {
    const price = { input: 3, output: 15, cached: 0.3 };
    assert.equal(describeModel(model("anthropic/big", { title: "Big", default: true, price })), "anthropic/big \u00b7 200k tokens \u00b7 $3 in, $15 out per million \u00b7 default");
    assert.equal(describeModel({ name: "mine", model: { provider: "work", id: "gpt" } }), "gpt");
  });

  it("has the effort of a model that has one", () => {
    const reasoning = { efforts: ["low", "high"], default: "low" };
    const spec = { provider: "p", id: "m" };
    assert.deepEqual([effortText(spec), effortText({ ...spec, reasoning }), effortText({ ...spec, reasoning, effort: "high" })], ["", "default (low)", "high"]);
  });

  it("takes the name of a server from its address", () => {
    const names = ["https://llm.example.com/v1", "https://Example.com", "http://127.0.0.1:8000/v1", "http://localhost:8000", "http://[::1]:80/v1", "https://a.b_c.org/"].map((address) => nameFor(address, []));
    assert.deepEqual(names, ["example", "example", "local", "local", "local", ""]);
    assert.deepEqual([nameFor("https://api.acme.com/v1", ["acme", "acme-2"]), nameFor("http://localhost", ["local"])], ["acme-3", "local-2"]);
  });
});
