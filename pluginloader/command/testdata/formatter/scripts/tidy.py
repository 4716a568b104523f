"""Takes white space off the ends of lines of the file that was edited, and tells the model if it had to."""
import json
import sys

event = json.load(sys.stdin)
path = event.get("tool_input", {}).get("file_path", "")
if not path or not event["tool_response"]["success"]:
    sys.exit(0)
with open(path) as f:
    before = f.read()
after = "\n".join(line.rstrip() for line in before.split("\n"))
if after == before:
    sys.exit(0)
with open(path, "w") as f:
    f.write(after)
print(json.dumps({"hookSpecificOutput": {
    "hookEventName": "PostToolUse",
    "additionalContext": f"{path} was tidied; read it again before the next edit.",
}}))
