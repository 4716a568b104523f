// Package glob matches names of files against patterns.
package glob

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// Glob is a compiled pattern of paths with slashes: * and ? stay within a name, ** crosses directories, [a-z] and {a,b} work as
// in a shell. Without a slash it is matched against the last component, wherever it is.
type Glob struct {
	re   *regexp.Regexp // nil: the pattern is text, which may stand after a *
	text string
	star bool
	base bool
}

// Compile makes a Glob. Its error says what is wrong with the pattern.
func Compile(pattern string) (Glob, error) { return compile(pattern, true) }

// compile makes a Glob in which {a,b} is a choice, or text.
func compile(pattern string, choices bool) (Glob, error) {
	pattern = strings.TrimPrefix(strings.TrimPrefix(pattern, "./"), "/")
	if pattern == "" {
		return Glob{}, errors.New("the pattern is empty")
	}
	if strings.HasSuffix(pattern, "/") {
		pattern += "**"
	}
	base := !strings.Contains(pattern, "/")
	if text, star := strings.CutPrefix(pattern, "*"); !strings.ContainsAny(text, `*?[\`) && !(choices && strings.Contains(text, "{")) {
		return Glob{text: text, star: star, base: base}, nil // most patterns are like that, and it takes a twentieth of the time
	}
	var out strings.Builder
	out.WriteString(`^(?s:`)
	depth := 0
	for i := 0; i < len(pattern); {
		n := token(&out, pattern[i:], choices, &depth)
		if n == 0 {
			return Glob{}, fmt.Errorf("the pattern %q has a [ that is not closed", pattern)
		}
		i += n
	}
	if depth != 0 {
		return Glob{}, fmt.Errorf("the pattern %q has a { that is not closed", pattern)
	}
	out.WriteString(`)$`)
	re, err := regexp.Compile(out.String())
	if err != nil {
		return Glob{}, fmt.Errorf("the pattern %q cannot be understood: %v", pattern, err)
	}
	return Glob{re: re, base: base}, nil
}

// token translates the start of a pattern and says how long it was; 0 means that a bracket is not closed.
func token(out *strings.Builder, rest string, choices bool, depth *int) int {
	switch {
	case strings.HasPrefix(rest, "**/"):
		out.WriteString(`(?:.*/)?`)
		return 3
	case strings.HasPrefix(rest, "**"):
		out.WriteString(`.*`)
		return 2
	case rest[0] == '*':
		out.WriteString(`[^/]*`)
	case rest[0] == '?':
		out.WriteString(`[^/]`)
	case rest[0] == '{' && choices:
		*depth++
		out.WriteString(`(?:`)
	case rest[0] == '}' && *depth > 0:
		*depth--
		out.WriteString(`)`)
	case rest[0] == ',' && *depth > 0:
		out.WriteString(`|`)
	case rest[0] == '[':
		return class(out, rest)
	case rest[0] == '\\' && len(rest) > 1:
		literal(out, rest[1])
		return 2
	default:
		literal(out, rest[0])
	}
	return 1
}

// named is a class of characters that has a name.
var named = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\[:[a-z]+:\]`) })

// class translates what stands in brackets: a ] that comes first is one of the characters, and a slash is none of those that are left out.
func class(out *strings.Builder, rest string) int {
	i, open := 1, "["
	if strings.HasPrefix(rest[i:], "!") || strings.HasPrefix(rest[i:], "^") {
		i, open = 2, "[^/"
	}
	out.WriteString(open)
	for first := i; i < len(rest); i++ {
		switch name := named().FindString(rest[i:]); {
		case rest[i] == ']' && i > first:
			out.WriteByte(']')
			return i + 1
		case name != "":
			out.WriteString(name)
			i += len(name) - 1
		case rest[i] == '\\' && i+1 < len(rest):
			i++
			literal(out, rest[i])
		case rest[i] == '-':
			out.WriteByte('-')
		default:
			literal(out, rest[i])
		}
	}
	return 0
}

// literal writes a byte that means nothing to a regular expression, be it a part of a character.
func literal(out *strings.Builder, c byte) {
	if c < 0x80 {
		fmt.Fprintf(out, `\x%02x`, c)
		return
	}
	out.WriteByte(c)
}

// Match tells whether a path fits.
func (g Glob) Match(p string) bool {
	if g.base {
		p = p[strings.LastIndexByte(p, '/')+1:]
	}
	switch {
	case g.re != nil:
		return g.re.MatchString(p)
	case g.star:
		stem, ok := strings.CutSuffix(p, g.text)
		return ok && !strings.Contains(stem, "/")
	}
	return p == g.text
}

// Anchored is the same pattern, matched against the whole path even if it has no slash.
func (g Glob) Anchored() Glob {
	g.base = false
	return g
}
