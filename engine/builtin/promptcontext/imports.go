package promptcontext

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Limits of imports.
const (
	maxDepth   = 5  // from a file of instructions to an imported file
	maxImports = 32 // of a prompt
)

// importable are the endings of files that can be imported. A file with another ending may
// hold a secret, such as .env, and what is imported goes to the model without a question.
var importable = []string{".md", ".mdc", ".markdown", ".txt"}

// importMark matches @path at the beginning of a word.
var importMark = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:^|[\s(])@([^\s` + "`" + `]+)`) })

// codeSpan matches code within a line, in which @ has no meaning.
var codeSpan = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("`[^`]*`") })

// imports returns the paths that a text names with @, in order and each once. Those with an
// importable ending are imports. Code blocks and code within lines name nothing.
func imports(text string) (paths []string) {
	fence := ""
	for line := range strings.Lines(text) {
		mark := fenceOf(line)
		switch {
		case fence == "" && mark != "":
			fence = mark
		case fence != "":
			if strings.HasPrefix(mark, fence) {
				fence = ""
			}
		default:
			paths = append(paths, importsOfLine(line)...)
		}
	}
	return distinct(paths)
}

// importsOfLine returns the paths that a line outside of code names.
func importsOfLine(line string) (paths []string) {
	for _, m := range importMark().FindAllStringSubmatch(codeSpan().ReplaceAllString(line, "` `"), -1) {
		if path := strings.TrimRight(m[1], ".,;:!?)'\""); path != "" {
			paths = append(paths, path)
		}
	}
	return paths
}

// isImportable reports whether the ending of a path is that of a file that can be imported.
func isImportable(path string) bool {
	return slices.Contains(importable, strings.ToLower(filepath.Ext(path)))
}

// fenceOf returns the backticks or tildes with which a line opens or closes a code block.
func fenceOf(line string) string {
	text := strings.TrimSpace(line)
	for _, c := range "`~" {
		if n := len(text) - len(strings.TrimLeft(text, string(c))); n >= 3 {
			return text[:n]
		}
	}
	return ""
}

// distinct returns the strings without repetitions, in order.
func distinct(all []string) (once []string) {
	seen := map[string]bool{} // a hostile text can have thousands
	for _, s := range all {
		if !seen[s] {
			seen[s] = true
			once = append(once, s)
		}
	}
	return once
}

// locate returns the path that an import means: relative to the directory of the file that
// imports it, or to home after a tilde.
func locate(dir, home, name string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok && home != "" {
		return filepath.Join(home, filepath.FromSlash(rest))
	}
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, filepath.FromSlash(name))
}
