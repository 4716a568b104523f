#!/bin/sh
# Keeps its input and the transcript.
input=$(cat)
printf '%s\n' "$input" > "$CLAUDE_PROJECT_DIR/noted.json"
transcript=$(printf '%s' "$input" | sed -n 's/.*"transcript_path":"\([^"]*\)".*/\1/p')
cp "$transcript" "$CLAUDE_PROJECT_DIR/transcript.jsonl"
