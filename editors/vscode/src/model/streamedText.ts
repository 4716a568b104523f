const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** byteLength returns the length of a text in UTF-8 bytes, the unit of offsets in the protocol. */
export function byteLength(text: string): number {
  return encoder.encode(text).length;
}

/** StreamedText is a text and its length in bytes. */
export interface StreamedText {
  text: string;
  bytes: number;
}

/**
 * append appends a piece that starts at the byte offset of the text. have is the length of the text in bytes. An overlap is not
 * appended twice. append returns undefined if text between have and offset is missing.
 */
export function append(text: string, have: number, piece: string, offset: number): StreamedText | undefined {
  if (offset > have) {
    return undefined;
  }
  const bytes = encoder.encode(piece);
  const fresh = offset === have ? piece : decoder.decode(bytes.subarray(have - offset));
  return { text: text + fresh, bytes: Math.max(have, offset + bytes.length) };
}
