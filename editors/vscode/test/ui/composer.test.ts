import { strict as assert } from "node:assert";
import type { Item, ModelSpec } from "../../src/protocol";
import { session } from "../unit/turn";
import { pastePicture } from "./browser";
import { chatPage } from "./chatPage";

describe("issue/18 the composer of a chat", function () {
  const chat = chatPage(this);
  const { tell, asked } = chat;
  const reset = (model: Partial<ModelSpec>, more: object = {}) => chat.reset(more, { model: { ...session.config.model, ...model } });
  const field = () => chat.page.locator("#composer textarea");
  const send = () => chat.page.getByRole("button", { name: "Send" });
  const drop = (files: [string, string][], uris = "") => chat.page.evaluate(([all, list]) => {
    const data = new DataTransfer();
    all.forEach(([name, text]) => data.items.add(new File([text], name)));
    if (list !== "") {
      data.setData("text/uri-list", list);
    }
    document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
  }, [files, uris] as const);

  it("issue/19 says that a session works with code cells", async () => {
    const driver = chat.page.locator("#composer .driver");
    const show = (name: string) => reset({}, { session: { ...session, config: { ...session.config, driver: name } } });
    await show("standard");
    assert.equal(await driver.isVisible(), false);
    await show("rlm");
    assert.equal(await driver.innerText(), "Code cells");
    await show("mine");
    assert.equal(await driver.innerText(), "mine");
  });

  it("part13/vscode leaves out a restored draft that was sent, and keeps one that was not", async () => {
    const sent: Item = { itemId: "nod_1:0", kind: "userMessage", status: "completed", atMs: 1, turnId: "trn_1", text: "What does this do?", origin: { kind: "turnInput", inputId: "inp_1" } };
    for (const [text, seen, left] of [["What does this", undefined, ""], ["What does this", "inp_1", "What does this"], ["What is it", undefined, "What is it"]] as const) {
      await chat.reopen({ text, attached: [], seen });
      assert.equal(await field().inputValue(), text);
      await reset({}, { items: [sent] });
      await chat.drawn();
      assert.equal(await field().inputValue(), left);
    }
  });

  it("stores a pasted picture before it is sent, and shows it small", async () => {
    await reset({ inputs: ["image"] });
    await pastePicture(field(), "shot.png");
    await chat.page.locator(".chip", { hasText: "shot.png" }).locator("small", { hasText: "attaching\u2026" }).waitFor();
    assert.equal(await chat.page.locator(".chip .thumb").evaluate((picture: HTMLImageElement) => picture.naturalWidth), 96);
    assert.equal(await send().isDisabled(), true);
    await field().press("Enter");
    assert.deepEqual(await asked("send"), []);
    const [stored] = await asked("store");
    assert.match((stored as { data: string }).data, /^iVBORw0KGgo/);
    await tell({ type: "stored", id: 1, digest: "sha256:1" });
    await field().press("Enter");
    const [sent] = (await asked("send")) as { attached: { label: string; file: { type: string; digest: string } }[] }[];
    assert.deepEqual(sent?.attached.map(({ label, file }) => [label, file.type, file.digest]), [["shot.png", "image/png", "sha256:1"]]);
  });

  it("refuses a file that the model does not take until it is removed", async () => {
    await reset({ id: "reader", inputs: ["text"] });
    await drop([["a.pdf", "%PDF-1.7"]]);
    await tell({ type: "stored", id: 1, digest: "sha256:1" });
    await chat.page.getByRole("alert").filter({ hasText: "The model reader takes no PDF documents. Choose another model, or remove a.pdf." }).waitFor();
    await field().press("Enter");
    assert.deepEqual(await asked("send"), []);
    await chat.page.getByRole("button", { name: "Remove a.pdf" }).click();
    assert.deepEqual([await send().isDisabled(), await chat.page.locator("#composer [role=alert]").innerText()], [false, ""]);
  });

  it("part/13 marks where a drop goes while something is dragged over the page", async () => {
    await reset({});
    const drag = (type: string, to?: string) => chat.page.evaluate(([name, other]) => {
      document.body.dispatchEvent(new DragEvent(name ?? "", { bubbles: true, relatedTarget: other ? document.querySelector(other) : null }));
      return document.querySelectorAll(".box.target").length;
    }, [type, to]);
    assert.deepEqual([await drag("dragover"), await drag("dragleave", ".box"), await drag("dragleave")], [1, 1, 0]);
    assert.deepEqual([await drag("dragover"), await drag("drop")], [1, 0]);
  });

  it("says why a dropped file cannot be attached, and attaches the others", async () => {
    await reset({});
    await drop([["a.zip", "PK\0\0"], ["notes.txt", "remember"]]);
    await chat.page.getByText("a.zip cannot be attached: models read PNG, JPEG, GIF and WebP images, PDF documents and text files.").waitFor();
    await chat.page.locator(".chip", { hasText: "notes.txt" }).waitFor();
    assert.equal(await chat.page.locator(".chip").count(), 1);
    await drop([], "file:///work/a.ts\r\n# a comment\r\nfile:///work/b.ts");
    assert.deepEqual(await asked("dropped"), [{ type: "dropped", uris: ["file:///work/a.ts", "file:///work/b.ts"] }]);
  });

  it("shows a text beside a picture, both in the middle of their row", async () => {
    await reset({ inputs: ["image"] });
    await drop([["notes.txt", "remember"]]);
    await pastePicture(field(), "shot.png");
    await chat.page.locator(".chip .thumb").waitFor();
    const [text, picture] = await Promise.all(["notes.txt", "shot.png"].map((name) => chat.page.locator(".chip", { hasText: name }).boundingBox()));
    assert.ok(text && picture && text.height < picture.height);
    assert.ok(Math.abs(text.y + text.height / 2 - picture.y - picture.height / 2) < 1, JSON.stringify([text, picture]));
  });

  it("drops a file that the daemon did not store", async () => {
    await reset({});
    await pastePicture(field(), "shot.png");
    await chat.page.locator(".chip").waitFor();
    await tell({ type: "stored", id: 1 });
    assert.deepEqual([await chat.page.locator(".chip").count(), await send().isDisabled()], [0, false]);
  });

  it("shows pictures of the conversation after it has asked for them once", async () => {
    const item: Item = { itemId: "nod_1:0", kind: "userMessage", status: "completed", atMs: 1, turnId: "trn_1", attachment: { name: "shot.png", type: "image/png", digest: "sha256:1" } };
    await reset({}, { items: [item, { ...item, itemId: "nod_1:1", attachment: { name: "paper.pdf", type: "application/pdf", digest: "sha256:2" } }] });
    await chat.page.locator(".chip", { hasText: "paper.pdf" }).waitFor();
    const seen: Item = { ...item, itemId: "nod_2:0", kind: "toolCall", tool: "look", callId: "c", attachment: undefined, output: { status: "success", attachments: [{ name: "page.png", type: "image/png", digest: "sha256:3" }] } };
    await tell({ type: "events", events: [{ type: "item/completed", seq: 1, atMs: 1, turnId: "trn_1", item: seen }] });
    await chat.page.getByRole("img", { name: "page.png" }).waitFor();
    assert.deepEqual(await asked("picture"), ["sha256:1", "sha256:3"].map((digest) => ({ type: "picture", digest, mediaType: "image/png" })));
    await tell({ type: "picture", digest: "sha256:1", url: "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==" });
    await chat.page.waitForFunction(() => document.querySelector<HTMLImageElement>("img.picture")?.naturalWidth === 1);
    assert.equal(await chat.page.getByRole("img", { name: "shot.png" }).count(), 1);
  });

  it("shows how full the context window is, and what fills it", async () => {
    await reset({ contextWindow: 10_000 }, { context: { input: 7000, cacheRead: 0, cacheWrite: 0, output: 500, reasoning: 0 } });
    const meter = chat.page.getByTitle("Context: 7.5k of 10k tokens, 75% full. Click to see what fills it.");
    assert.equal(await meter.innerText(), "Context 75%");
    assert.equal(await meter.locator(".filled.high").evaluate((bar) => bar.style.width), "75%");
    await meter.click();
    assert.deepEqual(await asked("context"), [{ type: "context" }]);
    await tell({ type: "context", parts: [{ title: "Tools", detail: "12 tools", tokens: 3000 }, { title: "Attachments", detail: "2 files" }], incomplete: false });
    assert.deepEqual((await chat.page.locator("#context tr").allInnerTexts()).map((text) => text.split(/\s*\t\s*/).filter(Boolean)), [["Tools", "3k tokens", "12 tools"], ["Attachments", "not estimated", "2 files"]]);
    await chat.page.locator("#context").getByRole("button", { name: "Close" }).click();
    assert.deepEqual([await chat.page.locator("#context").isVisible(), await meter.getAttribute("aria-expanded")], [false, "false"]);
  });

  it("offers the set-up of the provider after a turn that had no key, and no other time", async () => {
    const item: Item = { itemId: "nod_1:0", kind: "userMessage", status: "completed", atMs: 1, turnId: "trn_1", text: "hi" };
    const end = { turnId: "trn_1", outcome: { kind: "providerError" }, message: "no API key for p" };
    await reset({}, { items: [item], ends: { trn_1: { ...end, code: "connect_failed" } } });
    await chat.page.locator(".end.failed").waitFor();
    assert.equal(await chat.page.getByRole("button", { name: "Set up a provider\u2026" }).count(), 0);
    await reset({}, { items: [item], ends: { trn_1: { ...end, code: "missing_key" } } });
    await chat.page.getByRole("button", { name: "Set up a provider\u2026" }).click();
    assert.deepEqual(await asked("setUp"), [{ type: "setUp" }]);
  });

  it("shows the effort of a model that has one", async () => {
    await reset({ reasoning: { efforts: ["low", "high"] }, effort: "high" });
    await chat.page.getByRole("button", { name: "Effort: high" }).click();
    assert.deepEqual(await asked("run"), [{ type: "run", command: "chooseEffort" }]);
    await reset({});
    assert.equal(await chat.page.getByRole("button", { name: /^Effort/ }).count(), 0);
  });

  it("part/13 has Send at the right end of the input at each width", async () => {
    await reset({});
    for (const width of [300, 420, 590, 900]) {
      await chat.page.setViewportSize({ width, height: 600 });
      const [box, send] = await Promise.all([chat.page.locator("#composer .box").boundingBox(), chat.page.locator("#composer .send").boundingBox()]);
      assert.ok(box && send);
      const right = box.x + box.width - send.x - send.width;
      const below = box.y + box.height - send.y - send.height;
      assert.ok(right >= 0 && right < 16 && below >= 0 && below < 16, `at ${width} pixels Send is ${right} from the right and ${below} from the bottom`);
    }
  });

  describe("part/13 completes", () => {
    const suggestion = (label: string, more: object = {}) => ({ label, detail: "", icon: "file", insert: `@${label}`, mention: { kind: "file" as const, uri: `file:///${label}` }, ...more });
    const answer = async (...labels: string[]) => {
      const request = (await asked("suggest")).at(-1) as { id: number };
      await tell({ type: "suggestions", id: request.id, suggestions: labels.map((label) => suggestion(label)) });
    };
    const chosen = () => chat.page.locator(".suggestions [aria-selected=true]");

    it("a word after @ with the keyboard, and attaches what was chosen", async () => {
      await reset({});
      await field().pressSequentially("look at @ma");
      assert.deepEqual((await asked("suggest")).map((message) => (message as { word: string }).word), ["", "m", "ma"]);
      await answer("main.ts", "make.ts");
      assert.equal(await chosen().innerText(), "main.ts");
      await field().press("ArrowDown");
      assert.equal(await field().getAttribute("aria-activedescendant"), await chosen().getAttribute("id"));
      await field().press("Enter");
      assert.deepEqual([await field().inputValue(), await asked("mention"), await asked("send")], ["look at @make.ts ", [{ type: "mention", mention: { kind: "file", uri: "file:///make.ts" } }], []]);
      assert.equal(await chat.page.locator("#suggestions").isVisible(), false);
    });

    it("nothing in an address, and closes with Escape without stopping the turn", async () => {
      await reset({}, { turnId: "trn_1" });
      await field().pressSequentially("a@b");
      assert.deepEqual(await asked("suggest"), []);
      await field().pressSequentially(" @c");
      await answer("c.ts");
      await field().press("Escape");
      assert.deepEqual([await chat.page.locator("#suggestions").isVisible(), await asked("stop")], [false, []]);
    });

    it("ignores a late answer to an earlier word", async () => {
      await reset({});
      await field().pressSequentially("@a");
      const [first] = (await asked("suggest")) as { id: number }[];
      await tell({ type: "suggestions", id: first?.id ?? 0, suggestions: [suggestion("late.ts")] });
      assert.equal(await chat.page.locator("#suggestions").isVisible(), false);
    });

    it("no word of an input that was sent, if the answer comes late", async () => {
      await reset({});
      await field().pressSequentially("see @total");
      const last = (await asked("suggest")).at(-1) as { id: number };
      await chat.page.keyboard.press("Enter");
      await tell({ type: "sent", ok: true });
      await tell({ type: "suggestions", id: last.id, suggestions: [suggestion("total.ts")] });
      assert.deepEqual([await chat.page.locator("#suggestions").isVisible(), await field().inputValue()], [false, ""]);
    });

    it("a command after / at the start, and runs it with a click", async () => {
      await reset({});
      await field().pressSequentially("/com");
      const request = (await asked("suggest")).at(-1) as { id: number; mark: string };
      assert.equal(request.mark, "/");
      await tell({ type: "suggestions", id: request.id, suggestions: [{ label: "/compact", detail: "", icon: "fold", command: "compact" }] });
      await chat.page.getByRole("option", { name: "/compact" }).click();
      assert.deepEqual([await asked("command"), await field().inputValue()], [[{ type: "command", name: "compact", text: "" }], ""]);
    });
  });

  it("part/13 goes through earlier inputs with the arrow keys, but not in a text", async () => {
    await reset({});
    await field().fill("mine");
    await field().press("ArrowUp");
    assert.deepEqual(await asked("history"), []);
    await field().fill("");
    await field().press("ArrowUp");
    assert.deepEqual(await asked("history"), [{ type: "history" }]);
    await tell({ type: "history", inputs: ["newest", "newest", "older"] });
    const seen = [await field().inputValue()];
    for (const key of ["ArrowUp", "ArrowUp", "ArrowDown", "ArrowDown"]) {
      await field().press(key);
      seen.push(await field().inputValue());
    }
    assert.deepEqual(seen, ["newest", "older", "older", "newest", ""]);
  });

  it("44 sends a command that is typed in full with the first Enter, and completes one that needs an argument", async () => {
    const field = chat.page.locator("#composer textarea");
    const offer = async (name: string, hint?: string) => {
      await chat.reset();
      await field.fill(`/${name}`);
      const [last] = (await chat.asked("suggest")).slice(-1);
      await chat.tell({ type: "suggestions", id: last?.id ?? 0, suggestions: [{ label: `/${name}`, detail: "", icon: "terminal", insert: `/${name}`, hint }], last: true });
      await chat.page.getByRole("option", { name: `/${name}` }).waitFor();
      await field.press("Enter");
    };
    await offer("travel", "<city>");
    assert.equal(await field.inputValue(), "/travel ");
    assert.deepEqual(await chat.asked("send"), []);
    await field.fill("");
    await offer("init", "[FOCUS]");
    assert.deepEqual((await chat.asked("send")).map(({ text }) => text), ["/init"]);
  });
});
