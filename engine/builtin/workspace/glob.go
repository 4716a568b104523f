package workspace

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"lashd/rpc/protocol"
)

// globFiles is the number of files in a result.
const globFiles = 100

// describeGlob is the description of glob that the model reads.
const describeGlob = "Find files of the workspace by name, newest first, at most 100. In the pattern, * matches within a name " +
	"and ** matches across directories. A pattern without a slash matches in every directory. Files that git ignores are skipped."

// globArgs are the arguments of glob.
// The schema of the tool is inferred from the struct.
type globArgs struct {
	Pattern string `json:"pattern" jsonschema:"for example **/*_test.go or src/**/*.{ts,tsx}"`
	Path    string `json:"path,omitempty" jsonschema:"directory to search, to which the pattern is relative (default: the workspace)"`
}

// globValue is the structured result of glob. Total counts all matches, also those beyond
// globFiles.
type globValue struct {
	Paths []string `json:"paths"`
	Total int      `json:"total"`
}

// glob is the glob tool. It walks the directory, collects matching files that git does not
// ignore, and returns the newest ones. Directories and links to them are not matched.
// Files of equal age are sorted by path. The search needs memory for all matches, because the
// newest one may come last.
func (f *files) glob(ctx context.Context, req request[globArgs]) (protocol.ToolOutput, error) {
	pattern, err := compile(req.args.Pattern)
	if err != nil {
		return protocol.ToolOutput{}, fmt.Errorf("glob: %w", err)
	}
	top, err := req.view.directory(req.args.Path)
	if err != nil {
		return protocol.ToolOutput{}, fmt.Errorf("glob in %s: %w", req.args.Path, err)
	}
	defer top.dir.close()
	type hit struct {
		path string
		at   time.Time
	}
	var hits []hit
	w := req.view.walk(top, func(e found, ignored bool) (bool, error) {
		if ignored {
			return false, nil
		}
		if !e.info.IsDir() && pattern.Match(under(top.path(), e.path)) {
			hits = append(hits, hit{strings.ToValidUTF8(e.path, "\uFFFD"), e.info.ModTime()})
		}
		return true, nil
	})
	if err := w.run(ctx, top.dir); err != nil {
		return protocol.ToolOutput{}, fmt.Errorf("glob: %w", err)
	}
	slices.SortFunc(hits, func(a, b hit) int { return cmp.Or(b.at.Compare(a.at), strings.Compare(a.path, b.path)) })
	value := globValue{Paths: []string{}, Total: len(hits)}
	var text strings.Builder
	for _, h := range hits[:min(globFiles, len(hits))] {
		value.Paths = append(value.Paths, h.path)
		text.WriteString(h.path + "\n")
	}
	switch {
	case len(hits) == 0:
		text.WriteString("[No matching files.]\n")
	case len(hits) > globFiles:
		fmt.Fprintf(&text, "[These are the newest %d of %d files.]\n", globFiles, len(hits))
	}
	text.WriteString(w.note())
	return withValue(text.String(), value)
}
