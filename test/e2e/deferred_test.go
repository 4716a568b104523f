package e2e

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lashd/rpc/protocol"
)

// complete sends the output of a call and reports whether it was accepted.
func (p *peer) complete(key protocol.CompletionKey, output string) bool {
	p.t.Helper()
	params := protocol.ToolCompleteParams{Key: key, Output: protocol.Succeed(output)}
	return ask[protocol.ToolCompleteResult](p, "tool/complete", params).Accepted
}

// completionKey waits until the porter has taken its key, and returns it.
func (h *home) completionKey() (key protocol.CompletionKey) {
	h.t.Helper()
	eventually(h.t, "the porter has its key", func() error {
		text, err := os.ReadFile(filepath.Join(h.work, "key"))
		if key = protocol.CompletionKey(text); err == nil && key == "" {
			err = errors.New("it is empty")
		}
		return err
	})
	return key
}

// awaited is a world with a turn that waits for a call to be completed from outside.
func awaited(t *testing.T) (w *world, d *daemon, turn protocol.TurnID, key protocol.CompletionKey) {
	t.Helper()
	w = newWorld(t, "allow", step(uses("porter", struct{}{})), done)
	d = w.servePlugged()
	p := w.dial("cli_starter")
	id := p.session(w.home)
	turn = p.start(id, "go").TurnID
	waits := p.event("the call waits", opened).Decision
	if waits.Kind != protocol.DecisionCompletion || waits.Call == nil || waits.Call.Name != "porter" {
		t.Fatalf("plugin/TL-21 open decisions: %+v", waits)
	}
	p.conn.Close()
	return w, d, turn, w.completionKey()
}

// brought checks that the call ran once and was completed once, and that the hooks after it ran once.
func brought(w *world, p *peer, turn protocol.TurnID) {
	w.t.Helper()
	r := p.wait(turn)
	if r.State != protocol.TurnCompleted || len(r.ToolCalls) != 1 || r.ToolCalls[0].Output.Text != "a trunk" {
		w.t.Errorf("plugin/TL-21 the turn is %s with calls %+v", r.State, r.ToolCalls)
	}
	want := map[string]int{
		"before turn": 1, "porter called": 1, "porter sent": 1, "result": 1, "checkpoint afterWork": 1, "checkpoint beforeCompletion": 1, "after turn": 1,
	}
	if got := w.hooksAsked(); !maps.Equal(got, want) {
		w.t.Errorf("plugin/TL-21 hooks ran %v, want %v", got, want)
	}
}

func TestAnotherClientCompletesACall(t *testing.T) {
	w, _, turn, key := awaited(t)
	p := w.dial("cli_other")
	id, _, _ := strings.Cut(string(key), ".")
	for _, forged := range []string{"dec_none", id, id + ".", id + "." + strings.Repeat("0", 32), string(key) + "0"} {
		params := protocol.ToolCompleteParams{Key: protocol.CompletionKey(forged), Output: protocol.Succeed("x")}
		if _, err := try[protocol.ToolCompleteResult](p, "tool/complete", params); err == nil {
			t.Errorf("plugin/TL-21 runtime/B13 the forged key %q was accepted", forged)
		} else if _, kind := refusal(err); kind != protocol.KindCallNotFound {
			t.Errorf("plugin/TL-21 runtime/B13 the key %q is rejected as %s", forged, kind)
		}
	}
	if !p.complete(key, "a trunk") || p.complete(key, "a hatbox") {
		t.Error("plugin/TL-21 a second completion was accepted")
	}
	brought(w, p, turn)
}

// TestRunWaitsForACompletion checks that lash run reports a waiting call and does not ask about it.
func TestRunWaitsForACompletion(t *testing.T) {
	w := newWorld(t, "allow", step(uses("porter", struct{}{})), done)
	w.servePlugged()
	p := w.dial("")
	id := p.session(w.home)
	cmd := w.command("run", "--session", string(id), "go")
	var stderr, stdout strings.Builder
	cmd.Stderr, cmd.Stdout = &stderr, &stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waiting := p.event("the call waits", opened).Decision.ID
	key := w.completionKey()
	_, err := try[protocol.DecisionRespondResult](p, "decision/respond", protocol.DecisionRespondParams{DecisionID: waiting, Choice: protocol.ChooseAllowOnce})
	if err == nil || !strings.Contains(err.Error(), "tool/complete") {
		t.Errorf("plugin/TL-21 answering the call as a decision returns %v", err)
	}
	p.complete(key, "a trunk")
	if err := cmd.Wait(); err != nil || stdout.String() != "done\n" {
		t.Errorf("plugin/TL-21 run: %v; stdout %q", err, &stdout)
	}
	waits := "[porter is waiting for its result from another program]\n"
	if got := stderr.String(); strings.Count(got, waits) != 1 || strings.Contains(got, string(key)) || strings.Contains(got, "answer was not stored") {
		t.Errorf("plugin/TL-21 run prints %q", got)
	}
}

// TestACallWaitsAcrossSIGKILL kills the daemon while a call waits, and again right after its
// completion.
func TestACallWaitsAcrossSIGKILL(t *testing.T) {
	w, d, turn, key := awaited(t)
	d.kill()
	d = w.servePlugged()
	if !w.dial("cli_other").complete(key, "a trunk") {
		t.Error("plugin/TL-21 the completion is rejected after a crash")
	}
	d.kill()
	w.servePlugged()
	p := w.dial("cli_other")
	if p.complete(key, "a hatbox") {
		t.Error("plugin/TL-21 a second completion is accepted after a crash")
	}
	r := p.wait(turn)
	if r.State != protocol.TurnCompleted || len(r.ToolCalls) != 1 || r.ToolCalls[0].Output.Text != "a trunk" {
		t.Errorf("plugin/TL-21 the turn is %s with calls %+v", r.State, r.ToolCalls)
	}
	if n := w.hooksAsked()["porter sent"]; n != 1 {
		t.Errorf("plugin/TL-21 the porter ran %d times", n)
	}
}
