package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
)

// child creates a subagent session. Its approval mode is that of its parent unless mode is set.
func (p *peer) child(parent protocol.SessionID, mode protocol.ApprovalMode) protocol.SessionID {
	p.t.Helper()
	params := protocol.SessionNewParams{Relation: protocol.Relation{Kind: protocol.RelationChild, Parent: parent}}
	if mode != "" {
		params.Approval = &protocol.ApprovalConfig{Mode: mode}
	}
	return ask[protocol.SessionNewResult](p, "session/new", params).SessionID
}

// commands is a prompt on which the model runs a command.
func commands(text string) string { return fakemodel.ToolMarker("shell", mustArgs(shellArgs{text})) }

// allow approves the call of a decision.
func (p *peer) allow(d protocol.Decision) protocol.DecisionRespondResult {
	p.t.Helper()
	return ask[protocol.DecisionRespondResult](p, "decision/respond", protocol.DecisionRespondParams{
		DecisionID: d.ID, Choice: protocol.ChooseAllowOnce, ArgsHash: d.ArgsHash,
	})
}

// TestAQuestionOfAChildOutlivesEverybody has three subagents, one of them two levels below. That one
// asks; then all clients disconnect and the daemon dies.
func TestAQuestionOfAChildOutlivesEverybody(t *testing.T) {
	w := newWorld(t, "allow")
	d := w.serve()
	p := w.dial("cli_gone")
	root := p.session(w.home)
	first, second := p.child(root, ""), p.child(root, "")
	third := p.child(first, protocol.ApproveAsk)
	var turns []protocol.TurnID
	for _, id := range []protocol.SessionID{first, second, third} {
		turns = append(turns, p.start(id, commands("printf x >> ran")).TurnID)
	}
	above := p.event("the parent's client learns of it", func(e protocol.Event) bool { return opened(e) && e.SessionID == root }).Decision
	if above.SessionID != third || above.TurnID != turns[2] {
		t.Errorf("issue/5-6 peers/R5 the parent's client got %+v", above)
	}
	p.wait(turns[0])
	p.wait(turns[1])
	p.conn.Close()
	d.kill()
	w.serve()
	p = w.dial("cli_later")
	attached := p.attach(root, 0)
	listed := ask[protocol.DecisionListResult](p, "decision/list", protocol.DecisionListParams{SessionID: root}).Data
	for _, open := range [][]protocol.Decision{attached.Decisions, listed} {
		if len(open) != 1 || open[0].ID != above.ID || open[0].DeadlineMs != above.DeadlineMs {
			t.Fatalf("issue/5-6 peers/R5 after the restart these decisions are open: %+v, want %s", open, above.ID)
		}
	}
	if n := w.size("ran"); n != 2 {
		t.Errorf("issue/5-6 %d commands ran before the answer, want 2", n)
	}
	if !p.allow(listed[0]).Won {
		t.Error("issue/5-6 peers/R5 the answer was rejected")
	}
	told := p.event("the parent's client learns of the answer", func(e protocol.Event) bool { return resolved(e) && e.SessionID == root }).Decision
	if told.ID != above.ID || told.Answer.By != "cli_later" {
		t.Errorf("issue/5-6 peers/R5 the parent's client got %+v", told)
	}
	for _, id := range turns {
		if r := p.wait(id); r.State != protocol.TurnCompleted || r.ToolCalls[0].Output.Status != protocol.OutputSuccess {
			t.Errorf("issue/5-6 a turn is %s with calls %+v", r.State, r.ToolCalls)
		}
	}
	if n := w.size("ran"); n != 3 {
		t.Errorf("issue/5-6 %d commands ran, want 3", n)
	}
}

// TestRunDeniesWhatAChildAsks checks that lash run denies a subagent's request when no person can
// answer it.
func TestRunDeniesWhatAChildAsks(t *testing.T) {
	w := newWorld(t, "allow")
	w.serve()
	p := w.dial("")
	root := p.session(w.home)
	before := p.child(root, protocol.ApproveAsk)
	waits := p.start(before, commands("true")).TurnID
	p.event("the question of another", func(e protocol.Event) bool { return opened(e) && e.SessionID == root })
	cmd := w.command("run", "--session", string(root), commands("while [ ! -e on ]; do sleep 0.02; done"))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.event("the command runs", func(e protocol.Event) bool {
		return e.Type == protocol.EventItemStarted && e.SessionID == root && e.Seq != 0
	})
	r := p.wait(p.start(p.child(root, protocol.ApproveAsk), commands("touch forbidden")).TurnID)
	if f := r.ToolCalls[0].Output.Failure; f == nil || f.Code != "denied" {
		t.Errorf("peers/R5 the call returned %+v", r.ToolCalls[0].Output)
	}
	w.write(w.work+"/on", "")
	err := cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 3 || !strings.Contains(stderr.String(), "call of the tool shell was denied") {
		t.Errorf("peers/R5 run ended with %d, %v: %s", code, err, &stderr)
	}
	if _, err := os.Stat(w.work + "/forbidden"); err == nil {
		t.Error("peers/R5 the command ran")
	}
	if open := ask[protocol.DecisionListResult](p, "decision/list", protocol.DecisionListParams{SessionID: root}).Data; len(open) != 1 || open[0].TurnID != waits {
		t.Errorf("peers/R5 a decision from before the run is not open any more: %+v", open)
	}
}

// TestCancelLeavesTheOthers cancels one of three running turns.
func TestCancelLeavesTheOthers(t *testing.T) {
	w := newWorld(t, "allow")
	w.serve()
	p := w.dial("")
	wait := commands("printf x >> began; while [ ! -e on ]; do sleep 0.02; done")
	var turns []protocol.TurnID
	for range 3 {
		turns = append(turns, p.start(p.session(w.home), wait).TurnID)
	}
	eventually(t, "all commands run", func() error {
		if n := w.size("began"); n != 3 {
			return fmt.Errorf("%d running", n)
		}
		return nil
	})
	ask[protocol.TurnInterruptResult](p, "turn/interrupt", protocol.TurnInterruptParams{TurnID: turns[1]})
	r := p.wait(turns[1])
	if r.State != protocol.TurnCancelled || r.Outcome.Kind != protocol.OutcomeCancelled || p.completed(turns[1]).Outcome.Kind != protocol.OutcomeCancelled {
		t.Errorf("peers/R6 issue/5-8 the cancelled turn is %s, %+v", r.State, r.Outcome)
	}
	all, _ := p.events()
	if i := slices.IndexFunc(all, func(e told) bool { return e.Type == protocol.EventTurnCompleted && e.TurnID != turns[1] }); i >= 0 {
		t.Errorf("peers/R6 another turn ended with it: %+v", all[i].Event)
	}
	w.write(w.work+"/on", "")
	for _, id := range []protocol.TurnID{turns[0], turns[2]} {
		if r := p.wait(id); r.State != protocol.TurnCompleted || r.Outcome.Kind == protocol.OutcomeCancelled {
			t.Errorf("peers/R6 another turn is %s, %+v", r.State, r.Outcome)
		}
	}
}

// TestSessionsAreParked checks that unused sessions are unloaded as config.toml says.
func TestSessionsAreParked(t *testing.T) {
	w := newWorld(t, "allow")
	w.parks()
	w.serve()
	p := w.dial("")
	id := p.session(w.home)
	turn := p.start(id, commands("while [ ! -e on ]; do sleep 0.02; done")).TurnID
	p.event("the command runs", func(e protocol.Event) bool { return e.Type == protocol.EventItemStarted && e.Seq != 0 })
	if _, err := try[protocol.SeqResult](p, "session/close", protocol.SessionMutationParams{SessionID: id}); err == nil {
		t.Error("runtime/S16 a session with a running turn was closed")
	} else if _, kind := refusal(err); kind != protocol.KindSessionInUse {
		t.Errorf("runtime/S16 closing during a turn is rejected as %s", kind)
	}
	w.write(w.work+"/on", "")
	p.wait(turn)
	ask[protocol.Empty](p, "session/detach", protocol.SessionParams{SessionID: id})
	p.noneLoaded()
	if r := p.turn(id, "and now?"); r.State != protocol.TurnCompleted {
		t.Errorf("runtime/S16 the next turn is %s", r.State)
	}
}

// parks sets a short time after which unused sessions are unloaded.
func (w *world) parks() {
	w.t.Helper()
	config, err := os.ReadFile(w.dir + "/config.toml")
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(w.dir+"/config.toml", "park_after = \"1s\"\n"+string(config))
}

// noneLoaded waits until no session is in memory.
func (p *peer) noneLoaded() {
	p.t.Helper()
	eventually(p.t, "no session is in memory", func() error {
		if n := ask[protocol.StatusResult](p, "server/status", protocol.Empty{}).Loaded; n != 0 {
			return fmt.Errorf("%d sessions are in memory", n)
		}
		return nil
	})
}
