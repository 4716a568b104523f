package e2e

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/rpc/protocol"
)

// TestACPTurn runs a turn with every kind of content that an editor can show.
func TestACPTurn(t *testing.T) {
	w := newWorld(t, "ask",
		step(says("I look"), says(" first."), uses("read", map[string]any{"path": "a.txt", "offset": 2})),
		step(uses("edit", map[string]any{"path": "a.txt", "old": "two", "new": "2"})),
		step(uses("update_plan", map[string]any{"steps": []map[string]string{{"text": "look", "status": "completed"}, {"text": "mend", "status": "inProgress"}}})),
		step(says("Done.")))
	w.write(w.work+"/a.txt", "one\ntwo\n")
	defer w.shutdown()
	e := w.editor(sdk.ClientCapabilities{})
	made := e.open(w.work)
	if got := string(made.Modes.CurrentModeId); got != "askAlways" || len(made.ConfigOptions) != 3 || made.Models.CurrentModelId != "fake" {
		t.Errorf("issue/6-3 a new session is in mode %q, with options %+v and models %+v", got, made.ConfigOptions, made.Models)
	}
	if _, err := e.SetSessionMode(e.context(), sdk.SetSessionModeRequest{SessionId: e.id, ModeId: "default"}); err != nil {
		t.Fatal("set_mode:", err)
	}
	e.answers(func(context.Context, sdk.RequestPermissionRequest) string {
		e.until("the call waits", func() bool { return strings.HasSuffix(e.storyLocked(), `(pending) "two"->"2"`) })
		return "allowOnce"
	})
	if stop := e.says("mend it"); stop != sdk.StopReasonEndTurn {
		t.Errorf("issue/6-3 the turn ends with %s", stop)
	}
	want := []string{
		"mode: default",
		"agent: I look first.",
		"call read Reading a.txt from line 2 (in_progress)", `call completed "     2\ttwo\n"`,
		`call edit Edit a.txt (pending) "two"->"2"`, "call in_progress", `call completed "one\ntwo\n"->"one\n2\n"`,
		"call think Updating plan (in_progress)", "plan: look completed, mend in_progress",
		`call completed "The plan has 2 steps: 1 completed, 1 in progress, 0 pending."`,
		"agent: Done.",
	}
	if got := e.story(); got != strings.Join(want, "\n") {
		t.Errorf("issue/6-3 outside/21 editor updates:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
	if asked := e.questions(); len(asked) != 1 || len(asked[0].Options) != 6 || *asked[0].ToolCall.Title != "Edit a.txt" || *asked[0].ToolCall.Status != sdk.ToolCallStatusPending {
		t.Errorf("issue/6-3 questions: %+v", asked)
	}
	if err := w.model.Check(); err != nil {
		t.Error(err)
	}
}

// offered returns the id of the first option whose name begins with name; empty if there is none.
func offered(p sdk.RequestPermissionRequest, name string) string {
	for _, o := range p.Options {
		if strings.HasPrefix(o.Name, name) {
			return string(o.OptionId)
		}
	}
	return ""
}

// TestACPPermissions answers, dismisses and cancels questions. It also has another client answer, and
// the next editor.
func TestACPPermissions(t *testing.T) {
	w := newWorld(t, "ask")
	w.serve()
	w.connect().Close() // before the editor's process starts a daemon of its own
	e := w.editor(sdk.ClientCapabilities{})
	e.open(w.work)
	hold := func(ctx context.Context, _ sdk.RequestPermissionRequest) string { <-ctx.Done(); return "" }
	t.Run("issue/6-3 reject", func(t *testing.T) {
		e.answers(func(context.Context, sdk.RequestPermissionRequest) string { return "reject" })
		if stop := e.says(commands("printf x >> rejected")); stop != sdk.StopReasonEndTurn || w.size("rejected") != 0 {
			t.Errorf("the turn ends with %s, and %d bytes were written", stop, w.size("rejected"))
		}
	})
	t.Run("issue/6-3 a call allowed for the session is not asked again", func(t *testing.T) {
		before := e.answers(func(_ context.Context, p sdk.RequestPermissionRequest) string {
			return offered(p, "Allow for this session")
		})
		e.says(commands("printf x >> twice"))
		e.says(commands("printf x >> twice"))
		if asked := len(e.questions()) - before; asked != 1 || w.size("twice") != 2 {
			t.Errorf("asked %d times, %d bytes were written", asked, w.size("twice"))
		}
	})
	t.Run("part/11 a width is stored, and the request shows the command and why lashd asks", func(t *testing.T) {
		before := e.answers(func(_ context.Context, p sdk.RequestPermissionRequest) string { return offered(p, "Always allow: ") })
		e.says(commands("git log -1"))
		e.says(commands("git log -2"))
		asked := e.questions()[before:]
		if len(asked) != 1 || *asked[0].ToolCall.Title != "Run git log -1 (without a sandbox)" || !strings.HasPrefix(asked[0].ToolCall.Content[0].Content.Content.Text.Text, "```\ngit log -1\n```\n\nDirectory: .\n") {
			t.Errorf("asked %d times: %+v", len(asked), asked)
		}
	})
	t.Run("part/11 an option that was not offered denies the call", func(t *testing.T) {
		e.answers(func(context.Context, sdk.RequestPermissionRequest) string { return "allowAlways:99" })
		if stop := e.says(commands("printf x >> unoffered")); stop != sdk.StopReasonEndTurn || w.size("unoffered") != 0 {
			t.Errorf("the turn ends with %s, and %d bytes were written", stop, w.size("unoffered"))
		}
	})
	t.Run("issue/6-3 dismissing a question denies the call", func(t *testing.T) {
		e.answers(func(context.Context, sdk.RequestPermissionRequest) string { return "" })
		if stop := e.says(commands("printf x >> closed")); stop != sdk.StopReasonEndTurn || w.size("closed") != 0 {
			t.Errorf("the turn ends with %s, and %d bytes were written", stop, w.size("closed"))
		}
	})
	t.Run("issue/6-3 peers/R5 a question that another client answers is withdrawn", func(t *testing.T) {
		withdrawn := make(chan struct{})
		before := e.answers(func(ctx context.Context, _ sdk.RequestPermissionRequest) string {
			<-ctx.Done()
			close(withdrawn)
			return "reject"
		})
		done := e.begins(commands("printf x >> elsewhere"))
		e.until("the person is asked", func() bool { return len(e.asked) > before })
		p := w.dial("")
		for _, d := range ask[protocol.DecisionListResult](p, "decision/list", protocol.DecisionListParams{}).Data {
			p.allow(d)
		}
		select {
		case <-withdrawn:
		case <-time.After(patience):
			t.Fatal("the question is not withdrawn")
		}
		if r := <-done; r.stop != sdk.StopReasonEndTurn || r.err != nil || w.size("elsewhere") != 1 {
			t.Errorf("the turn ends with %s %v, and %d bytes were written", r.stop, r.err, w.size("elsewhere"))
		}
	})
	t.Run("issue/6-3 cancelling ends the question and the turn", func(t *testing.T) {
		before := e.answers(hold)
		done := e.begins(commands("printf x >> cancelled"))
		e.until("the person is asked", func() bool { return len(e.asked) > before })
		if err := e.Cancel(e.context(), sdk.CancelNotification{SessionId: e.id}); err != nil {
			t.Fatal(err)
		}
		if r := <-done; r.stop != sdk.StopReasonCancelled || r.err != nil || w.size("cancelled") != 0 {
			t.Errorf("peers/30 the turn ends with %s %v, and %d bytes were written", r.stop, r.err, w.size("cancelled"))
		}
		if open := ask[protocol.DecisionListResult](w.dial(""), "decision/list", protocol.DecisionListParams{}).Data; len(open) != 0 {
			t.Errorf("open decisions: %+v", open)
		}
	})
	t.Run("issue/6-3 peers/28 an open question blocks no other request", func(t *testing.T) {
		before := e.answers(hold)
		done := e.begins(commands("printf x >> later"))
		e.until("the person is asked", func() bool { return len(e.asked) > before })
		if _, err := e.ListSessions(e.context(), sdk.ListSessionsRequest{}); err != nil {
			t.Error("session/list:", err)
		}
		e.in.Close() // the editor disconnects; its turn waits
		if err := e.cmd.Wait(); err != nil {
			t.Error("lashd acp ends with", err)
		}
		if r := <-done; r.err == nil {
			t.Errorf("a prompt was answered after the editor disconnected: %s", r.stop)
		}
	})
	t.Run("issue/6-3 the next editor is asked again", func(t *testing.T) {
		next := w.editor(sdk.ClientCapabilities{})
		next.id = e.id
		if _, err := next.LoadSession(next.context(), sdk.LoadSessionRequest{SessionId: e.id, Cwd: w.work, McpServers: []sdk.McpServer{}}); err != nil {
			t.Fatal("session/load:", err)
		}
		next.until("the turn goes on", func() bool { return len(next.asked) == 1 && w.size("later") == 1 })
	})
}

// TestACPCancel cancels a streaming turn and continues with another prompt.
func TestACPCancel(t *testing.T) {
	w := newWorld(t, "allow", step(says("One"), stalls), step(says("Two.")), step(stalls))
	defer w.shutdown()
	e := w.editor(sdk.ClientCapabilities{})
	e.open(w.work)
	done := e.begins("first")
	e.until("the answer begins", func() bool { return strings.Contains(e.storyLocked(), "agent: One") })
	e.Cancel(e.context(), sdk.CancelNotification{SessionId: e.id})
	if r := <-done; r.stop != sdk.StopReasonCancelled || r.err != nil {
		t.Errorf("issue/6-3 peers/30 a cancelled prompt ends with %s %v", r.stop, r.err)
	}
	if stop := e.says("second"); stop != sdk.StopReasonEndTurn || !e.shown("agent: Two.") {
		t.Errorf("issue/6-3 the next prompt ends with %s: %s", stop, e.story())
	}
	// The cancellation takes effect in order with the prompts around it.
	ctx, withdraw := context.WithCancel(e.context())
	go withdraw()
	_, err := e.Prompt(ctx, sdk.PromptRequest{SessionId: e.id, Prompt: []sdk.ContentBlock{sdk.TextBlock("third")}})
	if err == nil {
		t.Error("issue/6-3 the model answered a withdrawn prompt")
	}
	if r := ask[protocol.SessionWaitResult](w.dial(""), "session/wait", protocol.SessionWaitParams{SessionID: protocol.SessionID(e.id)}); r.State != protocol.SessionIdle {
		t.Errorf("issue/6-3 after a prompt was withdrawn, the session is %s", r.State)
	}
}

// TestACPHistory loads and resumes a session with history.
func TestACPHistory(t *testing.T) {
	w := newWorld(t, "allow", step(says("Hello."), uses("read", map[string]any{"path": "a.txt"})), step(says("Bye.")), step(says("Again.")), step(says("From elsewhere.")))
	w.write(w.work+"/a.txt", "one\n")
	defer w.shutdown()
	first := w.editor(sdk.ClientCapabilities{})
	first.open(w.work)
	first.says("hi")
	told := "user: hi\n" + strings.Replace(first.story(), "call read Reading a.txt (in_progress)\ncall completed", "call read Read a.txt (completed)", 1)
	e := w.editor(sdk.ClientCapabilities{})
	e.id = first.id
	if _, err := e.LoadSession(e.context(), sdk.LoadSessionRequest{SessionId: e.id, Cwd: w.work, McpServers: []sdk.McpServer{}}); err != nil {
		t.Fatal("session/load:", err)
	}
	if got := e.story(); got != told {
		t.Errorf("issue/6-3 history:\n%s\nwant:\n%s", got, told)
	}
	list, err := e.ListSessions(e.context(), sdk.ListSessionsRequest{Cwd: &w.work})
	if err != nil || len(list.Sessions) != 1 || list.Sessions[0].SessionId != e.id || list.Sessions[0].Cwd != w.work {
		t.Errorf("issue/6-3 the sessions of the workspace are %+v, %v", list.Sessions, err)
	}
	third := w.editor(sdk.ClientCapabilities{})
	third.id = first.id
	if _, err := third.ResumeSession(third.context(), sdk.ResumeSessionRequest{SessionId: e.id, Cwd: w.work}); err != nil {
		t.Fatal("session/resume:", err)
	}
	e.says("once more")
	third.until("both follow", func() bool { return strings.HasSuffix(third.storyLocked(), "agent: Again.") })
	if got := third.story(); got != "user: once more\nagent: Again." {
		t.Errorf("issue/6-3 after session/resume the editor is shown %q", got)
	}
	p := w.dial("")
	p.wait(p.start(protocol.SessionID(e.id), "not from here").TurnID)
	e.until("what others say is shown", func() bool { return strings.HasSuffix(e.storyLocked(), "user: not from here\nagent: From elsewhere.") })
	if got := e.story(); strings.Contains(got, "user: once more") {
		t.Errorf("issue/6-3 the editor is shown its own prompt: %s", got)
	}
	_, err = e.LoadSession(e.context(), sdk.LoadSessionRequest{SessionId: e.id, Cwd: w.home.dir, McpServers: []sdk.McpServer{}})
	if got := acpRefusal(err); got != "-32602 invalidParams" {
		t.Errorf("issue/6-3 another directory: %s", got)
	}
	_, err = e.LoadSession(e.context(), sdk.LoadSessionRequest{SessionId: "ses_none", Cwd: w.work, McpServers: []sdk.McpServer{}})
	if got := acpRefusal(err); got != "-32002 sessionNotFound" {
		t.Errorf("issue/6-3 no session: %s", got)
	}
	if stop := e.says("[[fake]]"); stop != sdk.StopReasonEndTurn {
		t.Errorf("issue/6-3 after rejected requests a turn ends with %s", stop)
	}
}

// TestACPDaemonDies kills the daemon repeatedly while text streams. The editor is shown everything
// once.
func TestACPDaemonDies(t *testing.T) {
	w := newWorld(t, "allow")
	defer w.shutdown()
	e := w.editor(sdk.ClientCapabilities{})
	e.open(w.work)
	long := "[[fake deltas=300 size=8 us=5000]]"
	done := e.begins(long)
	for round := range 3 {
		length := 0
		e.until("more text comes", func() bool {
			length = len(e.storyLocked())
			return length > 200*(round+1)
		})
		w.killWhoServes()
	}
	if r := <-done; r.stop != sdk.StopReasonEndTurn || r.err != nil {
		t.Fatalf("issue/6-3 the turn ends with %s %v", r.stop, r.err)
	}
	want := "agent: " + finalText(t, w, e)
	if got := e.story(); got != want {
		t.Errorf("issue/6-3 shown %d bytes:\n%.600s\nwant %d:\n%.600s", len(got), got, len(want), want)
	}
	w.killWhoServes()
	if stop := e.says("[[fake]]"); stop != sdk.StopReasonEndTurn {
		t.Errorf("issue/6-3 after lashd acp restarted the daemon, a turn ends with %s", stop)
	}
}

// killWhoServes kills the daemon that an editor has started.
func (h *home) killWhoServes() {
	h.t.Helper()
	p := h.dial("")
	process, err := os.FindProcess(ask[protocol.StatusResult](p, "server/status", protocol.Empty{}).Pid)
	if err == nil {
		err = process.Kill()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	p.conn.Close()
}

// finalText is the answer of the newest turn, as the daemon stores it.
func finalText(t *testing.T, w *world, e *acpEditor) string {
	t.Helper()
	r := ask[protocol.SessionReadResult](w.dial(""), "session/read", protocol.SessionReadParams{SessionID: protocol.SessionID(e.id)})
	return r.Data[len(r.Data)-1].Text
}

// TestACPDaemonDiesInAQuestion kills the daemon while a question is open and while a command runs.
func TestACPDaemonDiesInAQuestion(t *testing.T) {
	w := newWorld(t, "ask")
	defer w.shutdown()
	e := w.editor(sdk.ClientCapabilities{})
	e.open(w.work)
	answer := make(chan string)
	e.answers(func(context.Context, sdk.RequestPermissionRequest) string { return <-answer })
	done := e.begins(commands("printf x >> ran; sleep 100"))
	e.until("the person is asked", func() bool { return len(e.asked) == 1 })
	w.killWhoServes()
	answer <- "allowOnce"
	eventually(t, "the command runs", func() error {
		if w.size("ran") != 1 {
			return errors.New("it does not")
		}
		return nil
	})
	w.killWhoServes()
	e.until("the person is asked what became of it", func() bool { return len(e.asked) == 2 })
	if got := e.questions()[1]; !strings.Contains(*got.ToolCall.Title, "Did the call take effect?") || len(got.Options) != 4 {
		t.Errorf("issue/6-3 questions: %+v", got)
	}
	answer <- "didNotRun"
	if r := <-done; r.stop != sdk.StopReasonEndTurn || r.err != nil || w.size("ran") != 1 {
		t.Errorf("issue/6-3 the turn ends with %s %v, and the command has run %d times", r.stop, r.err, w.size("ran"))
	}
}

// TestACPEditorTools has the model use the tools of the editor.
func TestACPEditorTools(t *testing.T) {
	w := newWorld(t, "allow",
		step(uses("read", map[string]any{"path": "a.txt", "offset": 2, "limit": 1})),
		step(uses("edit", map[string]any{"path": "a.txt", "old": "two", "new": "2"})),
		step(uses("write", map[string]any{"path": "sub/b.txt", "content": "new\n"})),
		step(uses("read", map[string]any{"path": "../outside"})),
		step(shell("make it")),
		step(says("Done.")),
		step(shell("sleep 100")),
		step(uses("read", map[string]any{"path": "a.txt"})), step(says("On disk.")))
	defer w.shutdown()
	e := w.editor(sdk.ClientCapabilities{Fs: sdk.FileSystemCapabilities{ReadTextFile: true, WriteTextFile: true}, Terminal: true})
	e.files[w.work+"/a.txt"] = "one\ntwo\nthree\n"
	e.open(w.work)
	e.says("go")
	want := []string{
		"call read Reading a.txt line 2 (in_progress)", `call completed "     2\ttwo\n[There are more lines. Continue with offset 3.]\n"`,
		`call edit Editing a.txt (in_progress) "two"->"2"`, "call completed",
		`call edit Writing sub/b.txt (in_progress) ->"new\n"`, "call completed",
		"call read Reading ../outside (in_progress)", `call failed "../outside is outside the workspace ` + w.work + `"`,
		"call execute Running make it (in_progress)", "call completed terminal term-1",
		"agent: Done.",
	}
	if got := e.story(); got != strings.Join(want, "\n") {
		t.Errorf("issue/6-3 editor updates:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
	e.mu.Lock()
	if e.files[w.work+"/a.txt"] != "one\n2\nthree\n" || e.files[w.work+"/sub/b.txt"] != "new\n" || w.size("a.txt")+w.size("sub/b.txt") != 0 {
		t.Errorf("issue/6-3 files in the editor: %q; bytes on disk: %d", e.files, w.size("a.txt")+w.size("sub/b.txt"))
	}
	if got := strings.Join(e.terminals, ", "); got != "create sh -c make it in "+w.work+", release" {
		t.Errorf("issue/6-3 terminals: %s", got)
	}
	e.mu.Unlock()
	read := ask[protocol.SessionReadResult](w.dial(""), "session/read", protocol.SessionReadParams{SessionID: protocol.SessionID(e.id)})
	if out := read.Data[len(read.Data)-2].Output; out == nil || out.Text != "what the terminal shows\n[Exit code 3.]\n" {
		t.Errorf("issue/6-3 results that the model reads: %+v", out)
	}
	done := e.begins("and stop")
	e.until("the command runs", func() bool { return len(e.terminals) == 3 })
	e.Cancel(e.context(), sdk.CancelNotification{SessionId: e.id})
	if r := <-done; r.stop != sdk.StopReasonCancelled {
		t.Errorf("issue/6-3 the cancelled turn ends with %s %v", r.stop, r.err)
	}
	e.until("the command is stopped", func() bool {
		return strings.HasSuffix(strings.Join(e.terminals, ", "), "sleep 100 in "+w.work+", kill, release")
	})
	e.in.Close()
	if err := e.cmd.Wait(); err != nil {
		t.Fatal("lashd acp ends with", err)
	}
	w.write(w.work+"/a.txt", "from disk\n")
	p := w.dial("")
	p.wait(p.start(protocol.SessionID(e.id), "without the editor").TurnID)
	read = ask[protocol.SessionReadResult](p, "session/read", protocol.SessionReadParams{SessionID: protocol.SessionID(e.id)})
	if out := read.Data[len(read.Data)-2].Output; out == nil || out.Text != "     1\tfrom disk\n" {
		t.Errorf("issue/6-3 without the editor, the model reads %+v", out)
	}
}
