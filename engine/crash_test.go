package engine_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"lashd/rpc/protocol"
)

// kill runs a victim until it has reached a point, and kills it there.
func kill(t *testing.T, dir, point string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), victimDir+"="+dir, victimPoint+"="+point)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "reached\n" {
		t.Errorf("the victim said %q, %v", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed, and says so
}

func TestKilled(t *testing.T) {
	for _, c := range []struct {
		point   string
		never   int // times the call ran that must not be repeated
		safe    int // times the call ran that may be
		unknown bool
	}{
		{beforeModel, 1, 1, false},
		{whileStreaming, 1, 1, false},
		{neverStarted, 1, 2, true},
		{safeStarted, 1, 2, true},
		{batchPartly, 1, 2, false},
		{batchFinished, 1, 1, false},
		{forApproval, 1, 1, false},
		{beforeCommit, 1, 1, false},
	} {
		t.Run("reliability/P5 runtime/P11 runtime/Q03 runtime/Q04 killed "+c.point, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			kill(t, dir, c.point)
			s := crashSetup(dir, c.point, nil)
			s.dir = filepath.Join(dir, "store")
			d := start(t, s)
			live := d.observe(t, victimSession, 0)
			turns := must[*protocol.TurnListResult](t)(d.Turns.List(t.Context(), &protocol.TurnListParams{SessionID: victimSession})).Data
			if len(turns) != 1 {
				t.Fatalf("%d turns, want 1", len(turns))
			}
			if c.point == forApproval {
				approveAll(t, d)
			}
			report := d.wait(t, turns[0].TurnID)
			live.over(report.TurnID)
			if report.State != protocol.TurnCompleted || report.Outcome.Text != "done" {
				t.Errorf("the turn ended as %s: %+v %+v", report.State, report.Outcome, report.Issues)
			}
			// The point decides which of the two calls had been started or returned when the process died.
			if never := counted(dir, "never"); never > c.never {
				t.Errorf("a call that must not be repeated ran %d times", never)
			}
			if safe := counted(dir, "safe-c2"); safe < 1 || safe > c.safe {
				t.Errorf("a call that may be repeated ran %d times, at most %d expected", safe, c.safe)
			}
			outcome(t, live, report, c.unknown)
			live.gapless(0)
			once(t, live)
			if shown, kept := shownItems(live.all), d.itemIDs(t, victimSession); !slices.Equal(shown, kept) {
				t.Errorf("an observer is left with items %v, history has %v", shown, kept)
			}
			again := d.observe(t, victimSession, 0)
			again.over(report.TurnID)
			if !slices.Equal(again.durable(), live.durable()) {
				t.Errorf("replayed\n%q\nlive\n%q", again.durable(), live.durable())
			}
			if next := d.turn(t, victimSession, "and?"); next.State != protocol.TurnCompleted {
				t.Errorf("the next turn ended as %s %+v", next.State, next.Issues)
			}
		})
	}
}

func TestKilledDuringBatch(t *testing.T) {
	t.Run("runtime/P10 the order in which calls settled survives SIGKILL, and later results follow", func(t *testing.T) {
		dir := t.TempDir()
		kill(t, dir, batchSettled)
		s := crashSetup(dir, batchSettled, nil)
		s.dir = filepath.Join(dir, "store")
		d := start(t, s)
		turns := must[*protocol.TurnListResult](t)(d.Turns.List(t.Context(), &protocol.TurnListParams{SessionID: victimSession})).Data
		report := d.wait(t, turns[0].TurnID)
		var names []string
		var order []int
		for _, c := range report.ToolCalls {
			names, order = append(names, c.Name), append(order, c.Order)
		}
		if !slices.Equal(names, []string{"refused", "hangs", "second", "first"}) || !slices.Equal(order, []int{0, 3, 2, 1}) {
			t.Errorf("calls %v settled in order %v", names, order)
		}
		if n := counted(dir, "first"); n != 1 {
			t.Errorf("the call that settled first ran %d times, though one that settled after it is stored", n)
		}
	})
}

// outcome checks the result of the call that must not be repeated. If it started and did not return, lashd opens a
// decision. Without an answer the model gets an unknown outcome.
func outcome(t *testing.T, o *observer, report *protocol.TurnReport, unknown bool) {
	t.Helper()
	got := report.ToolCalls[0].Output
	resolved := slices.DeleteFunc(o.of(protocol.EventDecisionResolved), func(e protocol.Event) bool { return e.Decision.Kind != protocol.DecisionOutcome })
	if !unknown {
		if got.Text != "once" || len(resolved) != 0 {
			t.Errorf("output %+v, %d questions about it", got, len(resolved))
		}
		return
	}
	if got.Status != protocol.OutputUnknown || len(resolved) != 1 {
		t.Fatalf("output %+v, %d questions about it", got, len(resolved))
	}
	if a := resolved[0].Decision.Answer; a.Choice != protocol.ChooseTellModel || a.By != "deadline" {
		t.Errorf("answer %+v", a)
	}
	opened := slices.ContainsFunc(o.of(protocol.EventDecisionOpened), func(e protocol.Event) bool { return e.Decision.ID == resolved[0].Decision.ID })
	if !opened {
		t.Error("the question was never opened")
	}
}

func approveAll(t *testing.T, d *daemon) {
	t.Helper()
	open := must[*protocol.DecisionListResult](t)(d.Decisions.List(t.Context(), &protocol.DecisionListParams{})).Data
	if len(open) != 2 {
		t.Errorf("%d decisions are open, want 2", len(open))
	}
	for _, o := range open {
		must[*protocol.DecisionRespondResult](t)(d.Decisions.Respond(t.Context(), "cli_a", &protocol.DecisionRespondParams{
			DecisionID: o.ID, Choice: protocol.ChooseAllowOnce, ArgsHash: o.ArgsHash,
		}))
	}
}
