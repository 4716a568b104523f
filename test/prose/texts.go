package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A paragraph is one piece of prose and the line of its source at which it begins.
type paragraph struct {
	line int
	text string
}

// texts maps the name of a source, such as a Go file or "lash run --help", to its paragraphs.
type texts map[string][]paragraph

// add appends a paragraph to a source, unless it has fewer than three words.
func (t texts) add(source string, line int, text string) {
	if words := strings.Fields(text); len(words) >= 3 {
		t[source] = append(t[source], paragraph{line, strings.Join(words, " ")})
	}
}

var (
	generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	tagValue  = regexp.MustCompile(`(?:help|desc|description|doc):"((?:[^"\\]|\\.)*)"`)
	query     = regexp.MustCompile(`^\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|WITH|PRAGMA|ALTER|REPLACE)\b`) // SQL is not prose
)

// addGo adds the comments of a Go file, its string literals of three words or more, and the help in its struct tags. It
// skips generated files, which repeat texts of other files.
func (t texts) addGo(root, file string) error {
	source, err := os.ReadFile(filepath.Join(root, file))
	if err != nil || generated.Match(source) {
		return err
	}
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, file, source, parser.ParseComments)
	if err != nil {
		return err
	}
	for _, group := range tree.Comments {
		t.addComment(files, file, group)
	}
	tags := map[*ast.BasicLit]bool{}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			if n.Tag != nil {
				for _, value := range tagValue.FindAllStringSubmatch(n.Tag.Value, -1) {
					t.add(file, files.Position(n.Tag.Pos()).Line, value[1])
				}
				tags[n.Tag] = true
			}
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && !tags[n] && err == nil && !query.MatchString(text) {
				line := files.Position(n.Pos()).Line
				for part := range strings.SplitSeq(text, "\n\n") {
					t.add(file, line, part)
					if strings.HasPrefix(n.Value, "`") {
						line += strings.Count(part, "\n") + 2
					}
				}
			}
		}
		return true
	})
	return nil
}

// addComment adds the paragraphs of a comment. Indented lines are code, and directives such as //go:build are not text.
func (t texts) addComment(files *token.FileSet, file string, group *ast.CommentGroup) {
	var text strings.Builder
	begin := 0
	flush := func() {
		t.add(file, begin, text.String())
		text.Reset()
	}
	for _, comment := range group.List {
		line := files.Position(comment.Pos()).Line
		body, oneLine := strings.CutPrefix(comment.Text, "//")
		if !oneLine {
			body = strings.TrimSuffix(strings.TrimPrefix(comment.Text, "/*"), "*/")
		} else if body != "" && body[0] != ' ' && body[0] != '\t' {
			continue
		}
		for part := range strings.SplitSeq(body, "\n") {
			if part = strings.TrimPrefix(part, " "); part == "" || part[0] == ' ' || part[0] == '\t' {
				flush()
			} else {
				if text.Len() == 0 {
					begin = line
				}
				text.WriteString(part + "\n")
			}
			line++
		}
	}
	flush()
}

// described are the members of JSON documents that people read.
var described = []string{"description", "markdownDescription", "summary", "title", "label"}

// addJSON adds the described members of a JSON document, at line 1.
func (t texts) addJSON(source string, document []byte) error {
	var value any
	if err := json.Unmarshal(document, &value); err != nil {
		return fmt.Errorf("%s: %w", source, err)
	}
	var walk func(any)
	walk = func(value any) {
		switch value := value.(type) {
		case []any:
			for _, v := range value {
				walk(v)
			}
		case map[string]any:
			for name, v := range value {
				if text, ok := v.(string); ok && slices.Contains(described, name) {
					t.add(source, 1, text)
				}
				walk(v)
			}
		}
	}
	walk(value)
	return nil
}

var (
	command = regexp.MustCompile(`^  ([a-z]+(?: [a-z]+)?)  +\S`)                   // a command in a list
	entry   = regexp.MustCompile(`^ +(?:-\S.*?|[a-z\[<]\S*(?: \S+)*)  +|^ +-\S+$`) // the name of a flag, argument or command
)

// addHelp adds the help of a program and of each command that its help lists, which are at least the given number.
func (t texts) addHelp(program string, least int) error {
	top, err := exec.Command(program, "--help").Output()
	if err != nil {
		return err
	}
	name := filepath.Base(program)
	t.addHelpText(name+" --help", string(top))
	commands := 0
	_, list, _ := strings.Cut(string(top), "\nCommands:\n")
	for line := range strings.Lines(list) {
		if found := command.FindStringSubmatch(line); found != nil {
			text, err := exec.Command(program, append(strings.Fields(found[1]), "--help")...).Output()
			if err != nil {
				return fmt.Errorf("%s %s --help: %w", name, found[1], err)
			}
			t.addHelpText(name+" "+found[1]+" --help", string(text))
			commands++
		}
	}
	if commands < least {
		return fmt.Errorf("%s --help lists %d commands, want at least %d", name, commands, least)
	}
	return nil
}

// addHelpText adds the paragraphs of a help text. Each flag, argument and command is a paragraph.
func (t texts) addHelpText(source, help string) {
	text, begin := "", 0
	for i, line := range strings.Split(help+"\n", "\n") {
		name := entry.FindString(line)
		if name != "" || strings.TrimSpace(line) == "" {
			t.add(source, begin, text)
			text = ""
		}
		if text == "" {
			begin = i + 1
		}
		text += line[len(name):] + " "
		text = strings.TrimLeft(text, " ")
	}
}
