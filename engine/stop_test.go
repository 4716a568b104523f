package engine_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine"
	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

func TestStop(t *testing.T) {
	// stopped runs a turn whose batch calls the tools, stops the daemon once all of them run, and starts it again.
	stopped := func(t *testing.T, tools []tool.Provider, check func(*testing.T, *daemon, protocol.TurnID, time.Duration)) {
		synctest.Test(t, func(t *testing.T) {
			var names []string
			for _, p := range tools {
				names = append(names, p.Tools()[0].Manifest.Name)
			}
			d := start(t, setup{model: replies(calls(names...), scripted.Reply{Text: "done"}), tools: tools})
			id := d.session(t)
			turn := d.begin(t, id, "go").TurnID
			synctest.Wait()
			began := time.Now()
			d = d.restart(t, nil)
			check(t, d, turn, time.Since(began))
		})
	}
	t.Run("reliability/P25 a stopping daemon waits for the result of a call and keeps it", func(t *testing.T) {
		stopped(t, []tool.Provider{obedient("work", 5*time.Second)}, func(t *testing.T, d *daemon, turn protocol.TurnID, took time.Duration) {
			report := d.wait(t, turn)
			if out := report.ToolCalls[0].Output; out.Text != "stopped" || report.State != protocol.TurnCompleted {
				t.Errorf("output %+v, state %s", out, report.State)
			}
			if took != 5*time.Second {
				t.Errorf("stopping took %v", took)
			}
		})
	})
	t.Run("reliability/P7 a call that did not return is recorded as unknown, never as cancelled", func(t *testing.T) {
		runs := 0
		deaf := toolFunc{name: "deaf", run: func(context.Context, tool.Invocation) (tool.Result, error) {
			runs++
			time.Sleep(10 * time.Second)
			return tool.Result{Output: protocol.Succeed("too late")}, nil
		}}
		stopped(t, []tool.Provider{deaf, obedient("quick", 0)}, func(t *testing.T, d *daemon, turn protocol.TurnID, took time.Duration) {
			o := d.observe(t, must[*protocol.TurnReport](t)(d.Turns.Read(t.Context(), &protocol.TurnParams{TurnID: turn})).SessionID, 0)
			asked := o.typed(protocol.EventDecisionOpened).Decision
			if asked.Kind != protocol.DecisionOutcome || asked.Call.Name != "deaf" || asked.Default != protocol.ChooseTellModel {
				t.Errorf("decision %+v", asked)
			}
			report := d.wait(t, turn) // virtual time advances to the deadline
			resolved := o.typed(protocol.EventDecisionResolved).Decision
			if resolved.ID != asked.ID || resolved.Answer.By != "deadline" || resolved.Answer.Choice != protocol.ChooseTellModel {
				t.Errorf("resolved %+v", resolved.Answer)
			}
			first, second := report.ToolCalls[0].Output, report.ToolCalls[1].Output
			if first.Status != protocol.OutputUnknown || second.Text != "stopped" || runs != 1 {
				t.Errorf("outputs %+v and %+v, the tool ran %d times", first, second, runs)
			}
			if took < 6*time.Second || took > 13*time.Second {
				t.Errorf("stopping took %v", took)
			}
		})
	})
	t.Run("plugin/TL-19 reliability/P7 a serial call that had not started is made after the restart", func(t *testing.T) {
		runs := map[string]int{}
		alone := func(name string, takes time.Duration) toolFunc {
			return toolFunc{name: name, contract: protocol.ToolContract{Serial: true}, run: func(context.Context, tool.Invocation) (tool.Result, error) {
				runs[name]++
				time.Sleep(takes)
				return tool.Result{Output: protocol.Succeed(name)}, nil
			}}
		}
		stopped(t, []tool.Provider{alone("deaf", 10*time.Second), alone("next", 0)}, func(t *testing.T, d *daemon, turn protocol.TurnID, _ time.Duration) {
			report := d.wait(t, turn)
			first, second := report.ToolCalls[0].Output, report.ToolCalls[1].Output
			if first.Status != protocol.OutputUnknown || second.Text != "next" || runs["deaf"] != 1 || runs["next"] != 1 {
				t.Errorf("outputs %+v and %+v, the tools ran %v", first, second, runs)
			}
		})
	})
	t.Run("runtime/P11 a repeatable tool runs again with the same call id", func(t *testing.T) {
		var seen []tool.Invocation
		safe := toolFunc{name: "safe", contract: protocol.ToolContract{Replay: protocol.ReplaySafe},
			run: func(ctx context.Context, call tool.Invocation) (tool.Result, error) {
				seen = append(seen, call)
				if len(seen) == 1 {
					<-ctx.Done()
					return tool.Result{}, ctx.Err()
				}
				return tool.Result{Output: protocol.Succeed("second")}, nil
			}}
		stopped(t, []tool.Provider{safe}, func(t *testing.T, d *daemon, turn protocol.TurnID, _ time.Duration) {
			report := d.wait(t, turn)
			if len(seen) != 2 || seen[0].CallID != seen[1].CallID || seen[0].Attempt != 1 || seen[1].Attempt != 2 {
				t.Errorf("calls %+v", seen)
			}
			if report.ToolCalls[0].Output.Text != "second" {
				t.Errorf("output %+v", report.ToolCalls[0].Output)
			}
		})
	})
	t.Run("issue/2 a call is repeated only if its tool was safe when it started and is safe now", func(t *testing.T) {
		const never, safe, idempotent = protocol.ReplayNever, protocol.ReplaySafe, protocol.ReplayIdempotent
		for _, c := range []struct {
			then, now protocol.Replay
			runs      int
		}{{never, safe, 1}, {"", idempotent, 1}, {safe, never, 1}, {safe, idempotent, 2}} {
			synctest.Test(t, func(t *testing.T) {
				runs := 0
				deploy := func(replay protocol.Replay) []tool.Provider {
					return []tool.Provider{toolFunc{name: "deploy", contract: protocol.ToolContract{Replay: replay}, run: func(ctx context.Context, _ tool.Invocation) (tool.Result, error) {
						if runs++; runs == 1 {
							<-ctx.Done()
							return tool.Result{}, ctx.Err()
						}
						return tool.Result{Output: protocol.Succeed("again")}, nil
					}}}
				}
				d := start(t, setup{model: replies(calls("deploy"), scripted.Reply{Text: "done"}), tools: deploy(c.then)})
				d.begin(t, d.session(t), "go")
				synctest.Wait()
				d = d.restart(t, func(s *setup) { s.tools = deploy(c.now) })
				synctest.Wait()
				if asks := len(d.asking(t)); runs != c.runs || asks != 2-c.runs {
					t.Errorf("%q, and %q after the restart: it ran %d times, want %d; %d questions", c.then, c.now, runs, c.runs, asks)
				}
			})
		}
	})
	t.Run("issue/2 a direct call is cancelled when the daemon stops, and the daemon waits only for that", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := start(t, setup{model: replies(), tools: []tool.Provider{obedient("work", 2*time.Second)}})
			id := d.session(t)
			told := make(chan error, 1)
			go func() {
				_, err := d.Tools.Call(context.WithoutCancel(t.Context()), &protocol.ToolCallParams{SessionID: id, Name: "work"})
				told <- err
			}()
			synctest.Wait()
			began := time.Now()
			d.halt()
			if took := time.Since(began); took != 2*time.Second {
				t.Errorf("stopping took %v", took)
			}
			if err := <-told; err != nil && !errors.Is(err, engine.ErrShuttingDown) {
				t.Errorf("the caller got: %v", err)
			}
		})
	})
	t.Run("issue/2 a commit that is under way when the daemon stops is reported with its real outcome", func(t *testing.T) {
		d := start(t, setup{model: replies()})
		id := d.session(t)
		db := must[*sql.DB](t)(sql.Open("sqlite", filepath.Join(d.store.Dir(), "lashd.db")+"?_pragma=busy_timeout(5000)"))
		defer db.Close()
		conn := must[*sql.Conn](t)(db.Conn(t.Context()))
		_, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE")
		ok(t, err)
		told := later(func() (*protocol.SeqResult, error) {
			return d.Sessions.SetTitle(context.WithoutCancel(t.Context()), &protocol.SessionSetTitleParams{SessionID: id, Title: "new"})
		})
		time.Sleep(100 * time.Millisecond) // let the store reach the lock
		halted := make(chan struct{})
		go func() { d.halt(); close(halted) }()
		time.Sleep(100 * time.Millisecond)
		_, err = conn.ExecContext(t.Context(), "ROLLBACK")
		ok(t, err)
		err = <-told
		<-halted
		d = d.restart(t, nil)
		if title := must[persistence.Session](t)(d.store.Session(t.Context(), id)).Title; (title == "new") != (err == nil) {
			t.Errorf("the request returned %v, and the title is %q", err, title)
		}
	})
	t.Run("runtime/P11 a queued turn and a turn that waits for a person continue after a restart", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := start(t, setup{model: replies(calls("look"), scripted.Reply{Text: "done"}), tools: []tool.Provider{says("look", "fine")}, config: asking})
			id := d.session(t)
			first, second := d.begin(t, id, "go").TurnID, d.begin(t, id, "more").TurnID
			before := d.observe(t, id, 0).typed(protocol.EventDecisionOpened).Decision
			d = d.restart(t, nil)
			open := must[*protocol.DecisionListResult](t)(d.Decisions.List(t.Context(), &protocol.DecisionListParams{SessionID: id})).Data
			if len(open) != 1 || open[0].ID != before.ID || open[0].DeadlineMs != before.DeadlineMs {
				t.Errorf("open after the restart: %+v, before: %+v", open, before)
			}
			answer := &protocol.DecisionRespondParams{DecisionID: before.ID, Choice: protocol.ChooseAllowOnce, ArgsHash: before.ArgsHash}
			if got := must[*protocol.DecisionRespondResult](t)(d.Decisions.Respond(t.Context(), "cli_a", answer)); !got.Won {
				t.Errorf("answer %+v", got)
			}
			if again := must[*protocol.DecisionRespondResult](t)(d.Decisions.Respond(t.Context(), "cli_b", answer)); again.Won || again.Answer.By != "cli_a" {
				t.Errorf("second answer %+v", again)
			}
			if a, b := d.wait(t, first), d.wait(t, second); a.ToolCalls[0].Output.Text != "fine" || b.State != protocol.TurnCompleted {
				t.Errorf("turns %+v and %s", a.ToolCalls, b.State)
			}
			if open := must[*protocol.DecisionListResult](t)(d.Decisions.List(t.Context(), &protocol.DecisionListParams{})).Data; len(open) != 0 {
				t.Errorf("still open: %+v", open)
			}
		})
	})
}

func TestAbandoned(t *testing.T) {
	t.Run("runtime/P11 a turn that cannot resume ends, its questions are closed and its items withdrawn", func(t *testing.T) {
		d := start(t, setup{model: replies(calls("look")), tools: []tool.Provider{says("look", "fine")}, config: asking})
		id := d.session(t)
		live := d.observe(t, id)
		turn := d.begin(t, id, "go").TurnID
		asked := live.typed(protocol.EventDecisionOpened).Decision
		d = d.restart(t, func(s *setup) { s.plugins = []plugin.Factory{clumsy{at: "build"}} })
		report := d.wait(t, turn)
		if report.State != protocol.TurnFailed || report.Issues[0].Code != "panic" {
			t.Errorf("report %+v", report)
		}
		o := d.observe(t, id, 0)
		o.over(turn)
		o.gapless(0)
		if left := shownItems(o.all); len(left) != 0 {
			t.Errorf("an observer is left with items %v", left)
		}
		resolved := o.of(protocol.EventDecisionResolved)
		if len(resolved) != 1 || resolved[0].Decision.ID != asked.ID {
			t.Errorf("resolved %+v", resolved)
		}
		if open := must[*protocol.DecisionListResult](t)(d.Decisions.List(t.Context(), &protocol.DecisionListParams{})).Data; len(open) != 0 {
			t.Errorf("still open: %+v", open)
		}
		inputs := must[*protocol.QueueListResult](t)(d.Queue.List(t.Context(), &protocol.QueueListParams{SessionID: id, All: true})).Data
		if len(inputs) != 1 || inputs[0].State != protocol.InputCancelled {
			t.Errorf("inputs %+v: the input must stay stored", inputs)
		}
	})
	t.Run("reliability/P25 no turn starts while the daemon stops", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPause()
			script := &scripted.Script{
				Turns:     []scripted.Turn{{Match: &scripted.Match{LastUserContains: "more"}, Replies: []scripted.Reply{{Stall: true}}}},
				Otherwise: &scripted.Turn{Replies: []scripted.Reply{calls("work"), {Text: "done"}}},
			}
			g := newGate("work")
			d := start(t, setup{model: scripted.New(script), tools: []tool.Provider{g}, config: committing(p)})
			id := d.session(t)
			first := d.begin(t, id, "go").TurnID
			<-g.called
			second := d.begin(t, id, "more").TurnID
			close(g.open)
			<-p.reached // the first turn has ended, and nothing else has reached the actor
			stopped := make(chan struct{})
			go func() {
				d.stop()
				close(stopped)
			}()
			synctest.Wait()
			close(p.goOn)
			<-stopped
			d = d.restart(t, func(s *setup) {
				s.config = nil
				s.model = scripted.New(&scripted.Script{Otherwise: &scripted.Turn{Replies: []scripted.Reply{{Text: "done"}}}})
			})
			if a, b := d.wait(t, first), d.wait(t, second); a.State != protocol.TurnCompleted || b.State != protocol.TurnCompleted {
				t.Errorf("turns ended as %s and %s", a.State, b.State)
			}
		})
	})
}
