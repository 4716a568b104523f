package engine_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// stubborn is a tool that runs for a while whatever its context says.
func stubborn(name string, d time.Duration) toolFunc {
	return toolFunc{name: name, run: func(context.Context, tool.Invocation) (tool.Result, error) {
		time.Sleep(d)
		return tool.Result{Output: protocol.Succeed("too late")}, nil
	}}
}

// obedient is a tool that runs until its context is done, and then says so by itself.
func obedient(name string, after time.Duration) toolFunc {
	return toolFunc{name: name, run: func(ctx context.Context, _ tool.Invocation) (tool.Result, error) {
		<-ctx.Done()
		time.Sleep(after)
		return tool.Result{Output: protocol.Succeed("stopped")}, nil
	}}
}

func TestInterrupt(t *testing.T) {
	bubble := func(t *testing.T, s setup, at func(*testing.T, *daemon, *observer, protocol.TurnID)) {
		synctest.Test(t, func(t *testing.T) {
			d := start(t, s)
			id := d.session(t)
			o := d.observe(t, id)
			at(t, d, o, d.begin(t, id, "go").TurnID)
		})
	}
	t.Run("runtime/T17 during a model call: the partial reply is kept, with who stopped it and why", func(t *testing.T) {
		bubble(t, setup{model: replies(scripted.Reply{Reasoning: "hm", Text: "I was saying", Stall: true})},
			func(t *testing.T, d *daemon, o *observer, id protocol.TurnID) {
				o.until(func(e protocol.Event) bool { return e.Text == "I was saying" })
				began := time.Now()
				if got := d.interrupt(t, id); got != protocol.InterruptRequested {
					t.Errorf("first interrupt: %s", got)
				}
				report := d.wait(t, id)
				if took := time.Since(began); took > 250*time.Millisecond {
					t.Errorf("it took %v", took)
				}
				if got := d.interrupt(t, id); got != protocol.InterruptTooLate {
					t.Errorf("interrupt after the end: %s", got)
				}
				want := protocol.CancelEvidence{RequestID: "internal:interrupt", Origin: "cli_a", Reason: "enough"}
				if report.State != protocol.TurnCancelled || *report.Outcome.Cancel != want {
					t.Errorf("state %s, evidence %+v", report.State, report.Outcome.Cancel)
				}
				if len(report.Calls) != 1 || report.Calls[0].Stop != protocol.StopCancelled {
					t.Errorf("call records %+v, want the one that was cancelled", report.Calls)
				}
				o.over(id)
				if got := d.history(t, report.SessionID); !slices.Equal(got, []string{"userMessage: go", "reasoning: hm", "agentMessage: I was saying"}) {
					t.Errorf("history %q", got)
				}
				if shown, kept := shownItems(o.all), d.itemIDs(t, report.SessionID); !slices.Equal(shown, kept) {
					t.Errorf("an observer is left with items %v, history has %v", shown, kept)
				}
			})
	})
	t.Run("runtime/T17 during tools: 50 ms to return, then the call counts as cancelled", func(t *testing.T) {
		bubble(t, setup{model: replies(calls("deaf", "quick", "slow")), tools: []tool.Provider{
			stubborn("deaf", time.Hour), obedient("quick", 49*time.Millisecond), obedient("slow", 51*time.Millisecond),
		}}, func(t *testing.T, d *daemon, o *observer, id protocol.TurnID) {
			o.until(func(e protocol.Event) bool { return e.Type == protocol.EventItemStarted && e.Seq != 0 })
			synctest.Wait()
			began := time.Now()
			d.interrupt(t, id)
			report := d.wait(t, id)
			if took := time.Since(began); took != 50*time.Millisecond {
				t.Errorf("it took %v, want the grace of 50ms", took)
			}
			var got []protocol.OutputStatus
			for _, c := range report.ToolCalls {
				got = append(got, c.Output.Status)
			}
			if want := []protocol.OutputStatus{protocol.OutputCancelled, protocol.OutputSuccess, protocol.OutputCancelled}; !slices.Equal(got, want) {
				t.Errorf("results %v, want %v", got, want)
			}
			if report.State != protocol.TurnCancelled {
				t.Errorf("state %s", report.State)
			}
			if next := d.turn(t, report.SessionID, "and?"); next.State != protocol.TurnCompleted {
				t.Errorf("the next turn ended as %s", next.State)
			}
			time.Sleep(time.Hour) // the deaf call must not outlive the bubble
		})
	})
	t.Run("runtime/T17 while it waits for approval: the question closes, the call did not run", func(t *testing.T) {
		ran := false
		edit := toolFunc{name: "edit", run: func(context.Context, tool.Invocation) (tool.Result, error) {
			ran = true
			return tool.Result{}, nil
		}}
		bubble(t, setup{model: replies(calls("edit")), tools: []tool.Provider{edit}, config: asking},
			func(t *testing.T, d *daemon, o *observer, id protocol.TurnID) {
				asked := o.typed(protocol.EventDecisionOpened).Decision
				d.interrupt(t, id)
				report := d.wait(t, id)
				o.over(id)
				resolved := o.of(protocol.EventDecisionResolved)
				if len(resolved) != 1 || resolved[0].Decision.ID != asked.ID || resolved[0].Decision.Answer.Choice != protocol.ChooseCancelled {
					t.Errorf("resolved %+v", resolved)
				}
				if ran || report.ToolCalls[0].Output.Status != protocol.OutputCancelled {
					t.Errorf("ran %t, result %s", ran, report.ToolCalls[0].Output.Status)
				}
				if open := must[*protocol.DecisionListResult](t)(d.Decisions.List(t.Context(), &protocol.DecisionListParams{})).Data; len(open) != 0 {
					t.Errorf("open decisions %+v", open)
				}
				if next := d.turn(t, report.SessionID, "and?"); next.State != protocol.TurnCompleted {
					t.Errorf("the next turn ended as %s", next.State)
				}
			})
	})
	t.Run("runtime/T17 while queued: the turn ends without starting", func(t *testing.T) {
		bubble(t, setup{model: replies(scripted.Reply{Stall: true})},
			func(t *testing.T, d *daemon, o *observer, running protocol.TurnID) {
				queued := d.begin(t, o.first.Session.ID, "later")
				if queued.State != protocol.TurnQueued {
					t.Errorf("state %s, want queued", queued.State)
				}
				d.interrupt(t, queued.TurnID)
				report := d.wait(t, queued.TurnID)
				if report.State != protocol.TurnCancelled || len(report.Calls) != 0 || report.StartedAtMs != 0 {
					t.Errorf("report %+v", report)
				}
				d.interrupt(t, running)
				d.wait(t, running)
				if got := d.history(t, report.SessionID); !slices.Equal(got, []string{"userMessage: go"}) {
					t.Errorf("history %q", got)
				}
			})
	})
	t.Run("runtime/T17 the first writer wins: a request during the last commit is too late", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPause()
			d := start(t, setup{model: replies(scripted.Reply{Text: "all said"}), config: committing(p)})
			id := d.begin(t, d.session(t), "go").TurnID
			<-p.reached
			second := make(chan protocol.InterruptStatus, 1)
			go func() { second <- d.interrupt(t, id) }() // waits for the actor, which is at the last commit
			synctest.Wait()
			close(p.goOn)
			if got := <-second; got != protocol.InterruptTooLate {
				t.Errorf("interrupt beside the commit: %s", got)
			}
			if report := d.wait(t, id); report.State != protocol.TurnCompleted {
				t.Errorf("state %s", report.State)
			}
		})
	})
	t.Run("runtime/T17 the first writer wins: a request stored before the end cancels a turn that already has an outcome", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			finish := toolFunc{name: "finish", run: func(context.Context, tool.Invocation) (tool.Result, error) {
				return tool.Result{Output: protocol.Succeed("x"), Control: &protocol.ToolControl{Kind: protocol.ControlFinish}}, nil
			}}
			p := newPause()
			d := start(t, setup{model: replies(calls("finish")), tools: []tool.Provider{finish}, driver: &pausingDriver{results: p}})
			id := d.begin(t, d.session(t), "go").TurnID
			<-p.reached
			if got := d.interrupt(t, id); got != protocol.InterruptRequested {
				t.Errorf("interrupt: %s", got)
			}
			close(p.goOn)
			if report := d.wait(t, id); report.State != protocol.TurnCancelled || report.ToolCalls[0].Output.Status != protocol.OutputSuccess {
				t.Errorf("state %s, result %s", report.State, report.ToolCalls[0].Output.Status)
			}
		})
	})
	t.Run("runtime/T17 an interrupt is idempotent", func(t *testing.T) {
		bubble(t, setup{model: replies(calls("slow")), tools: []tool.Provider{obedient("slow", 40*time.Millisecond)}},
			func(t *testing.T, d *daemon, o *observer, id protocol.TurnID) {
				o.until(func(e protocol.Event) bool { return e.Type == protocol.EventItemStarted && e.Seq != 0 })
				synctest.Wait()
				first := d.interrupt(t, id)
				if again := d.interrupt(t, id); first != protocol.InterruptRequested || again != protocol.InterruptAlready {
					t.Errorf("interrupts: %s, then %s", first, again)
				}
				if report := d.wait(t, id); report.State != protocol.TurnCancelled {
					t.Errorf("state %s", report.State)
				}
			})
	})
}
