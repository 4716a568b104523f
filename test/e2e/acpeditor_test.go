package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"
)

// acpEditor is an editor built on the client side of the SDK. Everything that lashd acp writes to it
// is checked against the schema.
type acpEditor struct {
	greeting sdk.InitializeResponse // the answer to initialize
	*sdk.ClientSideConnection
	t      *testing.T
	frames *frames
	cmd    *exec.Cmd
	in     io.Closer
	id     sdk.SessionId

	mu        sync.Mutex
	permit    func(context.Context, sdk.RequestPermissionRequest) string // answers permission requests; nil allows each once
	changed   chan struct{}
	updates   []sdk.SessionUpdate
	asked     []sdk.RequestPermissionRequest
	files     map[string]string
	terminals []string // calls of terminal methods
}

// editor starts lashd acp and initializes it with these capabilities.
func (h *home) editor(offers sdk.ClientCapabilities, args ...string) *acpEditor {
	h.t.Helper()
	e := &acpEditor{t: h.t, frames: newFrames(h.t), cmd: h.command(append([]string{"acp"}, args...)...), changed: make(chan struct{}), files: map[string]string{}}
	in, out := h.piped(e.cmd)
	checked, pipe := io.Pipe()
	var reading sync.WaitGroup
	reading.Go(func() { e.frames.check(out, pipe) })
	e.in = in
	e.ClientSideConnection = sdk.NewClientSideConnection(e, noting{in, e.frames.sent}, checked)
	e.SetLogger(slog.New(slog.DiscardHandler))
	h.t.Cleanup(func() {
		in.Close()
		reading.Wait()
		e.cmd.Wait() // tests that care have waited already
	})
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	greeting, err := e.Initialize(ctx, sdk.InitializeRequest{ProtocolVersion: sdk.ProtocolVersionNumber, ClientCapabilities: offers})
	if err != nil {
		h.t.Fatal("initialize:", err)
	}
	e.greeting = greeting
	return e
}

// open creates a session in the workspace.
func (e *acpEditor) open(cwd string, servers ...sdk.McpServer) sdk.NewSessionResponse {
	e.t.Helper()
	r, err := e.NewSession(e.context(), sdk.NewSessionRequest{Cwd: cwd, McpServers: append([]sdk.McpServer{}, servers...)})
	if err != nil {
		e.t.Fatal("session/new:", err)
	}
	e.id = r.SessionId
	return r
}

func (e *acpEditor) context() context.Context {
	ctx, cancel := context.WithTimeout(e.t.Context(), patience)
	e.t.Cleanup(cancel)
	return ctx
}

// says sends a prompt, waits for its end and returns the stop reason.
func (e *acpEditor) says(text string) sdk.StopReason {
	e.t.Helper()
	r, err := e.Prompt(e.context(), sdk.PromptRequest{SessionId: e.id, Prompt: []sdk.ContentBlock{sdk.TextBlock(text)}})
	if err != nil {
		e.t.Fatalf("prompt %.60q: %v", text, err)
	}
	return r.StopReason
}

// prompted is the result of a prompt.
type prompted struct {
	stop sdk.StopReason
	err  error
}

// begins sends a prompt without waiting for its end.
func (e *acpEditor) begins(text string) <-chan prompted {
	done, ctx := make(chan prompted, 1), e.context()
	go func() {
		r, err := e.Prompt(ctx, sdk.PromptRequest{SessionId: e.id, Prompt: []sdk.ContentBlock{sdk.TextBlock(text)}})
		done <- prompted{r.StopReason, err}
	}()
	return done
}

// until waits until a condition on the editor's state holds.
func (e *acpEditor) until(what string, ok func() bool) {
	e.t.Helper()
	limit := time.After(patience)
	for {
		e.mu.Lock()
		done, changed := ok(), e.changed
		e.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-limit:
			e.t.Fatalf("timed out waiting until %s; the editor was shown:\n%s", what, e.story())
		}
	}
}

func (e *acpEditor) notice(change func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change()
	close(e.changed)
	e.changed = make(chan struct{})
}

// answers sets the answer to later permission requests and returns the number of earlier ones.
func (e *acpEditor) answers(permit func(context.Context, sdk.RequestPermissionRequest) string) (before int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.permit = permit
	return len(e.asked)
}

// questions are the permission requests so far.
func (e *acpEditor) questions() []sdk.RequestPermissionRequest {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.asked)
}

// SessionUpdate implements sdk.Client.
func (e *acpEditor) SessionUpdate(_ context.Context, p sdk.SessionNotification) error {
	e.notice(func() { e.updates = append(e.updates, p.Update) })
	return nil
}

// RequestPermission implements sdk.Client.
func (e *acpEditor) RequestPermission(ctx context.Context, p sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error) {
	var permit func(context.Context, sdk.RequestPermissionRequest) string
	e.notice(func() { e.asked, permit = append(e.asked, p), e.permit })
	choice := "allowOnce"
	if permit != nil {
		choice = permit(ctx, p)
	}
	outcome := sdk.NewRequestPermissionOutcomeCancelled()
	if choice != "" {
		outcome = sdk.NewRequestPermissionOutcomeSelected(sdk.PermissionOptionId(choice))
	}
	return sdk.RequestPermissionResponse{Outcome: outcome}, nil
}

// ReadTextFile implements sdk.Client.
func (e *acpEditor) ReadTextFile(_ context.Context, p sdk.ReadTextFileRequest) (sdk.ReadTextFileResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	text, ok := e.files[p.Path]
	if !ok {
		return sdk.ReadTextFileResponse{}, fmt.Errorf("no file %s", p.Path)
	}
	lines := strings.SplitAfter(text, "\n")
	if p.Line != nil {
		lines = lines[min(*p.Line-1, len(lines)):]
	}
	if p.Limit != nil {
		lines = lines[:min(*p.Limit, len(lines))]
	}
	return sdk.ReadTextFileResponse{Content: strings.Join(lines, "")}, nil
}

// WriteTextFile implements sdk.Client.
func (e *acpEditor) WriteTextFile(_ context.Context, p sdk.WriteTextFileRequest) (sdk.WriteTextFileResponse, error) {
	e.notice(func() { e.files[p.Path] = p.Content })
	return sdk.WriteTextFileResponse{}, nil
}

// CreateTerminal implements sdk.Client. The terminal echoes its command.
func (e *acpEditor) CreateTerminal(_ context.Context, p sdk.CreateTerminalRequest) (sdk.CreateTerminalResponse, error) {
	e.notice(func() {
		e.terminals = append(e.terminals, "create "+p.Command+" "+strings.Join(p.Args, " ")+" in "+*p.Cwd)
	})
	return sdk.CreateTerminalResponse{TerminalId: "term-1"}, nil
}

// TerminalOutput implements sdk.Client.
func (e *acpEditor) TerminalOutput(context.Context, sdk.TerminalOutputRequest) (sdk.TerminalOutputResponse, error) {
	return sdk.TerminalOutputResponse{Output: "what the terminal shows\n"}, nil
}

// WaitForTerminalExit implements sdk.Client. A command with sleep in it ends only when it is killed.
func (e *acpEditor) WaitForTerminalExit(ctx context.Context, _ sdk.WaitForTerminalExitRequest) (sdk.WaitForTerminalExitResponse, error) {
	e.mu.Lock()
	sleeps := strings.Contains(strings.Join(e.terminals, "\n"), "sleep")
	e.mu.Unlock()
	if sleeps {
		<-ctx.Done()
		return sdk.WaitForTerminalExitResponse{}, ctx.Err()
	}
	code := 3
	return sdk.WaitForTerminalExitResponse{ExitCode: &code}, nil
}

// KillTerminal implements sdk.Client.
func (e *acpEditor) KillTerminal(context.Context, sdk.KillTerminalRequest) (sdk.KillTerminalResponse, error) {
	e.notice(func() { e.terminals = append(e.terminals, "kill") })
	return sdk.KillTerminalResponse{}, nil
}

// ReleaseTerminal implements sdk.Client.
func (e *acpEditor) ReleaseTerminal(context.Context, sdk.ReleaseTerminalRequest) (sdk.ReleaseTerminalResponse, error) {
	e.notice(func() { e.terminals = append(e.terminals, "release") })
	return sdk.ReleaseTerminalResponse{}, nil
}

// story is what the editor was shown, one line per update. Pieces of a message are joined.
func (e *acpEditor) story() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.storyLocked()
}

func (e *acpEditor) storyLocked() string {
	var lines []string
	last := ""
	for _, u := range e.updates {
		line, message := lineOf(u)
		if message != "" && message == last {
			_, text, _ := strings.Cut(line, ": ")
			lines[len(lines)-1] += text
			continue
		}
		last = message
		if line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// lineOf renders an update as a line, and returns the id of the message that it continues.
func lineOf(u sdk.SessionUpdate) (line, message string) {
	switch {
	case u.UserMessageChunk != nil:
		return "user: " + textIn(u.UserMessageChunk.Content), "user" + idIn(u.UserMessageChunk.MessageId)
	case u.AgentMessageChunk != nil:
		return "agent: " + textIn(u.AgentMessageChunk.Content), "agent" + idIn(u.AgentMessageChunk.MessageId)
	case u.AgentThoughtChunk != nil:
		return "thought: " + textIn(u.AgentThoughtChunk.Content), "thought" + idIn(u.AgentThoughtChunk.MessageId)
	case u.ToolCall != nil:
		c := u.ToolCall
		return fmt.Sprintf("call %s %s (%s)%s", c.Kind, c.Title, c.Status, contentIn(c.Content)), ""
	case u.ToolCallUpdate != nil && u.ToolCallUpdate.Status != nil:
		return fmt.Sprintf("call %s%s", *u.ToolCallUpdate.Status, contentIn(u.ToolCallUpdate.Content)), ""
	case u.Plan != nil:
		var steps []string
		for _, s := range u.Plan.Entries {
			steps = append(steps, s.Content+" "+string(s.Status))
		}
		return "plan: " + strings.Join(steps, ", "), ""
	case u.CurrentModeUpdate != nil:
		return "mode: " + string(u.CurrentModeUpdate.CurrentModeId), ""
	case u.UsageUpdate != nil:
		return fmt.Sprintf("usage: %d of %d", u.UsageUpdate.Used, u.UsageUpdate.Size), ""
	case u.SessionInfoUpdate != nil:
		return "title: " + *u.SessionInfoUpdate.Title, ""
	}
	return "", ""
}

func idIn(id *string) string {
	if id == nil {
		return ""
	}
	return *id
}

func textIn(b sdk.ContentBlock) string {
	if b.Text == nil {
		return "?"
	}
	return b.Text.Text
}

func contentIn(parts []sdk.ToolCallContent) string {
	var all strings.Builder
	for _, p := range parts {
		switch {
		case p.Content != nil:
			fmt.Fprintf(&all, " %q", textIn(p.Content.Content))
		case p.Diff != nil && p.Diff.OldText != nil:
			fmt.Fprintf(&all, " %q->%q", *p.Diff.OldText, p.Diff.NewText)
		case p.Diff != nil:
			fmt.Fprintf(&all, " ->%q", p.Diff.NewText)
		case p.Terminal != nil:
			all.WriteString(" terminal " + p.Terminal.TerminalId)
		}
	}
	return all.String()
}

// shown reports whether the story has a line.
func (e *acpEditor) shown(line string) bool {
	return slices.Contains(strings.Split(e.story(), "\n"), line)
}

// acpRefusal is the code of an error and the kind in its data.
func acpRefusal(err error) string {
	re, ok := err.(*sdk.RequestError)
	if !ok {
		return fmt.Sprint(err)
	}
	raw, _ := json.Marshal(re.Data) // cannot fail: it was JSON
	var data struct {
		Kind string `json:"kind"`
	}
	json.Unmarshal(raw, &data)
	return fmt.Sprint(re.Code, " ", data.Kind)
}
