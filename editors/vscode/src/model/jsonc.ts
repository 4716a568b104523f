/** parseJsonc parses JSON with comments and trailing commas, as in the files of VS Code. */
export function parseJsonc(text: string): unknown {
  const strings = /"(?:[^"\\]|\\.)*"|\/\/[^\n]*|\/\*[^]*?\*\//g;
  const plain = text.replace(strings, (found) => (found.startsWith('"') ? found : " "));
  return JSON.parse(plain.replace(/"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])/g, (found) => (found === "," ? "" : found)));
}
