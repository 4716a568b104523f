// Runs xterm.js, the terminal emulator of VS Code, for the package emulator. Messages in both directions are a letter, the
// length of the rest as a number and a newline, and the rest.
import headless from "@xterm/headless";
import unicode11 from "@xterm/addon-unicode11";

const [cols, rows] = process.argv.slice(2).map(Number);
const term = new headless.Terminal({ cols, rows, scrollback: 50000, allowProposedApi: true });
term.loadAddon(new unicode11.Unicode11Addon()); // as in VS Code
term.unicode.activeVersion = "11";

function send(letter, data) {
  const body = Buffer.from(data);
  process.stdout.write(Buffer.concat([Buffer.from(`${letter}${body.length}\n`), body]));
}

// What the terminal answers to the program.
term.onData((data) => send("i", data));

// cells returns the characters of a row, without the empty cell before a wide character that went to the next row.
function cells(line, next) {
  let text = "";
  for (let x = 0; x < term.cols && x < line.length; x++) {
    const cell = line.getCell(x);
    if (cell.getWidth() === 0) continue;
    if (x === term.cols - 1 && cell.getChars() === "" && next?.isWrapped && next.getCell(0).getWidth() === 2) continue;
    text += cell.getChars() || " ";
  }
  return text;
}

// dump returns all lines, with wrapped rows joined, the rows of the screen, and the cursor.
function dump() {
  const buffer = term.buffer.active;
  const lines = [];
  const screen = [];
  for (let y = 0; y < buffer.length; y++) {
    const line = buffer.getLine(y);
    const text = cells(line, buffer.getLine(y + 1));
    if (line.isWrapped && lines.length > 0) lines[lines.length - 1] += text;
    else lines.push(text);
    if (y >= buffer.baseY) screen.push(text.trimEnd());
  }
  return { lines: lines.map((l) => l.trimEnd()), screen, x: buffer.cursorX, y: buffer.cursorY, alternate: buffer.type === "alternate" };
}

const requests = {
  w: (body) => term.write(body),
  r: (body) => {
    term.resize(...body.toString().split(" ").map(Number));
    send("r", "");
  },
  d: () => term.write("", () => send("d", JSON.stringify(dump()))),
};

let input = Buffer.alloc(0);
process.stdin.on("data", (chunk) => {
  input = Buffer.concat([input, chunk]);
  for (;;) {
    const end = input.indexOf(10);
    if (end < 0) return;
    const size = Number(input.subarray(1, end).toString());
    if (input.length < end + 1 + size) return;
    requests[String.fromCharCode(input[0])](Buffer.from(input.subarray(end + 1, end + 1 + size)));
    input = input.subarray(end + 1 + size);
  }
});
process.stdin.on("end", () => process.exit(0));
