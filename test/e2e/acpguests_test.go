package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/rpc/protocol"
)

// TestACPTwoEditors opens one session in two editors. The newer editor's tools are used until it
// disconnects, and then the older one's.
func TestACPTwoEditors(t *testing.T) {
	w := newWorld(t, "allow",
		step(uses("read", map[string]any{"path": "a.txt"})), step(says("The second one's.")),
		step(uses("read", map[string]any{"path": "a.txt"})), step(says("Still the second one's.")),
		step(uses("read", map[string]any{"path": "a.txt"})), step(says("The third one's.")))
	defer w.shutdown()
	w.write(w.work+"/a.txt", "on disk\n")
	offers := sdk.ClientCapabilities{Fs: sdk.FileSystemCapabilities{ReadTextFile: true}}
	open := func(name string, id sdk.SessionId) *acpEditor {
		e := w.editor(offers)
		e.files[w.work+"/a.txt"] = name + "\n"
		if id == "" {
			e.open(w.work)
			return e
		}
		e.id = id
		if _, err := e.LoadSession(e.context(), sdk.LoadSessionRequest{SessionId: id, Cwd: w.work, McpServers: []sdk.McpServer{}}); err != nil {
			t.Fatal("session/load:", err)
		}
		return e
	}
	gone := func(e *acpEditor) {
		e.in.Close()
		if err := e.cmd.Wait(); err != nil {
			t.Error("issue/6-3 lashd acp ends with", err)
		}
	}
	first := open("first", "")
	second := open("second", first.id)
	second.says("one")
	gone(first)
	second.says("two")
	if got := second.reads(); got != `"     1\tsecond\n" "     1\tsecond\n"` {
		t.Errorf("issue/6-3 with a second editor, and after it left, the model reads %s", got)
	}
	newest := open("newest", first.id)
	gone(newest)
	w.untilClientTool(protocol.SessionID(first.id))
	second.says("three")
	if got := second.reads(); got != `"     1\tsecond\n" "     1\tsecond\n" "     1\tsecond\n"` {
		t.Errorf("issue/6-3 after a short visit of an editor, the model reads %s", got)
	}
}

// untilClientTool waits until a session has a tool of a client.
func (w *world) untilClientTool(id protocol.SessionID) {
	w.t.Helper()
	p := w.dial("")
	for limit := time.Now().Add(patience); time.Now().Before(limit); time.Sleep(10 * time.Millisecond) {
		list := ask[protocol.ToolListResult](p, "tool/list", protocol.SessionParams{SessionID: id})
		if slices.ContainsFunc(list.Data, func(t protocol.ToolRecord) bool { return strings.HasPrefix(t.Source, "client:") }) {
			return
		}
	}
	w.t.Fatal("no client has a tool in the session")
}

// reads returns the results of the finished calls.
func (e *acpEditor) reads() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []string
	for _, u := range e.updates {
		if c := u.ToolCallUpdate; c != nil && c.Status != nil && *c.Status == sdk.ToolCallStatusCompleted {
			all = append(all, strings.TrimSpace(contentIn(c.Content)))
		}
	}
	return strings.Join(all, " ")
}
