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

// maxLines is the maximum number of lines that one read returns, also if the model
// asks for more.
const maxLines = 2000

func succeeded(format string, args ...any) protocol.ToolOutput {
	return protocol.Succeed(fmt.Sprintf(format, args...))
}

// failed is the output of a call that the editor rejected or could not finish.
// doing names the action and begins the message. If ctx is done, the output says
// cancelled instead, whatever err is.
func failed(ctx context.Context, doing string, err error) protocol.ToolOutput {
	if ctx.Err() != nil {
		return protocol.ToolOutput{Status: protocol.OutputCancelled, Text: doing + ": cancelled"}
	}
	return protocol.Fail(protocol.FailIO, "editor_refused", doing+": "+requestError(err).Message, protocol.FromTool)
}

// refused is the output of a call that lashd rejects before the editor sees it, or
// because the file does not match.
func refused(code, format string, args ...any) *protocol.ToolOutput {
	out := protocol.Fail(protocol.FailInvalidRequest, code, fmt.Sprintf(format, args...), protocol.FromTool)
	return &out
}

// inside returns path in absolute form, as the editor wants it. Paths outside the
// workspace are rejected, and so are links that lead outside, as in lashd's own
// tools. On rejection the second result is the output of the call.
func (c *editorCalls) inside(path string) (string, *protocol.ToolOutput) {
	absolute := c.view.absolute(path)
	if !below(c.cwd, absolute) {
		return "", refused("outside_workspace", "%s is outside the workspace %s", path, c.cwd)
	}
	leads, err := pathresolve.Real(absolute)
	if err != nil {
		return "", refused("outside_workspace", "cannot resolve %s: %v", path, err)
	}
	if pathresolve.CheckWorkspace(c.cwd) != nil || !below(c.cwd, leads) {
		return "", refused("outside_workspace", "%s is a link to a place outside the workspace %s", path, c.cwd)
	}
	return absolute, nil
}

// below reports whether path is top or inside it, by name alone; it does not
// follow links.
func below(top, path string) bool {
	rel, err := filepath.Rel(top, path)
	return err == nil && filepath.IsLocal(rel)
}

// readFile returns lines of a file as the editor has it, with unsaved changes,
// numbered like the output of lashd's own read tool.
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
	wanted := limit + 1 // one more line shows whether the file continues
	text, err := c.editorText(ctx, sdk.ReadTextFileRequest{Path: path, Line: &first, Limit: &wanted})
	if err != nil {
		return failed(ctx, "read "+a.Path, err)
	}
	return protocol.Succeed(numbered(text, first, limit))
}

// editorText asks the editor for the text of a file. It sets the session id of p.
func (c *editorCalls) editorText(ctx context.Context, p sdk.ReadTextFileRequest) (string, error) {
	p.SessionId = sdk.SessionId(c.id)
	r, err := sdk.SendRequest[sdk.ReadTextFileResponse](c.conn, ctx, sdk.ClientMethodFsReadTextFile, p)
	return r.Content, err
}

// numbered formats lines like lashd's own read tool: the line number, a tab and
// the line. first is the number of the first line. If text has more than limit
// lines, a note with the next offset replaces the rest.
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

// writeFile replaces or creates a file through the editor, which shows it in an
// open buffer or saves it, as it likes.
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

// editFile replaces text in a file through the editor. It reads and writes the
// whole file in two requests, so a change that the user makes between them is
// lost.
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
