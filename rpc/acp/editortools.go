package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/rpc/protocol"
)

// offered is a tool that runs in the editor. It replaces lashd's own tool of the
// same name while the editor is connected: it reads unsaved changes, and the user
// sees commands and edits in the editor.
type offered struct {
	protocol.ClientTool
	possible func(sdk.ClientCapabilities) bool // reports whether the editor has the methods that the tool needs
	// run performs a call. It must return soon after ctx is done, and returns
	// failures as output.
	run func(*editorCalls, context.Context, sdk.ToolCallId, editorArgs) protocol.ToolOutput
}

// editorArgs are the arguments of all these tools; each uses some of them.
type editorArgs struct {
	Path       string `json:"path"`
	Offset     *int   `json:"offset"`
	Limit      *int   `json:"limit"`
	Content    string `json:"content"`
	Old        string `json:"old"`
	New        string `json:"new"`
	ReplaceAll bool   `json:"replaceAll"`
	Command    string `json:"command"`
	Workdir    string `json:"workdir"`
	TimeoutMs  int64  `json:"timeoutMs"`
}

const (
	// The deadlines are those after which the daemon stops waiting for the editor.
	// The shell tool's own default limit is shorter, so that a command normally
	// ends by its limit, with its output.
	quickDeadline = time.Minute
	shellDeadline = time.Hour
	shellDefault  = 10 * time.Minute
	maxOutput     = 256 << 10 // bytes of terminal output; the end is kept
	maxAnswer     = 1 << 20   // bytes of any result; escaped as JSON it can take six times as many
)

// offers lists the tools that an editor can provide. The names and arguments are
// those of lashd's own tools.
var offers = []offered{
	{
		clientTool("read", protocol.ToolKindRead, protocol.ReplaySafe, quickDeadline,
			"Read a text file of the workspace as it is in the user's editor, including unsaved changes.",
			`{"path":{"type":"string","description":"file to read, relative to the workspace or absolute inside it"},
			"offset":{"type":"integer","minimum":1,"description":"first line to read, from 1; default 1"},
			"limit":{"type":"integer","minimum":1,"description":"maximum number of lines; default 2000"}}`, "path"),
		func(c sdk.ClientCapabilities) bool { return c.Fs.ReadTextFile }, (*editorCalls).readFile,
	},
	{
		clientTool("write", protocol.ToolKindEdit, protocol.ReplayNever, quickDeadline,
			"Write a whole file of the workspace in the user's editor: create it, or replace its contents. To change part of a file, use edit.",
			`{"path":{"type":"string","description":"file to write, relative to the workspace or absolute inside it"},
			"content":{"type":"string","description":"the complete new contents"}}`, "path", "content"),
		func(c sdk.ClientCapabilities) bool { return c.Fs.WriteTextFile }, (*editorCalls).writeFile,
	},
	{
		clientTool("edit", protocol.ToolKindEdit, protocol.ReplayNever, quickDeadline,
			"Replace text in a file of the workspace, in the user's editor. The old text must match the file exactly, "+
				"including white space, and occur exactly once unless replaceAll is set. Read the file first.",
			`{"path":{"type":"string","description":"file to change, relative to the workspace or absolute inside it"},
			"old":{"type":"string","minLength":1,"description":"the text to replace, exactly as in the file"},
			"new":{"type":"string","description":"the replacement"},
			"replaceAll":{"type":"boolean","description":"replace every occurrence"}}`, "path", "old", "new"),
		func(c sdk.ClientCapabilities) bool { return c.Fs.ReadTextFile && c.Fs.WriteTextFile }, (*editorCalls).editFile,
	},
	{
		clientTool("shell", protocol.ToolKindExecute, protocol.ReplayNever, shellDeadline,
			"Run a command with sh in the workspace, in a terminal of the user's editor, and return its output and exit code.",
			`{"command":{"type":"string","minLength":1,"description":"the command for sh"},
			"workdir":{"type":"string","description":"directory to run it in, relative to the workspace or absolute inside it; default: the workspace"},
			"timeoutMs":{"type":"integer","minimum":0,"maximum":3500000,"description":"time limit in milliseconds; default 600000"}}`, "command"),
		func(c sdk.ClientCapabilities) bool { return c.Terminal }, (*editorCalls).runTerminal,
	},
}

// clientTool describes a tool for session/setOverlay. properties is the JSON of
// the input schema's properties.
func clientTool(name string, kind protocol.ToolKind, replay protocol.Replay, deadline time.Duration, about, properties string, required ...string) protocol.ClientTool {
	names, _ := json.Marshal(required) // cannot fail
	input := fmt.Sprintf(`{"type":"object","properties":%s,"required":%s,"additionalProperties":false}`, properties, names)
	return protocol.ClientTool{
		ToolManifest: protocol.ToolManifest{Name: name, Description: about, Input: json.RawMessage(input), Kind: kind},
		Replay:       replay, DeadlineMs: deadline.Milliseconds(),
	}
}

// toolsFor returns the tools that an editor with these capabilities can run.
func toolsFor(c sdk.ClientCapabilities) []protocol.ClientTool {
	var tools []protocol.ClientTool
	for _, o := range offers {
		if o.possible(c) {
			tools = append(tools, o.ClientTool)
		}
	}
	return tools
}

// editorCalls runs the calls of a session's editor tools. requested and
// itemCompleted are called by the session's goroutine; each call runs on a
// goroutine of its own, counted in ref.work.
type editorCalls struct {
	ref
	view *view
	cwd  string

	mu        sync.Mutex
	running   map[sdk.ToolCallId]context.CancelFunc // cancels each call that has not ended
	terminals map[sdk.ToolCallId]string             // terminal id of each shell call, until its item is completed
}

// requested starts the call that a toolRequested event asks for, if it is meant
// for this client. It does not wait for the call.
func (c *editorCalls) requested(ctx context.Context, ev *protocol.Event) {
	if ev.ClientID != c.daemon.client || ev.ToolCall == nil {
		return
	}
	for _, o := range offers {
		if o.Name == ev.ToolCall.Name {
			c.perform(ctx, &o, callID(ev.TurnID, ev.ToolCall.CallID), ev.ToolCall)
			return
		}
	}
}

// perform runs a call on its own goroutine and sends its result to the daemon. A
// tool that must not run twice is acknowledged first: if the result is lost, the
// daemon then knows that the call began. If the daemon rejects the
// acknowledgement, the call has already ended and does not run.
func (c *editorCalls) perform(ctx context.Context, o *offered, id sdk.ToolCallId, call *protocol.ToolCall) {
	ctx, cancel := context.WithCancel(ctx)
	c.mu.Lock()
	c.running[id] = cancel
	c.mu.Unlock()
	c.work.Go(func() {
		defer c.finish(id)
		if o.Replay == protocol.ReplayNever && !c.respond(ctx, protocol.ToolRespondParams{CallID: call.CallID, Ack: true}) {
			return
		}
		var args editorArgs
		out := protocol.Fail(protocol.FailInvalidRequest, "invalid_arguments", "the arguments are invalid", protocol.FromTool)
		if json.Unmarshal(call.Args, &args) == nil {
			out = o.run(c, ctx, id, args)
		}
		if len(out.Text) > maxAnswer {
			out = protocol.Fail(protocol.FailIO, "too_large", fmt.Sprintf("the editor's response has %d bytes; the limit is %d", len(out.Text), maxAnswer), protocol.FromTool)
		}
		c.respond(context.WithoutCancel(ctx), protocol.ToolRespondParams{CallID: call.CallID, Output: &out})
	})
}

// respond sends an acknowledgement or a result to the daemon and reports whether
// the daemon accepted it.
func (c *editorCalls) respond(ctx context.Context, p protocol.ToolRespondParams) bool {
	p.Mutation, p.SessionID = newMutation(), c.id
	err := c.daemon.call(ctx, "tool/respond", p, nil)
	if err != nil {
		c.Log.Info("a call of an editor's tool has already ended", "session", c.id, "call", p.CallID, "error", err)
	}
	return err == nil
}

// finish cancels a call that still runs in the editor and forgets it. Calling it
// twice is harmless.
func (c *editorCalls) finish(id sdk.ToolCallId) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel, ok := c.running[id]; ok {
		cancel()
		delete(c.running, id)
	}
}

// setTerminal records the terminal of a call and shows it inside the tool call in
// the editor.
func (c *editorCalls) setTerminal(ctx context.Context, id sdk.ToolCallId, terminal string) {
	c.mu.Lock()
	c.terminals[id] = terminal
	c.mu.Unlock()
	content := []sdk.ToolCallContent{sdk.ToolTerminalRef(terminal)}
	c.send(ctx, &sdk.SessionToolCallUpdate{ToolCallId: id, Content: content, SessionUpdate: "tool_call_update"})
}

// itemCompleted ends a call once the daemon has stored its item, for instance
// after a timeout, and gives the view the call's terminal, so that the result
// keeps showing it.
func (c *editorCalls) itemCompleted(item *protocol.Item) {
	id := callID(item.TurnID, item.CallID)
	c.finish(id)
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.view.calls[id]; known != nil {
		known.terminal = c.terminals[id]
	}
	delete(c.terminals, id)
}
