export const story = "Once upon a time, a small daemon promised that everything it had acknowledged would still be there in the morning. One night somebody pulled the plug. The daemon restarted, read its database, and finished the story.";

/** sample is code in which the words, texts, numbers and comments have colors of their own. */
export const sample = '// adds\nconst greeting = "hi";\nfunction add(a, b) {\n  return a + b * 12;\n}\n';

/** models are the names of the scripted model. Only the first has a price, a context window and efforts, and only it takes images. */
export const models = 'models = [{id = "scripted", price = {input = 2.0, output = 10.0}, context_window = 20000, efforts = ["low", "high"]}, {id = "careful", inputs = ["text"]}]\n';

/** script contains the replies of the scripted model. */
export const script = {
  models: ["demo"],
  turns: [
    { match: { lastUserContains: "+staged line" }, replies: [{ text: "```\nreadme: add a line\n```" }] },
    { match: { lastUserContains: "Request: say it loudly\n\n<selection>a workspace</selection>" }, replies: [{ text: "A WORKSPACE" }] },
    { match: { lastUserContains: "some code" }, replies: [{ text: `\`\`\`js\n${sample}\`\`\`` }] },
    { match: { lastUserContains: "story" }, replies: [{ text: story, chunkSize: 3, delayMs: 60 }] },
    {
      match: { lastUserContains: "write" },
      replies: [
        { reasoning: "The user wants a file.", text: "I'll write **it**.", chunkSize: 3, delayMs: 20, toolCalls: [{ name: "write", args: { path: "new.txt", content: "x\ny\n" } }] },
        { text: "Written." },
      ],
    },
    {
      match: { lastUserContains: "patch both" },
      replies: [
        { toolCalls: [{ name: "patch", args: { patch: "*** Begin Patch\n*** Update File: long.txt\n line 1\n-line 2\n+LINE TWO\n line 3\n@@\n line 27\n-line 28\n+LINE 28\n line 29\n*** End Patch" } }] },
        { text: "Patched." },
      ],
    },
    { match: { lastUserContains: "pay for docs" }, replies: [{ toolCalls: [{ name: "mcp__docs__look", args: {} }] }, { text: "Paid." }] },
    { match: { lastUserContains: "leave once" }, replies: [{ toolCalls: [{ name: "shell", args: { command: "echo original > edited.txt", outside: true } }] }, { text: "Left." }] },
    { match: { lastUserContains: "leave again" }, replies: [{ toolCalls: [{ name: "shell", args: { command: "echo again", outside: true } }] }, { expect: { lastResultContains: "stay inside" }, text: "I stay inside." }] },
    { match: { lastUserContains: "leave for git" }, replies: [{ toolCalls: [{ name: "shell", args: { command: "git status", outside: true } }] }, { text: "Status seen." }] },
    {
      match: { lastUserContains: "editor" },
      replies: [
        { toolCalls: [{ name: "editor_reveal", args: { path: "readme.txt", line: 1 } }] },
        { toolCalls: [{ name: "editor_open_files", args: {} }] },
        { expect: { lastResultContains: "readme.txt" }, text: "I have seen it." },
      ],
    },
    {
      match: { lastUserContains: "in code" },
      replies: [{ text: "I look.\n<starlark>\nprint(tools.read(\"readme.txt\").text.upper())\n</starlark>\n" }, { text: "I have run a cell." }],
    },
    { match: { lastUserContains: "count" }, replies: [{ toolCalls: [{ name: "shell", args: { command: "for i in 1 2 3 4 5 6 7 8 9; do echo line $i; sleep 1; done" } }] }, { text: "Counted." }] },
    { match: { lastUserContains: "background" }, replies: [{ toolCalls: [{ name: "start_command", args: { command: "echo from the background; sleep 60", label: "the server" } }] }, { text: "It runs." }] },
    {
      match: { lastUserContains: "plan" },
      replies: [
        { text: "A plan first.", toolCalls: [{ name: "update_plan", args: { steps: [{ text: "look", status: "completed" }, { text: "change", status: "inProgress" }, { text: "test", status: "pending" }] } }] },
        { text: "Here is a table:\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```js\nconst x = 1;\n```\n" },
      ],
    },
  ],
  otherwise: { replies: [{ text: "Hello!", usage: { input: 1500, output: 100 } }] },
};
