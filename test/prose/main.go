// Command prose checks the English of lashd with Vale (https://vale.sh): the docs, the help of all commands, the protocol's
// documentation, comments and string literals of Go, and the labels of the VS Code extension. The rules are in styles/lashd.
//
//	go -C test/prose run .
//
// It prints each finding with its place, and fails if one is an error. Sentences of more than 40 words in docs are warnings.
// It is a module of its own so that the modules of Vale stay out of lashd's go.mod. Vale needs a C compiler.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A finding is one match of a rule.
type finding struct {
	source  string
	line    int
	rule    string
	message string
	text    string // the paragraph; empty in Markdown files
	fails   bool
}

func main() {
	findings, err := check("../..")
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(2)
	}
	failed := 0
	for _, f := range findings {
		level := "warning"
		if f.fails {
			level = "error"
			failed++
		}
		fmt.Printf("%s:%d: %s: %s (%s)\n", f.source, f.line, level, f.message, f.rule)
		if f.text != "" {
			fmt.Printf("\t%s\n", f.text)
		}
	}
	if failed > 0 {
		fmt.Printf("%d errors in the prose. Rewrite the sentences; do not swap words. The rules are in test/prose/styles/lashd.\n", failed)
		os.Exit(1)
	}
}

// check returns the findings in the repository at root.
func check(root string) ([]finding, error) {
	directory, err := os.MkdirTemp("", "lashd-prose-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(directory)
	all := texts{}
	pages, err := all.collect(root, directory)
	if err != nil {
		return nil, err
	}
	findings, err := all.lint(directory, pages)
	slices.SortFunc(findings, func(a, b finding) int {
		return cmp.Or(strings.Compare(a.source, b.source), a.line-b.line, strings.Compare(a.rule, b.rule))
	})
	for i := range findings {
		findings[i].source = strings.TrimPrefix(findings[i].source, root+"/")
	}
	return findings, err
}

// collect adds the texts of the repository that are not Markdown, and returns the paths of those that are. It builds lashd in
// directory for its help and schema.
func (t texts) collect(root, directory string) (pages []string, err error) {
	listed, err := exec.Command("git", "-C", root, "ls-files", "-z", "*.go", "*.md").Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	for file := range strings.SplitSeq(strings.TrimSuffix(string(listed), "\x00"), "\x00") {
		switch {
		case strings.Contains(file, "testdata/"), strings.HasSuffix(file, "_test.go"):
		case strings.HasSuffix(file, ".md"):
			pages = append(pages, filepath.Join(root, file))
		default:
			if err := t.addGo(root, file); err != nil {
				return nil, err
			}
		}
	}
	extension, err := os.ReadFile(filepath.Join(root, "editors/vscode/package.json"))
	if err != nil {
		return nil, err
	}
	lash, lashd := filepath.Join(directory, "lash"), filepath.Join(directory, "lashd")
	if text, err := exec.Command("go", "build", "-C", root, "-o", directory, "./cmd/lash", "./cmd/lashd").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building lash and lashd: %w: %s", err, text)
	}
	schema, err := exec.Command(lashd, "schema").Output()
	if err != nil {
		return nil, fmt.Errorf("lashd schema: %w", err)
	}
	return pages, errors.Join(t.addJSON("editors/vscode/package.json", extension), t.addJSON("lashd schema", schema), t.addHelp(lash, 30), t.addHelp(lashd, 8))
}

// lint writes the texts to files of directory, one paragraph a line, and runs Vale over them and over pages.
func (t texts) lint(directory string, pages []string) ([]finding, error) {
	sources := map[string]string{} // by file
	files := slices.Clone(pages)
	for source, paragraphs := range t {
		var text bytes.Buffer
		for _, p := range paragraphs {
			text.WriteString(p.text + "\n\n")
		}
		file := filepath.Join(directory, strconv.Itoa(len(sources))+".txt")
		if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
			return nil, err
		}
		sources[file] = source
		files = append(files, file)
	}
	vale := exec.Command("go", append([]string{"tool", "vale", "--config", "vale.ini", "--no-global", "--no-exit", "--output=JSON"}, files...)...)
	vale.Env = append(os.Environ(), "CGO_ENABLED=1", "CGO_CFLAGS=-w") // its parsers are C, with warnings
	var stderr strings.Builder
	vale.Stderr = &stderr
	output, err := vale.Output()
	if err != nil {
		return nil, fmt.Errorf("vale: %w: %s%s", err, stderr.String(), output)
	}
	var alerts map[string][]struct {
		Line                     int
		Check, Message, Severity string
	}
	if err := json.Unmarshal(output, &alerts); err != nil {
		return nil, fmt.Errorf("vale: %w: %s", err, output)
	}
	var findings []finding
	for file, list := range alerts {
		for _, a := range list {
			f := finding{file, a.Line, a.Check, a.Message, "", a.Severity == "error"}
			if source, ok := sources[file]; ok {
				p := t[source][(a.Line-1)/2]
				f.source, f.line, f.text = source, p.line, p.text
			}
			if f.text == "" || f.fails {
				findings = append(findings, f)
			}
		}
	}
	return findings, nil
}
