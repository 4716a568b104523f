package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/internal/deadline"
	"lashd/internal/pathresolve"
	"lashd/rpc/protocol"
)

// shownCall is a tool call that the editor shows as unfinished.
type shownCall struct {
	output   string // the end of its output, at most maxProgress bytes
	terminal string // the editor's terminal in which it runs; empty for others
	below    bool   // the call belongs to a subagent
	asked    bool   // the call waits for approval

	code  string              // of a code cell
	calls protocol.CodeResult // newest calls of a code cell that runs
}

// maxProgress is the number of bytes of a running call's output that the editor
// shows. Each update sends all of it again.
const maxProgress = 8 << 10

// callID makes an id that is unique in a session. A model's call ids are unique
// only within a turn.
func callID(turn protocol.TurnID, id protocol.CallID) sdk.ToolCallId {
	return sdk.ToolCallId(string(turn) + "/" + string(id))
}

// call returns the updates for a tool call or a code cell as it is now: a new
// call, or a change of one that the editor knows.
func (v *view) call(item *protocol.Item) []update {
	id := callID(item.TurnID, item.CallID)
	if item.Kind == protocol.ItemCodeCell {
		id = sdk.ToolCallId(item.ID)
	}
	u := v.newCall(id, item.Tool, item.Args, item.Output == nil)
	u.Title, u.Status = callTitle(item.Title, item.Tool, item.Args, item.Status), statusOf(item.Status)
	if item.Kind == protocol.ItemCodeCell {
		u.Title, u.Kind, u.Content = "code", sdk.ToolKindExecute, cellContent(item.Text, item.Cell)
	}
	known := v.calls[id]
	asked := item.Status == protocol.ItemInProgress && v.pendingApprovals[id]
	if asked {
		u.Title, u.Status = callTitle(item.Title, item.Tool, item.Args, ""), sdk.ToolCallStatusPending
	}
	if out := item.Output; out != nil {
		u.RawOutput = out
		u.Content, u.Locations = v.result(known, out, u.Content, u.Locations)
	}
	if item.Status == protocol.ItemInProgress && known == nil {
		v.calls[id] = &shownCall{asked: asked, code: item.Text}
	} else if item.Status == protocol.ItemInProgress {
		known.code = cmp.Or(item.Text, known.code)
	} else if item.Status != protocol.ItemInProgress {
		delete(v.calls, id)
	}
	if known == nil {
		return []update{u}
	}
	return []update{changed(u)}
}

// newCall describes a call without its title and its result, which waits: kind, arguments and the
// change it proposes. fresh means that the call has not run, so that the file on
// disk still has its old contents.
func (v *view) newCall(id sdk.ToolCallId, name string, args json.RawMessage, fresh bool) *sdk.SessionUpdateToolCall {
	a := argumentsOf(args)
	u := &sdk.SessionUpdateToolCall{
		ToolCallId: id, Kind: sdk.ToolKind(v.kinds.of(name)),
		Status: sdk.ToolCallStatusPending, Content: v.proposedChange(a, fresh), SessionUpdate: "tool_call",
	}
	if len(args) > 0 {
		u.RawInput = args
	}
	if a.Path != "" {
		u.Locations = []sdk.ToolCallLocation{{Path: v.absolute(a.Path), Line: a.line()}}
	}
	return u
}

// changed converts a call into an update of a call that the editor already shows.
func changed(u *sdk.SessionUpdateToolCall) *sdk.SessionToolCallUpdate {
	return &sdk.SessionToolCallUpdate{
		ToolCallId: u.ToolCallId, Title: &u.Title, Kind: &u.Kind, Status: &u.Status, Content: u.Content,
		Locations: u.Locations, RawInput: u.RawInput, RawOutput: u.RawOutput, SessionUpdate: "tool_call_update",
	}
}

// statusOf maps the status of an item. All that is neither in progress nor done
// counts as failed.
func statusOf(s protocol.ItemStatus) sdk.ToolCallStatus {
	switch s {
	case protocol.ItemInProgress:
		return sdk.ToolCallStatusInProgress
	case protocol.ItemDone:
		return sdk.ToolCallStatusCompleted
	}
	return sdk.ToolCallStatusFailed
}

// result chooses the content that shows a call's output: its terminal, the diff of
// its change, the proposed diff if the call succeeded, or else the text that the
// model reads. before and at are the content and locations from the arguments.
func (v *view) result(known *shownCall, out *protocol.ToolOutput, before []sdk.ToolCallContent, at []sdk.ToolCallLocation) ([]sdk.ToolCallContent, []sdk.ToolCallLocation) {
	switch {
	case known != nil && known.terminal != "":
		return []sdk.ToolCallContent{sdk.ToolTerminalRef(known.terminal)}, at
	case out.Change != nil && out.Status == protocol.OutputSuccess:
		parts := v.changes(out.Change)
		if len(parts) == 0 {
			return textContent(out.Change.Diff), at
		}
		if at == nil {
			at = locationsOf(parts)
		}
		return parts, at
	case len(before) > 0 && out.Status == protocol.OutputSuccess && before[0].Diff != nil:
		if known != nil {
			before = nil // leave the diff that is shown
		}
		return before, at
	}
	return append(textContent(out.Text), v.images(out.Attachments)...), at
}

// locationsOf returns the files of a diff, each once, so that the editor can
// follow along.
func locationsOf(parts []sdk.ToolCallContent) []sdk.ToolCallLocation {
	var at []sdk.ToolCallLocation
	seen := map[string]bool{}
	for _, p := range parts {
		if p.Diff != nil && !seen[p.Diff.Path] {
			seen[p.Diff.Path] = true
			at = append(at, sdk.ToolCallLocation{Path: p.Diff.Path})
		}
	}
	return at
}

// textContent is text as the content of a tool call; nil for no text.
func textContent(text string) []sdk.ToolCallContent {
	if text == "" {
		return nil
	}
	return []sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock(text))}
}

// progress appends output of a running call. Output of calls that the editor does
// not show is dropped.
func (v *view) progress(ev *protocol.Event) []update {
	if ev.ToolCall == nil {
		return nil
	}
	id := callID(ev.TurnID, ev.ToolCall.CallID)
	c := v.calls[id]
	if c == nil {
		return nil
	}
	c.output += ev.Text
	if over := len(c.output) - maxProgress; over > 0 {
		c.output = strings.ToValidUTF8(c.output[over:], "")
	}
	return []update{&sdk.SessionToolCallUpdate{ToolCallId: id, Content: textContent(c.output), SessionUpdate: "tool_call_update"}}
}

// arguments are the argument names that tools commonly use. Titles, locations and
// diffs are made from them, for any tool.
type arguments struct {
	Path, Command, Pattern, URL string
	Offset                      int
	Old, New, Content           *string
}

// argumentsOf reads the arguments that have the expected type. A tool may use the
// same name for something else, so a wrong type is ignored.
func argumentsOf(args json.RawMessage) (a arguments) {
	var each map[string]json.RawMessage
	if json.Unmarshal(args, &each) != nil {
		return a
	}
	for name, into := range map[string]*string{"path": &a.Path, "command": &a.Command, "pattern": &a.Pattern, "url": &a.URL} {
		if s := textOf(each[name]); s != nil {
			*into = *s
		}
	}
	a.Old, a.New, a.Content = textOf(each["old"]), textOf(each["new"]), textOf(each["content"])
	if json.Unmarshal(each["offset"], &a.Offset) != nil {
		a.Offset = 0
	}
	return a
}

// textOf returns a JSON string, or nil if raw is anything else.
func textOf(raw json.RawMessage) *string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return nil
	}
	return &s
}

// maxTitle is the maximum length of a call's title in bytes, before the ellipsis.
const maxTitle = 120

// callTitle says on one line what a call does: "Ran npm test". Calls of tools that lashd does not know have the tool's name and the main
// argument. An empty status is that of a call that waits.
func callTitle(title *protocol.CallTitle, tool string, args json.RawMessage, status protocol.ItemStatus) string {
	if title != nil {
		return shortTitle(title.Line(status))
	}
	return argumentsOf(args).title(tool)
}

// title is the tool's name and its main argument, on one line.
func (a arguments) title(tool string) string {
	return cmp.Or(shortTitle(tool+" "+cmp.Or(a.Command, a.Pattern, a.Path, a.URL)), "tool")
}

// shortTitle puts a title on one line and cuts it.
func shortTitle(title string) string {
	title = strings.Join(strings.Fields(title), " ")
	if len(title) > maxTitle {
		title = strings.ToValidUTF8(title[:maxTitle], "") + "..."
	}
	return title
}

// line is the first line that a read starts from; nil if it is not given.
func (a arguments) line() *int {
	if a.Offset < 1 {
		return nil
	}
	return &a.Offset
}

// proposedChange returns the diff that the arguments of an edit or a write
// describe. For a write that has not run, the old text is read from disk. Other
// calls have none.
func (v *view) proposedChange(a arguments, fresh bool) []sdk.ToolCallContent {
	switch {
	case a.Path == "":
	case a.Old != nil && a.New != nil:
		return []sdk.ToolCallContent{sdk.ToolDiffContent(v.absolute(a.Path), *a.New, *a.Old)}
	case a.Content != nil:
		path := v.absolute(a.Path)
		if old, ok := fileText(path); ok && fresh {
			return []sdk.ToolCallContent{sdk.ToolDiffContent(path, *a.Content, old)}
		}
		return []sdk.ToolCallContent{sdk.ToolDiffContent(path, *a.Content)}
	}
	return nil
}

// maxShown is the size in bytes up to which a file's old contents are read for a
// diff.
const maxShown = 1 << 20

// fileText returns the contents of a regular file, for display. It returns false
// if the file is missing, too large or not regular, or cannot be read within
// readLimit.
func fileText(path string) (string, bool) {
	text, err := deadline.Do(context.Background(), readLimit, errReadTimeout, func(context.Context) (string, error) {
		f, err := pathresolve.OpenPath(path)
		if err != nil {
			return "", err
		}
		defer f.Close()
		data, err := io.ReadAll(io.LimitReader(f, maxShown+1))
		return string(data), err
	})
	return strings.ToValidUTF8(text, "\uFFFD"), err == nil && len(text) <= maxShown
}

// readLimit bounds reading a file for a diff, so that a hanging file system does
// not block the session's updates.
const readLimit = 5 * time.Second

var errReadTimeout = errors.New("reading the file took longer than " + readLimit.String())

// absolute resolves a path against the workspace. It does not follow links.
func (v *view) absolute(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(v.cwd, path)
}
