// Package glob matches paths against shell patterns and .gitignore files.
package glob

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// Glob is a compiled pattern for paths with slashes. * and ? match within a name, ** matches across
// directories, and [a-z] and {a,b} work as in a shell. A pattern without a slash is matched against
// the last component of a path. A Glob is safe for concurrent use.
type Glob struct {
	re   *regexp.Regexp // nil: the pattern is plain text, possibly after a *
	text string
	star bool // text follows a *
	base bool // match only the last component
}

// Compile compiles a pattern. Its error describes the mistake. A leading ./ or / is ignored, and a/
// means everything below a.
func Compile(pattern string) (Glob, error) { return compile(pattern, true) }

// compile compiles a pattern. choices says whether {a,b} is a choice or literal text, as in
// .gitignore.
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
		return Glob{text: text, star: star, base: base}, nil // the most frequent form; it takes a twentieth of the time
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

// token translates the first token of a pattern to a regular expression, and returns its length in
// bytes. 0 means that a bracket is not closed. depth counts open braces.
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

// named matches a named class of characters, such as [:alpha:].
var named = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\[:[a-z]+:\]`) })

// class translates a bracket expression and returns its length; 0: it is not closed. A ] in the
// first place is a member, and a negated class never matches a slash.
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

// literal writes one byte so that it has no meaning in a regular expression. Bytes of multi-byte
// characters are written as they are.
func literal(out *strings.Builder, c byte) {
	if c < 0x80 {
		fmt.Fprintf(out, `\x%02x`, c)
		return
	}
	out.WriteByte(c)
}

// Match reports whether the pattern matches a path. The path uses slashes and is relative, as the
// pattern is.
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

// Anchored returns a Glob that matches the whole path even if the pattern has no slash.
func (g Glob) Anchored() Glob {
	g.base = false
	return g
}
