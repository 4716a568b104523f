import type { Decision, DecisionChoice, ToolCall } from "./protocol";

/** words maps the answers to a decision to their labels. */
export const words: Record<DecisionChoice, string> = {
  allowOnce: "Allow once",
  allowSession: "Allow for this session",
  allowAlways: "Always allow",
  reject: "Deny",
  happened: "It took effect",
  didNotRun: "It did not run",
  runAgain: "Run it again",
  tellModel: "Let the model check",
  answer: "Answer",
  cancelled: "Cancelled",
  unavailable: "Unavailable",
};

/** The number of bytes of the arguments that the daemon quotes in a prompt. */
const quotedBytes = 300;

/**
 * questionText returns the question of a decision: "Run `npm test`?" for a shell command on one line. Any other approval names the tool
 * and its arguments. Text that plugins added to the prompt is kept. A prompt of another form is returned unchanged.
 */
export function questionText({ kind, prompt, call }: Decision): string {
  if (kind !== "approval" || !call) {
    return prompt;
  }
  const quoted = `Allow the tool ${call.name} to run with ${quotedArgs(call)}?`;
  if (!prompt.startsWith(quoted)) {
    return prompt;
  }
  const more = prompt.slice(quoted.length);
  const command = soleCommand(call);
  return command === undefined ? `Allow this tool call?${more}\n${call.name} ${quotedArgs(call)}` : `Run \`${command}\`?${more}`;
}

/** quotedArgs returns the arguments as the daemon quotes them in a prompt. */
function quotedArgs({ args }: ToolCall): string {
  const text = JSON.stringify(args) ?? "null";
  const bytes = new TextEncoder().encode(text);
  return bytes.length > quotedBytes ? `${new TextDecoder().decode(bytes.subarray(0, quotedBytes)).replace(/\ufffd+$/, "")}...` : text;
}

/** soleCommand returns the command of a shell call that has no other arguments and that fits between backquotes on one line. */
function soleCommand({ name, args }: ToolCall): string | undefined {
  const { command, ...more } = (args ?? {}) as { command?: unknown };
  const sole = name === "shell" && typeof command === "string" && Object.keys(more).length === 0;
  return sole && !/[`\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(command) && command.length <= quotedBytes ? command : undefined;
}
