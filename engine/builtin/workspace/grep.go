package workspace

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strings"

	"lashd/internal/glob"
	"lashd/rpc/protocol"
)

const (
	// grepResults and grepMost are the default and the maximum number of matches, grepChars
	// the length of a shown line.
	grepResults = 20
	grepMost    = 200
	grepChars   = 180
)

// describeGrep is the description of grep that the model reads.
const describeGrep = "Search text files of the workspace for a regular expression (RE2 syntax), line by line. Returns 20 matches " +
	"by default, and the offset of the next ones. Files that git ignores, binary files and files over 10 MiB are skipped."

// grepArgs are the arguments of grep.
// The schema of the tool is inferred from the struct. A limit above grepMost counts as grepMost.
type grepArgs struct {
	Pattern    string `json:"pattern" jsonschema:"regular expression, matched within a line"`
	Path       string `json:"path,omitempty" jsonschema:"file or directory to search (default: the workspace)"`
	Include    string `json:"include,omitempty" jsonschema:"search only files that match this pattern, such as *.go or src/**/*.ts"`
	IgnoreCase bool   `json:"ignoreCase,omitempty" jsonschema:"ignore case"`
	Limit      int    `json:"limit,omitempty" jsonschema:"number of matches, at most 200 (default: 20)"`
	Offset     int    `json:"offset,omitempty" jsonschema:"number of matches to skip"`
}

// grepMatch is one matching line. Line counts from 1.
// Text is the part of the line around the match, at most grepChars characters.
type grepMatch struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// grepValue is the structured result of grep.
// Next is the offset of the next page; 0 if there are no more matches.
type grepValue struct {
	Matches []grepMatch `json:"matches"`
	Next    int         `json:"nextOffset,omitempty"`
}

// grep is the grep tool. It returns matching lines in the order of the walk, so the offset
// of the next page stays valid while the files do not change.
func (f *files) grep(ctx context.Context, req request[grepArgs]) (protocol.ToolOutput, error) {
	s, err := newSearch(req)
	if err != nil {
		return protocol.ToolOutput{}, fmt.Errorf("grep: %w", err)
	}
	note, err := s.run(ctx)
	if err != nil {
		return protocol.ToolOutput{}, fmt.Errorf("grep in %s: %w", cmp.Or(req.args.Path, "the workspace"), err)
	}
	value := grepValue{Matches: s.hits}
	var text strings.Builder
	for _, m := range s.hits {
		fmt.Fprintf(&text, "%s:%d: %s\n", m.Path, m.Line, m.Text)
	}
	switch {
	case s.more:
		value.Next = req.args.Offset + len(s.hits)
		fmt.Fprintf(&text, "[There are more matches. Continue with offset %d.]\n", value.Next)
	case len(s.hits) == 0:
		text.WriteString("[No matches.]\n")
	}
	return withValue(text.String()+note, value)
}

// search is one run of grep.
// It is used by one goroutine.
type search struct {
	view    *view
	path    string
	re      *regexp.Regexp
	include *glob.Glob
	// skip is the number of matches still to skip, limit the number to return.
	skip  int
	limit int
	hits  []grepMatch
	// more means that there is a match beyond the limit.
	more bool
}

// newSearch validates the arguments of grep.
// It sets the default limit and reduces a larger one to grepMost. An invalid expression or
// pattern is a refusal that the model can correct.
func newSearch(req request[grepArgs]) (*search, error) {
	a := req.args
	if a.Limit < 0 || a.Offset < 0 {
		return nil, refuse("invalid_arguments", "limit and offset must not be negative")
	}
	expr := a.Pattern
	if a.IgnoreCase {
		expr = "(?i)" + expr
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, refuse("invalid_pattern", "%v", err)
	}
	s := &search{view: req.view, path: a.Path, re: re, skip: a.Offset, hits: []grepMatch{}}
	s.limit = min(cmp.Or(a.Limit, grepResults), grepMost)
	if a.Include != "" {
		g, err := compile(a.Include)
		if err != nil {
			return nil, err
		}
		s.include = &g
	}
	return s, nil
}

// run searches a file or a tree. note tells the model if the walk was incomplete. In a tree
// it skips binary, large and unreadable files; for a single file these are errors.
// The include pattern is relative to the searched directory and does not apply to a single file.
func (s *search) run(ctx context.Context) (note string, err error) {
	top, err := s.view.locate(s.path)
	if err != nil {
		return "", err
	}
	defer top.dir.close()
	if top.info == nil || !top.info.IsDir() {
		data, err := s.view.content(top)
		if err != nil {
			return "", err
		}
		if binary(data[:min(sniff, len(data))]) {
			return "", refuse("binary_file", "this is a binary file; grep searches only text")
		}
		s.file(ctx, top.path(), data)
		return "", ctx.Err()
	}
	w := s.view.walk(top, func(e found, ignored bool) (bool, error) {
		if ignored {
			return false, nil
		}
		if !e.info.Mode().IsRegular() || e.info.Size() > maxFile {
			return true, nil
		}
		if s.include != nil && !s.include.Match(under(top.path(), e.path)) {
			return false, nil
		}
		data, err := s.view.content(e.place())
		if err != nil || binary(data[:min(sniff, len(data))]) {
			return false, nil // skip an unreadable or changing file; others may match
		}
		return false, s.file(ctx, e.path, data)
	})
	err = w.run(ctx, top.dir)
	return w.note(), err
}

// file searches one file. It returns errEnough after a match beyond the limit.
// name is the path that the matches show, data the whole content. It counts one match for each
// line, and checks ctx every 4096 lines.
func (s *search) file(ctx context.Context, name string, data []byte) error {
	// Most files have no match. Searching for the literal prefix of the expression rules them out fastest.
	if prefix, _ := s.re.LiteralPrefix(); !bytes.Contains(data, []byte(prefix)) {
		return nil
	}
	for n := 1; len(data) > 0; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		data = rest
		line = bytes.TrimSuffix(line, []byte("\r"))
		at := s.re.FindIndex(line)
		if at == nil {
			continue
		}
		if s.skip > 0 {
			s.skip--
			continue
		}
		if len(s.hits) == s.limit {
			s.more = true
			return errEnough
		}
		s.hits = append(s.hits, grepMatch{strings.ToValidUTF8(name, "\uFFFD"), n, around(string(line), at[0])})
	}
	return nil
}

// around returns the part of a line that shows the match at byte offset at.
// If the match is far from the start, the text begins a third of grepChars before it. Cut ends
// are marked with dots.
func around(line string, at int) string {
	start := 0
	if at > grepChars*2/3 {
		start = at - grepChars/3
	}
	text, left := clip(strings.ToValidUTF8(line[start:], ""), grepChars)
	if start > 0 {
		text = "..." + text
	}
	if left > 0 {
		text += "..."
	}
	return text
}
