package rlm

import (
	"slices"
	"strings"

	"lashd/rpc/protocol"
)

// dialects are the words in tags and code fences with which models mark code that they want to be run. HTML elements, such
// as code and script, are not among them.
var dialects = []string{
	"python", "python3", "py", "ipython", "starlark", "javascript", "js", "typescript", "ts", "bash", "sh", "shell", "lashlang", "repl",
	"tool_code", "tool_call", "function_call", "function_calls", "code_execution", "execute",
}

// isDialect reports whether a word in a tag or a fence marks code. It ignores case.
func isDialect(word string) bool { return slices.Contains(dialects, strings.ToLower(word)) }

// hasForeignCell reports whether a reply has a cell with the tags of another dialect, on lines of their own. Tags within
// Markdown code fences are part of the answer.
func hasForeignCell(text, language string) bool {
	fenced, opened := false, ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		word := strings.TrimSuffix(strings.TrimLeft(line, "</"), ">")
		switch {
		case strings.HasPrefix(line, "```"):
			fenced = !fenced
		case fenced, word == language, !isDialect(word):
		case line == "<"+word+">":
			opened = word
		case line == "</"+word+">" && opened == word:
			return true
		}
	}
	return false
}

// isForeignFence reports whether a reply is one Markdown code fence of a dialect and nothing else. With any text around it,
// the fence is part of an answer.
func isForeignFence(text, language string) bool {
	first, rest, ok := strings.Cut(text, "\n")
	word, fence := strings.CutPrefix(first, "```")
	if !ok || !fence || strings.Count(text, "```") != 2 || !strings.HasSuffix(rest, "```") {
		return false
	}
	word = strings.TrimSpace(word)
	return word == language || isDialect(word)
}

// looksLikeCell reports whether a reply without a valid cell has something that was meant as one: a tag of the language
// anywhere, or a code fence.
func looksLikeCell(text, language string) bool {
	lower := strings.ToLower(text)
	return strings.Contains(lower, "<"+language) || strings.Contains(lower, "</"+language) || strings.Contains(text, "```")
}

// withoutCells removes code cells of any dialect from a text.
func withoutCells(text string) string {
	var kept strings.Builder
	closing := ""
	for line := range strings.Lines(text) {
		bare := strings.TrimSuffix(line, "\n")
		word := strings.Trim(strings.TrimSpace(bare), "<>")
		switch {
		case closing != "":
			if protocol.IsTag(bare, closing) {
				closing = ""
			}
		case isDialect(word) && protocol.IsTag(bare, "<"+word+">"):
			closing = "</" + word + ">"
		default:
			kept.WriteString(line)
		}
	}
	return kept.String()
}
