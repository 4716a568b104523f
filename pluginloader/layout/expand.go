package layout

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Variables are values that a text can name.
type Variables struct {
	Root    string // directory of the plugin
	Dir     string // directory of a skill
	Project string // directory of the session
	Session string // id of the session
}

// placeholder matches a part of a text that is replaced.
var placeholder = regexp.MustCompile(`\\?\$(?:ARGUMENTS\[(\d+)\]|ARGUMENTS\b|(\d+)|\{(\w+)\}|([a-z_][A-Za-z0-9_-]*))`)

// maxExpanded is the most bytes that arguments and variables add to a prompt. A text can name the arguments thousands of times.
const maxExpanded = 1 << 20

// Expand returns the text of a prompt with its arguments. Arguments that the text does not name follow it. A backslash before a
// placeholder keeps it. Placeholders over maxExpanded stay.
func (p *Prompt) Expand(arguments string, v Variables) string {
	given, used, size := shellWords(arguments), false, 0
	out := placeholder.ReplaceAllStringFunc(p.Body, func(found string) string {
		if strings.HasPrefix(found, `\`) {
			return found[1:]
		}
		value, ok, argument := p.value(placeholder.FindStringSubmatch(found), arguments, given, v)
		used = used || argument
		if size += len(value); !ok || size > maxExpanded {
			return found
		}
		return value
	})
	if !used && strings.TrimSpace(arguments) != "" {
		out += "\n\nARGUMENTS: " + arguments
	}
	return out
}

// Resolve returns the text of a prompt in which only variables are replaced, for a model that reads it without arguments.
func (p *Prompt) Resolve(v Variables) string {
	return placeholder.ReplaceAllStringFunc(p.Body, func(found string) string {
		if value, ok := v.of(placeholder.FindStringSubmatch(found)[3]); ok && found[0] == '$' {
			return value
		}
		return found
	})
}

// value returns the value of a placeholder, whether it has one, and whether it is an argument.
func (p *Prompt) value(m []string, arguments string, given []string, v Variables) (value string, ok, argument bool) {
	at := func(i int) string {
		if i >= 0 && i < len(given) {
			return given[i]
		}
		return ""
	}
	switch {
	case m[1] != "":
		n, _ := strconv.Atoi(m[1]) // only digits; a number too large is beyond the arguments
		return at(n), true, true
	case m[2] != "":
		n, _ := strconv.Atoi(m[2])
		if p.Kind == Skill || strings.Contains(p.Body, "$0") {
			return at(n), true, true // as Claude Code does by now; commands once counted from 1
		}
		return at(n - 1), true, true
	case m[3] != "":
		value, ok = v.of(m[3])
		return value, ok, false
	case m[4] != "":
		i := slices.Index(p.Arguments, m[4])
		return at(i), i >= 0, i >= 0
	}
	return arguments, true, true
}

// of returns the value of a variable.
func (v Variables) of(name string) (string, bool) {
	switch name {
	case "CLAUDE_PLUGIN_ROOT", "PLUGIN_ROOT":
		return v.Root, v.Root != ""
	case "CLAUDE_SKILL_DIR":
		return v.Dir, v.Dir != ""
	case "CLAUDE_PROJECT_DIR":
		return v.Project, v.Project != ""
	case "CLAUDE_SESSION_ID":
		return v.Session, v.Session != ""
	}
	return "", false
}

// shellWords splits arguments at white space, except in quotes.
func shellWords(s string) (all []string) {
	var b strings.Builder
	quote, begun := rune(0), false
	for _, r := range s {
		switch {
		case quote == 0 && (r == '"' || r == '\''):
			quote, begun = r, true
		case quote == r:
			quote = 0
		case quote == 0 && strings.ContainsRune(" \t\n", r):
			if begun {
				all = append(all, b.String())
			}
			b.Reset()
			begun = false
		default:
			b.WriteRune(r)
			begun = true
		}
	}
	if begun {
		all = append(all, b.String())
	}
	return all
}

// inline matches a command that other agents run before they send the text.
var inline = regexp.MustCompile("(?m)(?:^|[ \t])!`([^`\n]+)`|^```!\n((?s:.*?))\n```$")

// Commands returns the commands in a text that the model must run first, in order and each once.
func Commands(text string) (all []string) {
	for _, m := range inline.FindAllStringSubmatch(text, -1) {
		if c := strings.TrimSpace(m[1] + m[2]); !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}
