package promptcontext

import (
	"path"
	"slices"
	"strings"

	"lashd/internal/glob"
)

// Limits of the front matter of a rule. Further patterns are left out, and so are longer ones.
const (
	maxPatterns    = 32
	maxPattern     = 256     // bytes
	maxDescription = 1 << 10 // bytes; the rest is cut
)

// ruleDir is a directory in which another agent keeps one rule a file.
type ruleDir struct {
	path   string // below a directory with instructions
	suffix string // of its files
	plain  bool   // a file without patterns and marks always applies
}

// ruleDirs are the directories with rules. Names without a separator in front are files.
var ruleDirs = []ruleDir{
	{".cursor/rules", ".mdc", false},
	{".github/instructions", ".instructions.md", false},
	{".claude/rules", ".md", true},
	{".windsurf/rules", ".md", false},
	{".clinerules", ".md", true},
}

// ruleFiles are files that always apply, beside AGENTS.md.
var ruleFiles = []string{"CLAUDE.local.md", ".cursorrules", ".windsurfrules", ".clinerules", ".github/copilot-instructions.md"}

// rule is the text of a rule file, with what its front matter says about its use.
type rule struct {
	always      bool
	globs       []string
	description string
	text        string
}

// parseRule reads a rule file. Its front matter has simple lines, which are often no valid
// YAML, such as globs: *.ts, so they are read as text.
func parseRule(text string, plain bool) rule {
	head, body, ok := frontMatter(text)
	r := rule{text: strings.TrimSpace(body)}
	declared := false
	if ok {
		declared = r.read(head)
	}
	r.always = r.always || plain && !declared
	if len(r.globs) == 1 && r.globs[0] == "**" {
		r.always, r.globs = true, nil
	}
	return r
}

// read takes the front matter, and reports whether it says when the rule applies.
func (r *rule) read(head string) (declared bool) {
	key := ""
	for line := range strings.Lines(head) {
		value := strings.TrimSpace(line)
		if item, ok := strings.CutPrefix(value, "- "); ok {
			value = item
		} else {
			key, value, _ = strings.Cut(value, ":")
		}
		value = strings.Trim(strings.TrimSpace(value), `"'`)
		switch key {
		case "alwaysApply":
			r.always = value == "true"
		case "trigger":
			r.always = value == "always_on"
		case "description":
			r.description = beginning(value, maxDescription)
		case "globs", "applyTo", "paths":
			r.globs = bounded(append(r.globs, patterns(value)...))
			declared = true
		}
	}
	return declared
}

// bounded returns the patterns that are within the limits.
func bounded(all []string) []string {
	all = slices.DeleteFunc(all, func(p string) bool { return len(p) > maxPattern })
	return all[:min(len(all), maxPatterns)]
}

// patterns splits a list of patterns at commas outside of braces.
func patterns(value string) (all []string) {
	depth, start := 0, 0
	value = strings.Trim(value, "[]")
	for i, c := range value + "," {
		switch {
		case c == '{':
			depth++
		case c == '}':
			depth--
		case c == ',' && depth <= 0:
			if p := strings.Trim(strings.TrimSpace(value[start:i]), `"'`); p != "" {
				all = append(all, p)
			}
			start = i + 1
		}
	}
	return all
}

// frontMatter splits a text at the lines --- around its front matter.
func frontMatter(text string) (head, body string, ok bool) {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	rest, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return "", text, false
	}
	head, body, ok = strings.Cut("\n"+rest, "\n---")
	if !ok {
		return "", text, false
	}
	return head, strings.TrimLeft(body, "-"), true
}

// compiled returns the patterns of a rule. A pattern with a mistake matches nothing.
func compiled(patterns []string) (all []glob.Glob) {
	for _, p := range patterns {
		if g, err := glob.Compile(p); err == nil {
			all = append(all, g)
		}
	}
	return all
}

// matches reports whether a path, relative to the directory of a rule, is one that the rule
// is about.
func matches(globs []glob.Glob, name string) bool {
	return slices.ContainsFunc(globs, func(g glob.Glob) bool { return g.Match(path.Clean(name)) })
}
