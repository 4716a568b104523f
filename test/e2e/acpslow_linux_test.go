package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"lashd/rpc/protocol"
)

// TestACPSlowEditor has an editor read nothing during a lot of output, and then everything.
func TestACPSlowEditor(t *testing.T) {
	w := newWorld(t, "allow")
	defer w.shutdown()
	r := w.rawACP()
	id := r.open(w)
	p := w.dial("")
	session := protocol.SessionID(id)
	want, before := "", 0
	for turn := range 10 {
		if turn == 4 { // measure once the buffers are full
			before = peak(t, r.cmd.Process.Pid)
		}
		p.turn(session, "[[fake deltas=300 size=4000]]")
		items := ask[protocol.SessionReadResult](p, "session/read", protocol.SessionReadParams{SessionID: session, Limit: 1}).Data
		want += items[0].Text
	}
	r.write(prompts(2, id, "[[fake]]"))
	w.asked(11)
	if grown := peak(t, r.cmd.Process.Pid) - before; grown > 24<<20 {
		t.Errorf("issue/6-3 lashd acp grew by %d bytes while the editor read nothing", grown)
	}
	var shown strings.Builder
	m := r.read()
	for ; m.Method != ""; m = r.read() {
		shown.WriteString(m.chunk())
	}
	if string(m.Result) != `{"stopReason":"end_turn"}` {
		t.Errorf("issue/6-3 the editor's own prompt ends with %s %s", m.Result, m.Error)
	}
	if !strings.HasPrefix(shown.String(), want) {
		t.Errorf("issue/6-3 the editor was shown %d bytes, want %d", shown.Len(), len(want))
	}
}

// TestACPSlowEditorLeaves loads a session again, and closes it, before the editor has read its
// updates.
func TestACPSlowEditorLeaves(t *testing.T) {
	w := newWorld(t, "allow")
	w.parks()
	defer w.shutdown()
	r := w.rawACP()
	id := r.open(w)
	p := w.dial("")
	for range 6 {
		p.turn(protocol.SessionID(id), "[[fake deltas=300 size=4000]]")
	}
	if m := r.answer(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"session/load","params":{"sessionId":%q,"cwd":%q,"mcpServers":[]}}`, id, w.work)); m.Error != nil {
		t.Fatalf("issue/6-3 the session is not loaded: %s", m.Error)
	}
	if m := r.answer(fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"method":"session/close","params":{"sessionId":%q}}`, id)); m.Error != nil {
		t.Fatalf("issue/6-3 the session is not closed: %s", m.Error)
	}
	p.noneLoaded() // issue/6-3 the daemon has no subscriber left
}

// TestACPEditorStopsReading ends an editor that has stopped reading.
func TestACPEditorStopsReading(t *testing.T) {
	w := newWorld(t, "allow")
	defer w.shutdown()
	r := w.rawACP()
	id := r.open(w)
	r.write(prompts(2, id, "[[fake deltas=100 size=4000 us=1000]]"))
	w.asked(1)
	p := w.dial("")
	eventually(t, "the turn has ended", func() error {
		if all := ask[protocol.TurnListResult](p, "turn/list", protocol.TurnListParams{SessionID: protocol.SessionID(id)}).Data; all[0].State != protocol.TurnCompleted {
			return fmt.Errorf("it is %s", all[0].State)
		}
		return nil
	})
	r.write(prompts(3, id, "[[fake deltas=100000 us=1000]]"))
	w.asked(2)
	r.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, id))
	eventually(t, "a cancellation takes effect although the editor does not read", func() error {
		if all := ask[protocol.TurnListResult](p, "turn/list", protocol.TurnListParams{SessionID: protocol.SessionID(id)}).Data; all[0].State != protocol.TurnCancelled {
			return fmt.Errorf("it is %s", all[0].State)
		}
		return nil
	})
	begun := time.Now()
	r.stdin.Close()
	if err := r.cmd.Wait(); err != nil || time.Since(begun) > patience {
		t.Errorf("issue/6-3 lashd acp ended after %s with %v", time.Since(begun), err)
	}
}

// chunk is the text of an answer in a frame; empty for other frames.
func (m *acpFrame) chunk() string {
	var p struct {
		Update struct {
			SessionUpdate string `json:"sessionUpdate"`
			Content       struct{ Text string }
		}
	}
	json.Unmarshal(m.Params, &p) // other frames have none
	if p.Update.SessionUpdate != "agent_message_chunk" {
		return ""
	}
	return p.Update.Content.Text
}

// peak is the peak memory of a process in bytes.
func peak(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kb << 10
}
