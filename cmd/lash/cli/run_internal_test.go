package cli

import (
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"lashd/cmd/internal/daemon"
	"lashd/rpc/protocol"
)

// If a daemon dies just after it has sent the end of a turn, the next daemon does not send it again.
func TestRunWhenTheDaemonDiesAtTheEndOfATurn(t *testing.T) {
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	read := make(chan struct{})
	go func() {
		for lives := 0; ; lives++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			killable(conn, lives == 0, read)
		}
	}()

	run := &turnRun{
		follower: &follower{env: &daemon.Environment{Home: dir, Socket: filepath.Join(dir, "s"), Named: true, Warned: true, Log: slog.New(slog.DiscardHandler)}, session: "ses_a"},
		prompt:   "hi", key: "k", view: newView(false), asker: &asker{},
	}
	type ending struct {
		report *protocol.TurnReport
		err    error
	}
	done := make(chan ending, 1)
	go func() {
		report, err := run.run(t.Context())
		done <- ending{report, err}
	}()
	select {
	case e := <-done:
		if e.err != nil || e.report.State != protocol.TurnCompleted {
			t.Errorf("runtime/K02 run returned %+v, %v", e.report, e.err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("runtime/K02 run waits for an event that it has already shown")
	}
	<-read
}

// killable answers like a daemon. If killed is set, it closes the connection after it has sent the end
// of the turn.
func killable(conn net.Conn, killed bool, read chan<- struct{}) {
	defer conn.Close()
	say := func(v any) { json.NewEncoder(conn).Encode(v) }
	for in := json.NewDecoder(conn); ; {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if in.Decode(&m) != nil {
			return
		}
		var result any
		switch m.Method {
		case "initialize":
			result = protocol.InitializeResult{Epoch: 1}
		case "session/attach":
			result = protocol.SessionAttachResult{}
		case "turn/start":
			result = protocol.TurnStartResult{TurnID: "trn_a", State: protocol.TurnRunning}
		case "turn/read":
			if killed {
				return
			}
			close(read)
			result = protocol.TurnReport{TurnID: "trn_a", State: protocol.TurnCompleted}
		}
		say(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
		if m.Method == "turn/start" {
			end := protocol.Event{Type: protocol.EventTurnCompleted, TurnID: "trn_a", Seq: 1, Outcome: &protocol.TurnOutcome{Kind: protocol.OutcomeAssistantMessage}}
			say(map[string]any{"jsonrpc": "2.0", "method": "session/event", "params": end})
		}
	}
}
