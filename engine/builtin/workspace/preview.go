package workspace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"lashd/engine/tool"
	"lashd/internal/deadline"
	"lashd/rpc/protocol"
)

const (
	// previewPatience limits the time of a preview, so that a file system that hangs does not keep a question from a person.
	previewPatience = 10 * time.Second
	// maxPreview is the size in bytes after which the diffs of a preview are cut. An approval is stored, and sent to each client.
	maxPreview = 64 << 10
)

// errSlow is the problem of a preview that exceeded previewPatience.
var errSlow = errors.New("reading the files did not finish within " + previewPatience.String() + "; the file system may hang")

// Preview implements tool.Previewer.
func (f *files) Preview(ctx context.Context, call tool.Invocation) ([]protocol.FilePreview, *protocol.ToolOutput) {
	if plannerOf(call) == nil {
		return nil, nil
	}
	all, err := planned(ctx, f, call, func(p *plan) ([]protocol.FilePreview, error) {
		return previews(p.changes), nil
	})
	if err != nil {
		return f.problem(call, err)
	}
	return all, nil
}

// problem returns the preview of a call that cannot be planned: the files that it names, and why; and the result of the call if that is
// certain.
func (f *files) problem(call tool.Invocation, err error) (all []protocol.FilePreview, fails *protocol.ToolOutput) {
	subjects := f.Subjects(call.Name, call.Args)
	for _, about := range subjects {
		all = append(all, protocol.FilePreview{Path: about.Path, Kind: protocol.PreviewChange, Problem: strings.ToValidUTF8(err.Error(), "\uFFFD")})
	}
	if !certain(err) {
		return all, nil
	}
	path := ""
	if len(subjects) > 0 {
		path = subjects[0].Path
	}
	out := failed(explained(call.Name, path, err))
	return all, &out
}

// plannerOf returns the function that plans the changes of a call; nil if its tool changes no files. The function reads files.
func plannerOf(call tool.Invocation) func(*plan) error {
	switch call.Name {
	case "write":
		return planner(call.Args, (*plan).write)
	case "edit":
		return planner(call.Args, (*plan).edit)
	case "patch":
		return planner(call.Args, func(p *plan, a patchArgs) error {
			sections, err := parsePatch(a.Patch)
			if err != nil {
				return err
			}
			return p.patch(sections)
		})
	}
	return nil
}

// planner returns a function that decodes arguments and plans their changes.
func planner[A any](args json.RawMessage, make func(*plan, A) error) func(*plan) error {
	return func(p *plan) error {
		var a A
		if err := decode(args, &a); err != nil {
			return refuse("invalid_arguments", "arguments: %v", err)
		}
		return make(p, a)
	}
}

// planned plans the changes of a call and passes them to use, within previewPatience. Neither changes a file.
func planned[T any](ctx context.Context, f *files, call tool.Invocation, use func(*plan) (T, error)) (T, error) {
	return deadline.Do(ctx, previewPatience, errSlow, func(context.Context) (result T, err error) {
		v, err := f.view()
		if err != nil {
			return result, err
		}
		v.places, v.shown = call.Places, call.Shown
		p := &plan{view: v}
		defer p.close()
		if err := plannerOf(call)(p); err != nil {
			return result, err
		}
		return use(p)
	})
}

// previews returns what changes do, with diffs up to maxPreview bytes in all.
func previews(all []*change) []protocol.FilePreview {
	list, left := make([]protocol.FilePreview, len(all)), maxPreview
	for i, c := range all {
		list[i] = c.preview(&left)
	}
	return list
}

// preview returns what the change does. left is the number of bytes that diffs may still have.
func (c *change) preview(left *int) protocol.FilePreview {
	shown := protocol.FilePreview{Path: c.at.path(), Kind: protocol.PreviewChange, Binary: isBinary(c.before) || isBinary(c.after)}
	switch {
	case c.remove:
		shown.Kind = protocol.PreviewDelete
	case !c.exists():
		shown.Kind = protocol.PreviewCreate
	}
	if c.exists() {
		shown.Before = protocol.DigestOf(c.before)
	}
	if shown.Binary {
		return shown
	}
	a, b, hunks := c.hunks()
	for _, spans := range hunks {
		for _, s := range spans {
			shown.Added += s.b1 - s.b0
			shown.Removed += s.a1 - s.a0
		}
		if *left > 0 && !shown.Cut {
			shown.Hunks = append(shown.Hunks, shownHunk(a, b, spans, left, &shown.Cut))
		} else {
			shown.Cut = true
		}
	}
	return shown
}

// hunks returns the lines of the old and the new content, and the spans of each hunk. Binary files have no hunks.
func (c *change) hunks() (a, b []string, hunks [][]span) {
	if isBinary(c.before) || isBinary(c.after) {
		return nil, nil, nil
	}
	after := c.after
	if c.remove {
		after = nil
	}
	a, b = lines(string(c.before)), lines(string(after))
	return a, b, grouped(changes(a, b))
}

// shownHunk returns a hunk. It cuts the text after left bytes, at the end of a line, and reduces left.
func shownHunk(a, b []string, spans []span, left *int, cut *bool) protocol.Hunk {
	var out strings.Builder
	hunk(&out, a, b, spans)
	text := out.String()
	if len(text) > *left {
		text, *cut = text[:strings.LastIndexByte(text[:*left], '\n')+1], true
	}
	*left -= len(text)
	at := extentOf(a, b, spans)
	h := protocol.Hunk{OldStart: at.a0 + 1, OldLines: at.a1 - at.a0, NewStart: at.b0 + 1, NewLines: at.b1 - at.b0, Text: text}
	if h.OldLines == 0 { // as in a unified diff: after this line
		h.OldStart--
	}
	if h.NewLines == 0 {
		h.NewStart--
	}
	return h
}

// isBinary reports whether a content is not text that JSON can carry.
func isBinary(data []byte) bool {
	return bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data)
}

// asShown returns errNotShown if a person saw a change of the file, and the file had another content then.
func (v *view) asShown(c *change) error {
	was, ok := v.shown[c.at.path()]
	if !ok {
		return nil
	}
	now := protocol.Digest("")
	if c.exists() {
		now = protocol.DigestOf(c.before)
	}
	if now != was {
		return errNotShown
	}
	return nil
}
