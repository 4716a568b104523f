/** The output of a command that is kept, in characters. The end counts more than the start. */
const maxOutput = 32_000;

// Control sequences of terminals: those that begin with ESC [, with ESC ] up to BEL or ESC \, and other short ones.
const sequences = /\u001b\[[0-?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[ -/]*[0-~]/g;

/** plainOutput returns the output of a command as text: without control sequences, and with the last state of lines that were overwritten. */
export function plainOutput(raw: string): string {
  const lines = raw.replace(sequences, "").replaceAll("\r\n", "\n").split("\n").map((line) => line.replace(/\r+$/, "").split("\r").at(-1) ?? "");
  const text = lines.join("\n").trimEnd();
  return text.length > maxOutput ? `\u2026${text.slice(-maxOutput)}` : text;
}

/** commandText returns a command of a terminal with its output. VS Code passes on no output of a command that ends at once, so an empty one can mean either. */
export function commandText(command: string, output: string): string {
  return `$ ${command}\n${output || "(no output, or VS Code did not pass it on)"}`;
}
