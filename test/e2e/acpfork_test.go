package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/rpc/protocol"
)

// TestACPFork forks a session and runs a turn in both.
func TestACPFork(t *testing.T) {
	w := newWorld(t, "allow", step(says("Remembered.")), step(says("In the fork.")), step(says("In the source.")))
	defer w.shutdown()
	e := w.editor(sdk.ClientCapabilities{})
	e.open(w.work)
	e.says("remember the walrus")
	source := e.id
	made, err := e.UnstableForkSession(e.context(), sdk.UnstableForkSessionRequest{SessionId: source, Cwd: w.work})
	if err != nil || made.SessionId == "" || made.SessionId == source || made.Modes == nil || len(made.ConfigOptions) != 3 {
		t.Fatalf("outside/21 session/fork: %+v %v", made, err)
	}
	e.id = made.SessionId
	if stop := e.says("go on"); stop != sdk.StopReasonEndTurn || !strings.Contains(w.body(), "walrus") {
		t.Errorf("outside/21 a prompt in the fork ends with %s; the model reads %s", stop, w.body())
	}
	e.id = source
	if stop := e.says("go on here"); stop != sdk.StopReasonEndTurn || strings.Contains(w.body(), "In the fork.") {
		t.Errorf("outside/21 a prompt in the source ends with %s; the model reads %s", stop, w.body())
	}
	if want := "agent: Remembered.\nagent: In the fork.\nagent: In the source."; e.story() != want {
		t.Errorf("outside/21 the editor was shown %q, want %q", e.story(), want)
	}
	if _, err := e.UnstableForkSession(e.context(), sdk.UnstableForkSessionRequest{SessionId: source, Cwd: w.user}); acpRefusal(err) != "-32602 invalidParams" {
		t.Errorf("outside/21 a fork into another workspace: %v", err)
	}
	list := ask[protocol.SessionListResult](w.dial(""), "session/list", protocol.SessionListParams{})
	if len(list.Data) != 2 {
		t.Errorf("outside/21 there are %d sessions, want 2", len(list.Data))
	}
}

// TestACPAdvertises checks that the agent has the capabilities that it announces.
func TestACPAdvertises(t *testing.T) {
	w := newWorld(t, "allow")
	defer w.shutdown()
	r := w.rawACP()
	m := r.answer(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`)
	var is struct {
		AgentCapabilities struct{ SessionCapabilities json.RawMessage }
	}
	if err := json.Unmarshal(m.Result, &is); err != nil {
		t.Fatal(err)
	}
	if got, want := string(is.AgentCapabilities.SessionCapabilities), `{"archive":{},"close":{},"delete":{},"fork":{},"list":{},"resume":{},"title":{}}`; got != want {
		t.Errorf("outside/21 the capabilities of sessions are %s, want %s", got, want)
	}
	for _, kind := range []string{`"type":"stdio",`, ``} {
		m := r.answer(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":%q,"mcpServers":[{%s"name":"sdk","command":%q,"args":[],"env":[]}]}}`, w.work, kind, goServer(t)))
		var made struct{ SessionID protocol.SessionID }
		if json.Unmarshal(m.Result, &made) != nil || made.SessionID == "" {
			t.Errorf("outside/21 a server with %q is refused: %s", kind, m.Error)
			continue
		}
		list := ask[protocol.ToolListResult](w.dial(""), "tool/list", protocol.SessionParams{SessionID: made.SessionID})
		if raw := mustArgs(list); !strings.Contains(raw, "mcp__sdk__pid") {
			t.Errorf("outside/21 a server with %q has no tools: %s", kind, raw)
		}
	}
}
