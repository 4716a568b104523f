package workspace

import (
	"regexp"
	"strings"
)

// glob is a compiled file name pattern: * and ? stay within a name, ** crosses directories, [a-z] and {a,b} work as in a
// shell. Without a slash it is matched against the last component, wherever it is.
type glob struct {
	re   *regexp.Regexp
	base bool
}

func compileGlob(pattern string) (glob, error) {
	pattern = strings.TrimPrefix(strings.TrimPrefix(pattern, "./"), "/")
	if pattern == "" {
		return glob{}, refuse("invalid_pattern", "the pattern is empty")
	}
	if strings.HasSuffix(pattern, "/") {
		pattern += "**"
	}
	var out strings.Builder
	out.WriteString(`^(?s:`)
	depth := 0
	for i := 0; i < len(pattern); {
		n := globToken(&out, pattern[i:], &depth)
		if n == 0 {
			return glob{}, refuse("invalid_pattern", "the pattern %q has a [ that is not closed", pattern)
		}
		i += n
	}
	if depth != 0 {
		return glob{}, refuse("invalid_pattern", "the pattern %q has a { that is not closed", pattern)
	}
	out.WriteString(`)$`)
	re, err := regexp.Compile(out.String())
	if err != nil {
		return glob{}, refuse("invalid_pattern", "the pattern %q cannot be understood: %v", pattern, err)
	}
	return glob{re: re, base: !strings.Contains(pattern, "/")}, nil
}

// globToken translates the start of a pattern and says how long it was; 0 means that a bracket is not closed.
func globToken(out *strings.Builder, rest string, depth *int) int {
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
	case rest[0] == '{':
		*depth++
		out.WriteString(`(?:`)
	case rest[0] == '}' && *depth > 0:
		*depth--
		out.WriteString(`)`)
	case rest[0] == ',' && *depth > 0:
		out.WriteString(`|`)
	case rest[0] == '[':
		return globClass(out, rest)
	case rest[0] == '\\' && len(rest) > 1:
		out.WriteString(regexp.QuoteMeta(rest[1:2]))
		return 2
	case rest[0] < 0x80:
		out.WriteString(regexp.QuoteMeta(rest[:1]))
	default:
		out.WriteByte(rest[0]) // a part of a character that has no meaning in a regular expression
	}
	return 1
}

func globClass(out *strings.Builder, rest string) int {
	n := strings.IndexByte(rest[1:], ']')
	if n < 1 {
		return 0
	}
	class := strings.ReplaceAll(rest[1:n+1], `\`, `\\`)
	class = strings.ReplaceAll(class, "[", `\[`)
	if strings.HasPrefix(class, "!") {
		class = "^" + class[1:]
	}
	out.WriteString("[" + class + "]")
	return n + 2
}

func (g glob) match(p string) bool {
	if g.base {
		p = p[strings.LastIndexByte(p, '/')+1:]
	}
	return g.re.MatchString(p)
}

// ignore is the patterns of the workspace's own .gitignore. Those of directories below, and the user's, are not read.
type ignore []ignoreRule

type ignoreRule struct {
	glob
	dirOnly, keep bool
}

func parseIgnore(text string) ignore {
	var rules ignore
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		if line == "" || line[0] == '#' {
			continue
		}
		var r ignoreRule
		line, r.keep = strings.CutPrefix(line, "!")
		line, r.dirOnly = strings.CutSuffix(line, "/")
		anchored := strings.Contains(line, "/")
		g, err := compileGlob(line)
		if err != nil {
			continue // git too lets a pattern that makes no sense match nothing
		}
		r.glob = g
		r.base = !anchored
		rules = append(rules, r)
	}
	return rules
}

func (ig ignore) match(p string, dir bool) bool {
	ignored := false
	for _, r := range ig {
		if (dir || !r.dirOnly) && r.match(p) {
			ignored = !r.keep
		}
	}
	return ignored
}

// covers says whether p or a directory above it is ignored.
func (ig ignore) covers(p string) bool {
	for i, c := range p {
		if c == '/' && ig.match(p[:i], true) {
			return true
		}
	}
	return ig.match(p, true)
}
