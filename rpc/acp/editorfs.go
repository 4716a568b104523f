package acp

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/internal/pathresolve"
	"lashd/rpc/protocol"
)

// maxLines is how many lines of a file come at once.
const maxLines = 2000

func succeeded(format string, args ...any) protocol.ToolOutput {
	return protocol.Succeed(fmt.Sprintf(format, args...))
}

// failed is what the editor could not do.
func failed(ctx context.Context, doing string, err error) protocol.ToolOutput {
	if ctx.Err() != nil {
		return protocol.ToolOutput{Status: protocol.OutputCancelled, Text: doing + ": cancelled"}
	}
	return protocol.Fail(protocol.FailIO, "editor_refused", doing+": "+requestError(err).Message, protocol.FromTool)
}

func refused(code, format string, args ...any) *protocol.ToolOutput {
	out := protocol.Fail(protocol.FailInvalidRequest, code, fmt.Sprintf(format, args...), protocol.FromTool)
	return &out
}

// inside is a path as the editor takes it. What is outside of the workspace, or leads there, is refused, as lashd's own tools do.
func (c *editorCalls) inside(path string) (string, *protocol.ToolOutput) {
	absolute := c.view.absolute(path)
	if !below(c.cwd, absolute) {
		return "", refused("outside_workspace", "%s is outside the workspace %s", path, c.cwd)
	}
	leads, err := pathresolve.Real(absolute)
	if err != nil {
		return "", refused("outside_workspace", "cannot resolve %s: %v", path, err)
	}
	if top, err := pathresolve.Real(c.cwd); err != nil || !below(top, leads) {
		return "", refused("outside_workspace", "%s is a link to a place outside the workspace %s", path, c.cwd)
	}
	return absolute, nil
}

func below(top, path string) bool {
	rel, err := filepath.Rel(top, path)
	return err == nil && filepath.IsLocal(rel)
}

func (c *editorCalls) readFile(ctx context.Context, _ sdk.ToolCallId, a editorArgs) protocol.ToolOutput {
	path, no := c.inside(a.Path)
	if no != nil {
		return *no
	}
	first, limit := 1, maxLines
	if a.Offset != nil {
		first = max(*a.Offset, 1)
	}
	if a.Limit != nil {
		limit = min(max(*a.Limit, 1), maxLines)
	}
	wanted := limit + 1 // one more tells whether there are more
	text, err := c.editorText(ctx, sdk.ReadTextFileRequest{Path: path, Line: &first, Limit: &wanted})
	if err != nil {
		return failed(ctx, "read "+a.Path, err)
	}
	return protocol.Succeed(numbered(text, first, limit))
}

func (c *editorCalls) editorText(ctx context.Context, p sdk.ReadTextFileRequest) (string, error) {
	p.SessionId = sdk.SessionId(c.id)
	r, err := sdk.SendRequest[sdk.ReadTextFileResponse](c.conn, ctx, sdk.ClientMethodFsReadTextFile, p)
	return r.Content, err
}

// numbered is text as lashd's own read shows it.
func numbered(text string, first, limit int) string {
	var out strings.Builder
	n := 0
	for line := range strings.Lines(text) {
		if n == limit {
			fmt.Fprintf(&out, "[There are more lines. Continue with offset %d.]\n", first+limit)
			break
		}
		fmt.Fprintf(&out, "%6d\t%s\n", first+n, strings.TrimRight(line, "\r\n"))
		n++
	}
	return cmp.Or(out.String(), "[The file is empty or has no lines in this range.]\n")
}

func (c *editorCalls) writeFile(ctx context.Context, _ sdk.ToolCallId, a editorArgs) protocol.ToolOutput {
	path, no := c.inside(a.Path)
	if no != nil {
		return *no
	}
	if err := c.putText(ctx, path, a.Content); err != nil {
		return failed(ctx, "write "+a.Path, err)
	}
	return succeeded("Wrote %s: %d bytes.", a.Path, len(a.Content))
}

func (c *editorCalls) putText(ctx context.Context, path, content string) error {
	p := sdk.WriteTextFileRequest{SessionId: sdk.SessionId(c.id), Path: path, Content: content}
	return c.conn.SendRequestNoResult(ctx, sdk.ClientMethodFsWriteTextFile, p)
}

func (c *editorCalls) editFile(ctx context.Context, _ sdk.ToolCallId, a editorArgs) protocol.ToolOutput {
	path, no := c.inside(a.Path)
	if no != nil {
		return *no
	}
	text, err := c.editorText(ctx, sdk.ReadTextFileRequest{Path: path})
	if err != nil {
		return failed(ctx, "edit "+a.Path, err)
	}
	found := strings.Count(text, a.Old)
	switch {
	case found == 0:
		return *refused("not_found", "the old text is not in %s", a.Path)
	case found > 1 && !a.ReplaceAll:
		return *refused("not_unique", "the old text is in %s %d times; include more surrounding text, or set replaceAll", a.Path, found)
	}
	if err := c.putText(ctx, path, strings.ReplaceAll(text, a.Old, a.New)); err != nil {
		return failed(ctx, "edit "+a.Path, err)
	}
	return succeeded("Changed %s in %d places.", a.Path, found)
}
