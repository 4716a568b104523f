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

// shownCall is a tool call that an editor was shown, and that has not ended.
type shownCall struct {
	output   string // the newest of what it has put out
	terminal string // of the editor, in which it runs
	below    bool   // it is of a session that works for this one
	asked    bool   // it waits for a person's permission
}

// maxProgress is how much of what a call puts out is shown while it runs.
const maxProgress = 8 << 10

// callID names a call in a session: what models call them is unique in a turn only.
func callID(turn protocol.TurnID, id protocol.CallID) sdk.ToolCallId {
	return sdk.ToolCallId(string(turn) + "/" + string(id))
}

// call shows how far a tool call is.
func (v *view) call(item *protocol.Item) []update {
	id := callID(item.TurnID, item.CallID)
	if item.Kind == protocol.ItemCodeCell {
		id = sdk.ToolCallId(item.ID)
	}
	u := v.begun(id, item.Tool, item.Args, item.Output == nil)
	u.Status = statusOf(item.Status)
	if item.Kind == protocol.ItemCodeCell {
		u.Title, u.Kind, u.Content = "code", sdk.ToolKindExecute, textContent(item.Text)
	}
	known := v.calls[id]
	asked := item.Status == protocol.ItemInProgress && v.unasked[id]
	if asked {
		u.Status = sdk.ToolCallStatusPending
	}
	if out := item.Output; out != nil {
		u.RawOutput = out
		u.Content, u.Locations = v.result(known, out, u.Content, u.Locations)
	}
	if item.Status == protocol.ItemInProgress && known == nil {
		v.calls[id] = &shownCall{asked: asked}
	} else if item.Status != protocol.ItemInProgress {
		delete(v.calls, id)
	}
	if known == nil {
		return []update{u}
	}
	return []update{changed(u)}
}

// begun is a call as it is before anything has come of it. fresh says that files are still as it found them.
func (v *view) begun(id sdk.ToolCallId, name string, args json.RawMessage, fresh bool) *sdk.SessionUpdateToolCall {
	a := argumentsOf(args)
	u := &sdk.SessionUpdateToolCall{
		ToolCallId: id, Title: a.title(name), Kind: sdk.ToolKind(v.kinds.of(name)),
		Status: sdk.ToolCallStatusPending, Content: v.intended(a, fresh), SessionUpdate: "tool_call",
	}
	if len(args) > 0 {
		u.RawInput = args
	}
	if a.Path != "" {
		u.Locations = []sdk.ToolCallLocation{{Path: v.absolute(a.Path), Line: a.line()}}
	}
	return u
}

// changed is a call that the editor knows, as an update of it.
func changed(u *sdk.SessionUpdateToolCall) *sdk.SessionToolCallUpdate {
	return &sdk.SessionToolCallUpdate{
		ToolCallId: u.ToolCallId, Title: &u.Title, Kind: &u.Kind, Status: &u.Status, Content: u.Content,
		Locations: u.Locations, RawInput: u.RawInput, RawOutput: u.RawOutput, SessionUpdate: "tool_call_update",
	}
}

func statusOf(s protocol.ItemStatus) sdk.ToolCallStatus {
	switch s {
	case protocol.ItemInProgress:
		return sdk.ToolCallStatusInProgress
	case protocol.ItemDone:
		return sdk.ToolCallStatusCompleted
	}
	return sdk.ToolCallStatusFailed
}

// result is what is shown of an output: the terminal that it came from, what it changed, or what the model reads.
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
			before = nil // it stays as it was shown
		}
		return before, at
	}
	return textContent(out.Text), at
}

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

func textContent(text string) []sdk.ToolCallContent {
	if text == "" {
		return nil
	}
	return []sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock(text))}
}

// progress adds what a call puts out while it runs.
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

// arguments are those that tools have in common, as far as people see them.
type arguments struct {
	Path, Command, Pattern, URL string
	Offset                      int
	Old, New, Content           *string
}

// argumentsOf takes each argument that has the type which is common for it: another tool may mean something else by the name.
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

// textOf is a text, or nil if it is something else.
func textOf(raw json.RawMessage) *string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return nil
	}
	return &s
}

// maxTitle is how long a title is, in bytes.
const maxTitle = 120

func (a arguments) title(tool string) string {
	subject := cmp.Or(a.Command, a.Pattern, a.Path, a.URL)
	title := strings.Join(strings.Fields(tool+" "+subject), " ")
	if len(title) > maxTitle {
		title = strings.ToValidUTF8(title[:maxTitle], "") + "..."
	}
	return cmp.Or(title, "tool")
}

func (a arguments) line() *int {
	if a.Offset < 1 {
		return nil
	}
	return &a.Offset
}

// intended is the change that a call is for, as far as its arguments tell.
func (v *view) intended(a arguments, fresh bool) []sdk.ToolCallContent {
	switch {
	case a.Path == "":
	case a.Old != nil && a.New != nil:
		return []sdk.ToolCallContent{sdk.ToolDiffContent(v.absolute(a.Path), *a.New, *a.Old)}
	case a.Content != nil:
		path := v.absolute(a.Path)
		if old, ok := present(path); ok && fresh {
			return []sdk.ToolCallContent{sdk.ToolDiffContent(path, *a.Content, old)}
		}
		return []sdk.ToolCallContent{sdk.ToolDiffContent(path, *a.Content)}
	}
	return nil
}

// maxShown is how big a file may be to be shown whole.
const maxShown = 1 << 20

// present is what is in a file now, if that can be shown.
func present(path string) (string, bool) {
	text, err := deadline.Do(context.Background(), showLimit, errHangs, func(context.Context) (string, error) {
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

// showLimit is how long the editor waits for what a file holds: a file system that hangs holds it no longer.
const showLimit = 5 * time.Second

var errHangs = errors.New("reading the file took longer than " + showLimit.String())

func (v *view) absolute(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(v.cwd, path)
}
