import type { ModelSpec } from "../protocol";

const mib = 1 << 20;

/** The limits of lashd for the attachments of one input. */
const limits = { image: 5 * mib, pdf: 32 * mib, text: 4 * mib, total: 32 * mib, count: 20 };

export const pdf = "application/pdf";

/** signatures are how files of each type begin. A dot stands for any character. */
const signatures: readonly (readonly [RegExp, string])[] = [
  [/^\x89PNG\r\n\x1a\n/, "image/png"],
  [/^\xff\xd8\xff/, "image/jpeg"],
  [/^GIF8[79]a/, "image/gif"],
  [/^RIFF[^]{4}WEBP/, "image/webp"],
  [/^%PDF-/, pdf],
];

/** typeOf returns the media type of contents by their first bytes: an image or a PDF document that models read, or text; "" for others. */
export function typeOf(bytes: Uint8Array): string {
  const start = String.fromCharCode(...bytes.subarray(0, 16));
  const found = signatures.find(([begins]) => begins.test(start));
  if (found) {
    return found[1];
  }
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return bytes.includes(0) ? "" : "text/plain";
  } catch {
    return "";
  }
}

/** NamedFile is a file with its media type, "" if models cannot read it, and its size in bytes. */
export interface NamedFile {
  name: string;
  type: string;
  size: number;
}

/** fileProblem says why no model can get a file, or returns "". */
export function fileProblem({ name, type, size }: NamedFile): string {
  if (type === "") {
    return `${name} cannot be attached: models read PNG, JPEG, GIF and WebP images, PDF documents and text files.`;
  }
  const [limit, kind] = type === pdf ? [limits.pdf, "PDF documents"] : type.startsWith("image/") ? [limits.image, "images"] : [limits.text, "text files"];
  return size > limit ? `${name} cannot be attached: it has ${sizeText(size)}, the limit for ${kind} is ${sizeText(limit)}.` : "";
}

/** filesProblem says why the files cannot be sent to a model together, or returns "". */
export function filesProblem(files: readonly NamedFile[], model: ModelSpec): string {
  const refused = files.find(({ type }) => !takes(model, type));
  if (refused) {
    const others = refused.type === pdf ? "PDF documents" : "images";
    return `The model ${model.id} takes no ${others}. Choose another model, or remove ${refused.name}.`;
  }
  const total = files.reduce((sum, { size }) => sum + size, 0);
  if (files.length > limits.count) {
    return `A message takes ${limits.count} files. Remove ${files.length - limits.count} of them.`;
  }
  return total > limits.total ? `The files have ${sizeText(total)} together, the limit is ${sizeText(limits.total)}. Remove some.` : "";
}

/** takes reports whether a model reads files of a type, as the daemon decides it. Every model reads text. */
function takes({ inputs = [] }: ModelSpec, type: string): boolean {
  if (type === pdf) {
    return inputs.includes("pdf");
  }
  return !type.startsWith("image/") || inputs.length === 0 || inputs.includes("image");
}

/** sizeText returns a size in bytes for people. */
export function sizeText(bytes: number): string {
  return bytes < mib ? `${Math.ceil(bytes / 1024)} KiB` : `${(bytes / mib).toFixed(1).replace(/\.0$/, "")} MiB`;
}
