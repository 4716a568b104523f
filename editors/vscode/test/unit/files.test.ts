import { strict as assert } from "node:assert";
import { toInput } from "../../src/model/input";
import { fileProblem, filesProblem, typeOf } from "../../src/model/files";
import type { ModelSpec } from "../../src/protocol";

const bytes = (text: string) => Uint8Array.from(text, (c) => c.charCodeAt(0));
const model = (inputs?: ModelSpec["inputs"]): ModelSpec => ({ provider: "p", id: "m", ...(inputs && { inputs }) });
const file = (type: string, size = 10, name = "a") => ({ name, type, size });

describe("issue/18 attached files", () => {
  it("have the type that their contents show", () => {
    const types = ["\x89PNG\r\n\x1a\nx", "\xff\xd8\xffx", "GIF89ax", "RIFF1234WEBPx", "%PDF-1.7", "text", "te\0xt", "\xff\xfe"].map((text) => typeOf(bytes(text)));
    assert.deepEqual(types, ["image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf", "text/plain", "", ""]);
  });

  it("are refused if no model reads them or they are too large", () => {
    assert.equal(fileProblem(file("", 10, "a.zip")), "a.zip cannot be attached: models read PNG, JPEG, GIF and WebP images, PDF documents and text files.");
    assert.equal(fileProblem(file("image/png", 6 << 20, "a.png")), "a.png cannot be attached: it has 6 MiB, the limit for images is 5 MiB.");
    assert.deepEqual([fileProblem(file("image/png", 5 << 20)), fileProblem(file("application/pdf", 32 << 20)), fileProblem(file("text/plain", 4 << 20))], ["", "", ""]);
  });

  it("are refused for a model that does not take them, before anything is sent", () => {
    assert.equal(filesProblem([file("image/png", 1, "a.png")], model(["text"])), "The model m takes no images. Choose another model, or remove a.png.");
    assert.equal(filesProblem([file("application/pdf", 1, "a.pdf")], model()), "The model m takes no PDF documents. Choose another model, or remove a.pdf.");
    assert.deepEqual([filesProblem([file("image/png")], model()), filesProblem([file("image/png"), file("application/pdf"), file("text/plain")], model(["image", "pdf"]))], ["", ""]);
  });

  it("are limited in number and in total", () => {
    assert.equal(filesProblem(Array.from({ length: 22 }, () => file("image/png")), model()), "A message takes 20 files. Remove 2 of them.");
    assert.match(filesProblem(Array.from({ length: 7 }, () => file("image/png", 5 << 20)), model()), /have 35 MiB together, the limit is 32 MiB/);
  });

  it("become parts of the input in their order", () => {
    const parts = toInput("look", [{ label: "a.ts", text: "x" }, { label: "b.ts", text: "" }, { label: "c.png", text: "", file: { id: 1, type: "image/png", size: 3, digest: "sha256:1" } }]);
    assert.deepEqual(parts, [
      { type: "text", text: "File: a.ts\n```\nx\n```\n" },
      { type: "text", text: "File: b.ts\n" },
      { type: "attachment", attachment: { name: "c.png", type: "image/png", digest: "sha256:1" } },
      { type: "text", text: "look" },
    ]);
  });
});
