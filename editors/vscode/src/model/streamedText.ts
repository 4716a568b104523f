const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** byteLength is the length of a text as the wire counts it. */
export function byteLength(text: string): number {
  return encoder.encode(text).length;
}

/** Grown is a text and its length in bytes. */
export interface Grown {
  text: string;
  bytes: number;
}

/**
 * append adds a piece that begins at a byte of the text, which is have bytes long. What is there already is not added again;
 * a piece that begins later leaves a hole, and there is no answer.
 */
export function append(text: string, have: number, piece: string, offset: number): Grown | undefined {
  if (offset > have) {
    return undefined;
  }
  const bytes = encoder.encode(piece);
  const fresh = offset === have ? piece : decoder.decode(bytes.subarray(have - offset));
  return { text: text + fresh, bytes: Math.max(have, offset + bytes.length) };
}
