import type { Attached, AttachedFile, Contents, FromWebview } from "../chat/messages";
import { fileProblem, filesProblem, sizeText, typeOf } from "../model/files";
import type { Attachment, Digest, ModelSpec } from "../protocol";
import { h, iconButton } from "./dom";

/** The longest side of the small picture of an image, in pixels. */
const thumbSize = 96;

/** The size up to which a text is part of the input. Longer texts become files. */
const maxInlineText = 64 * 1024;

/** Attachments are the files of a draft: pasted, dropped or chosen. The daemon stores images and documents before the draft is sent. */
export class Attachments {
  private all: Attached[] = [];
  private nextId = 1;

  /** changed is called after each change, removed for each file that the user removes; failed shows why a file cannot be attached. */
  constructor(
    private readonly post: (message: FromWebview) => void,
    private readonly changed: () => void,
    private readonly removed: (label: string) => void,
    private readonly failed: (message: string) => void,
  ) {}

  get list(): Attached[] {
    return this.all;
  }

  /** restore restores the attachments of a saved draft. Files that were not stored are gone. */
  restore(all: Attached[]): void {
    this.all = all.filter(({ file }) => !file || file.digest !== undefined);
    this.nextId = 1 + Math.max(0, ...this.all.map(({ file }) => file?.id ?? 0));
  }

  /** add attaches a text or a file. A text that is attached already stays once. */
  add(attached: Attached): void {
    if (attached.file || !this.all.some(({ label, text, file }) => !file && label === attached.label && text === attached.text)) {
      this.all.push(attached);
    }
    this.changed();
  }

  /** addStored attaches a file that the daemon has already. Its size is not known, so 0. */
  addStored({ name = "", type, digest }: Attachment): void {
    this.add({ label: name, text: "", file: { id: this.nextId++, type, size: 0, digest } });
  }

  clear(): void {
    this.all = [];
  }

  /** addContents attaches a file that the user chose in the editor. */
  async addContents({ name, data }: Contents): Promise<void> {
    await this.addBytes(name, Uint8Array.from(atob(data), (c) => c.charCodeAt(0)));
  }

  /** addFiles attaches files that were pasted or dropped. A pasted picture has no name of its own. */
  async addFiles(files: readonly File[]): Promise<void> {
    for (const file of files) {
      await this.addBytes(file.name || "picture", new Uint8Array(await file.arrayBuffer()));
    }
  }

  /** stored notes that the daemon stored a file, or removes a file that it did not store. */
  stored(id: number, digest?: Digest): void {
    this.all = this.all.flatMap((attached) => (attached.file?.id !== id ? [attached] : digest === undefined ? [] : [{ ...attached, file: { ...attached.file, digest } }]));
    this.changed();
  }

  /** storing reports whether a file is not stored yet. */
  get storing(): boolean {
    return this.all.some(({ file }) => file && file.digest === undefined);
  }

  /** problem says why the files cannot be sent to a model; empty if they can. */
  problem(model: ModelSpec): string {
    return filesProblem(this.all.flatMap(({ label, file }) => (file ? [{ name: label, type: file.type, size: file.size }] : [])), model);
  }

  /** chips returns an element for each attachment, with a button that removes it. */
  chips(): HTMLElement[] {
    return this.all.map((attached, at) => {
      const remove = iconButton("close", `Remove ${attached.label}`, () => (this.all.splice(at, 1), this.removed(attached.label), this.changed()));
      const { file } = attached;
      if (!file) {
        return h("span", { class: "chip" }, attached.label, remove);
      }
      const picture = file.thumb !== undefined && thumbnail(file.thumb);
      const state = file.digest === undefined ? "attaching\u2026" : file.size > 0 && sizeText(file.size);
      return h("span", { class: "chip file" }, picture, h("span", { class: "name" }, attached.label), h("small", {}, state), remove);
    });
  }

  private async addBytes(name: string, bytes: Uint8Array<ArrayBuffer>) {
    const type = typeOf(bytes);
    const problem = fileProblem({ name, type, size: bytes.length });
    if (problem !== "") {
      this.failed(problem);
      return;
    }
    if (type === "text/plain" && bytes.length <= maxInlineText) {
      this.add({ label: name, text: new TextDecoder().decode(bytes) });
      return;
    }
    const file: AttachedFile = { id: this.nextId++, type, size: bytes.length, thumb: await thumbOf(bytes, type) };
    this.add({ label: name, text: "", file });
    this.post({ type: "store", id: file.id, data: base64(bytes) });
  }
}

function thumbnail(url: string): HTMLElement {
  const picture = h("img", { class: "thumb" });
  picture.alt = "";
  picture.src = url;
  return picture;
}

/** thumbOf returns a small picture of an image as a data URL; undefined for other files and for damaged images. */
async function thumbOf(bytes: Uint8Array<ArrayBuffer>, type: string): Promise<string | undefined> {
  if (!type.startsWith("image/")) {
    return undefined;
  }
  try {
    const image = await createImageBitmap(new Blob([bytes], { type }));
    const scale = Math.min(1, thumbSize / Math.max(image.width, image.height));
    const canvas = document.createElement("canvas");
    canvas.width = Math.max(1, Math.round(image.width * scale));
    canvas.height = Math.max(1, Math.round(image.height * scale));
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    return canvas.toDataURL("image/png");
  } catch {
    return undefined;
  }
}

/** base64 encodes bytes in pieces, because the arguments of a call are limited. */
export function base64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) {
    text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  }
  return btoa(text);
}
