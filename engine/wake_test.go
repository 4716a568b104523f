package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine"
	"lashd/engine/models"
	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// over is a wake for a task that has ended.
func over(task string) engine.Wake {
	return engine.Wake{
		Source: "task:" + task + ":event:3:wake", Delivery: protocol.DeliverAfterTurn,
		Cause: protocol.TurnCause{ID: "task:" + task + ":event:3", Type: "task/completed", Origin: task, Text: task + " is over"},
	}
}

// wake sends a wake to a session.
func (d *daemon) wake(t testing.TB, id protocol.SessionID, w engine.Wake) protocol.QueuedInput {
	t.Helper()
	in, refused, err := d.WakeSession(t.Context(), id, w)
	if err != nil || refused != "" {
		t.Fatalf("wake %s: refused as %q, %v", w.Source, refused, err)
	}
	return in
}

func (d *daemon) refusal(t testing.TB, id protocol.SessionID, w engine.Wake) (protocol.QueuedInput, protocol.WakeRefusal) {
	t.Helper()
	in, refused, err := d.WakeSession(t.Context(), id, w)
	if err != nil {
		t.Fatal(err)
	}
	return in, refused
}

func TestWake(t *testing.T) {
	t.Run("runtime/B06 a wake causes exactly one turn, however often it is sent, also after a restart", func(t *testing.T) {
		top := t
		d := start(t, setup{model: replies(scripted.Reply{Text: "noted"})})
		id := d.session(t)
		first := d.wake(t, id, over("tsk_1"))
		if report := d.wait(t, first.TurnID); report.State != protocol.TurnCompleted {
			t.Errorf("it ended as %s %+v", report.State, report.Issues)
		}
		for range 2 {
			again, refused := d.refusal(t, id, over("tsk_1"))
			if refused != protocol.WakeDuplicate || again.ID != first.ID {
				t.Errorf("again it is %s, refused as %q", again.ID, refused)
			}
			d = d.restart(top, nil)
		}
		want := []string{"notice: [task/completed tsk_1] tsk_1 is over", "agentMessage: noted"}
		if got := d.history(t, id); !slices.Equal(got, want) {
			t.Errorf("history %q, want %q", got, want)
		}
	})
	t.Run("runtime/B06 a wake for a session that runs a turn waits in the queue until the turn has ended", func(t *testing.T) {
		g := newGate("work")
		d := start(t, setup{model: replies(calls("work"), scripted.Reply{Text: "done"}), tools: []tool.Provider{g}})
		id := d.session(t)
		o := d.observe(t, id)
		running := d.begin(t, id, "go").TurnID
		<-g.called
		in := d.wake(t, id, over("tsk_1"))
		if in.TurnID == running || in.State != protocol.InputQueued {
			t.Errorf("it is %s in turn %s, and %s runs", in.State, in.TurnID, running)
		}
		close(g.open)
		d.wait(t, running)
		d.wait(t, in.TurnID)
		o.over(in.TurnID)
		accepted := o.of(protocol.EventTurnAccepted)
		if e := accepted[1]; len(e.Causes) != 1 || e.Causes[0].ID != "task:tsk_1:event:3" || e.Causes[0].Origin != "tsk_1" || e.TurnID != in.TurnID {
			t.Errorf("accepted %+v", e)
		}
	})
	t.Run("runtime/B06 a refused wake returns the reason and changes nothing", func(t *testing.T) {
		d := start(t, setup{model: replies(), config: func(c *engine.Config) { c.Models.(models.Fixed)[0].Spec.ContextWindow = 100 }})
		id, gone := d.session(t), d.session(t)
		must[*protocol.SeqResult](t)(d.Sessions.Delete(t.Context(), &protocol.SessionMutationParams{SessionID: gone}))
		third := over("tsk_1")
		third.Stream, third.Ordinal = "task:tsk_1", 3
		d.wait(t, d.wake(t, id, third).TurnID)
		seq := d.graph(t, id).Head
		for _, c := range []struct {
			want   protocol.WakeRefusal
			to     protocol.SessionID
			change func(*engine.Wake)
		}{
			{protocol.WakeDuplicate, id, func(*engine.Wake) {}},
			{protocol.WakeTargetGone, gone, func(*engine.Wake) {}},
			{protocol.WakeTargetGone, "ses_never", func(*engine.Wake) {}},
			{protocol.WakeExpired, id, func(w *engine.Wake) { w.Source, w.Expires = "x", time.Now().UnixMilli()-1 }},
			{protocol.WakeRewound, id, func(w *engine.Wake) { w.Source, w.Ordinal = "x", 2 }},
			{protocol.WakeTooLarge, id, func(w *engine.Wake) { w.Source, w.Cause.Text = "x", strings.Repeat("x", 400) }},
		} {
			w := third
			c.change(&w)
			if _, refused := d.refusal(t, c.to, w); refused != c.want {
				t.Errorf("%+v is refused as %q, want %s", w, refused, c.want)
			}
		}
		if now := d.graph(t, id).Head; now != seq {
			t.Errorf("head %+v, was %+v", now, seq)
		}
		if inputs := d.queue(t, id, true).Data; len(inputs) != 1 {
			t.Errorf("the queue has %+v", inputs)
		}
	})
	t.Run("runtime/B06 a wake that expires in the queue is dropped, and its turn does not run", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := newGate("work")
			d := start(t, setup{model: replies(calls("work"), scripted.Reply{Text: "done"}), tools: []tool.Provider{g}})
			id := d.session(t)
			running := d.begin(t, id, "go").TurnID
			<-g.called
			lasting, short, alone := over("tsk_1"), over("tsk_2"), over("tsk_3")
			lasting.Merge, short.Merge = "m", "m"
			short.Expires = time.Now().UnixMilli() + 1000
			alone.Expires = short.Expires
			both := d.wake(t, id, lasting).TurnID
			if with := d.wake(t, id, short).TurnID; with != both {
				t.Errorf("turns %s and %s, want one", both, with)
			}
			dropped := d.wake(t, id, alone).TurnID
			time.Sleep(2 * time.Second)
			close(g.open)
			d.wait(t, running)
			if report := d.wait(t, dropped); report.State != protocol.TurnCancelled || report.Outcome.Cancel.Reason != "its wake has expired" || report.StartedAtMs != 0 {
				t.Errorf("the turn of what expired: %+v", report)
			}
			if report := d.wait(t, both); report.State != protocol.TurnCompleted {
				t.Errorf("the turn of what did not: %+v", report)
			}
			var got []string
			for _, in := range d.queue(t, id, true).Data {
				got = append(got, string(in.State)+" "+string(in.Refused))
			}
			if want := []string{"completed ", "completed ", "cancelled expired", "cancelled expired"}; !slices.Equal(got, want) {
				t.Errorf("inputs %q, want %q", got, want)
			}
			if got := d.history(t, id); strings.Contains(strings.Join(got, " "), "tsk_2") || !slices.Contains(got, "notice: [task/completed tsk_1] tsk_1 is over") {
				t.Errorf("history %q", got)
			}
		})
	})
}

// apart gives each wake its own turn.
func apart(c *engine.Config) { c.Defaults.Drain = protocol.DrainOne }

func (d *daemon) queue(t testing.TB, id protocol.SessionID, all bool) *protocol.QueueListResult {
	t.Helper()
	return must[*protocol.QueueListResult](t)(d.Queue.List(t.Context(), &protocol.QueueListParams{SessionID: id, All: all}))
}

// line is a wake for the n-th line of a monitor.
func line(n int) engine.Wake {
	id := fmt.Sprintf("task:mon_1:event:%d", n)
	return engine.Wake{
		Source: id + ":wake", Merge: "monitor:mon_1", Delivery: protocol.DeliverAfterTurn,
		Cause: protocol.TurnCause{ID: id, Type: "monitor/line", Origin: "mon_1", Text: fmt.Sprint("line ", n)},
	}
}

func TestDrain(t *testing.T) {
	busy := func(t *testing.T, config func(*engine.Config)) (*daemon, protocol.SessionID, *gate) {
		t.Helper()
		g := newGate("work")
		d := start(t, setup{model: replies(calls("work"), scripted.Reply{Text: "done"}), tools: []tool.Provider{g}, config: config})
		id := d.session(t)
		d.begin(t, id, "go")
		<-g.called
		return d, id, g
	}
	t.Run("runtime/P08 runtime/B06 a burst of wakes with one key is one turn, unless the session's settings say otherwise", func(t *testing.T) {
		d, id, g := busy(t, apart)
		a, b := d.wake(t, id, line(1)), d.wake(t, id, line(2))
		if a.TurnID == b.TurnID {
			t.Error("they share a turn")
		}
		must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Drain: protocol.DrainMerge}))
		if c := d.wake(t, id, line(3)); c.TurnID != b.TurnID {
			t.Errorf("turn %s, want %s", c.TurnID, b.TurnID)
		}
		other, same, held := busy(t, nil)
		defer close(held.open)
		if x, y := other.wake(t, same, line(1)), other.wake(t, same, line(2)); x.TurnID != y.TurnID {
			t.Errorf("turns %s and %s, want one", x.TurnID, y.TurnID)
		}
		close(g.open)
		d.wait(t, b.TurnID)
		want := []string{"notice: [monitor/line mon_1] line 1", "agentMessage: ok", "notice: [monitor/line mon_1] line 2", "notice: [monitor/line mon_1] line 3", "agentMessage: ok"}
		if got := d.history(t, id); !slices.Equal(got[len(got)-5:], want) {
			t.Errorf("history %q, want %q", got, want)
		}
		if _, err := d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Drain: "never"}); err == nil {
			t.Error("an unknown policy was taken")
		}
	})
	t.Run("runtime/P08 only adjacent wakes with the same key and delivery share a turn", func(t *testing.T) {
		d, id, g := busy(t, nil)
		defer close(g.open)
		other, keyless, soon := over("tsk_1"), over("tsk_2"), line(3)
		other.Merge = "task"
		soon.Merge, soon.Delivery = "task", "later"
		turns := []protocol.TurnID{d.wake(t, id, line(1)).TurnID, d.wake(t, id, other).TurnID, d.wake(t, id, soon).TurnID, d.wake(t, id, keyless).TurnID,
			d.wake(t, id, line(2)).TurnID, d.begin(t, id, "me").TurnID, d.wake(t, id, line(4)).TurnID, d.wake(t, id, line(5)).TurnID}
		if turns[6] != turns[7] || len(slices.Compact(turns)) != 7 {
			t.Errorf("turns %v", turns)
		}
	})
	t.Run("runtime/P08 a turn has at most 64 wakes, all within half a minute and half a context", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d, id, g := busy(t, func(c *engine.Config) { c.Models.(models.Fixed)[0].Spec.ContextWindow = 4000 })
			defer close(g.open)
			turns := map[protocol.TurnID]int{}
			var order []int
			note := func(w engine.Wake) {
				in := d.wake(t, id, w)
				turns[in.TurnID]++
				if turns[in.TurnID] == 1 {
					order = append(order, 0)
				}
				order[len(order)-1]++
			}
			for n := range 65 {
				note(line(n))
			}
			time.Sleep(30 * time.Second)
			note(line(100))
			time.Sleep(time.Millisecond)
			note(line(101))
			long := line(102)
			long.Cause.Text = strings.Repeat("x", 8000)
			note(long)
			if want := []int{64, 2, 1, 1}; !slices.Equal(order, want) {
				t.Errorf("turns of %v wakes, want %v", order, want)
			}
		})
	})
	t.Run("runtime/P08 no wake joins a turn that has started, and the turn resumes unchanged", func(t *testing.T) {
		top := t
		g := newGate("work")
		model := &remembering{Provider: scripted.New(&scripted.Script{Otherwise: &scripted.Turn{Replies: []scripted.Reply{calls("work"), {Text: "done"}}}})}
		d := start(t, setup{model: model, tools: []tool.Provider{g}, config: soon})
		id := d.session(t)
		first := d.wake(t, id, line(1)).TurnID
		<-g.called
		second := d.wake(t, id, line(2)).TurnID
		if second == first {
			t.Error("it joined a turn that runs")
		}
		d = d.restart(top, nil)
		if third := d.wake(t, id, line(3)).TurnID; third != second {
			t.Errorf("turn %s, want %s, which has not begun", third, second)
		}
		close(g.open)
		d.wait(t, first)
		last := model.asked[1]
		if got := string(encoded(t, last.Messages)); strings.Contains(got, "line 2") || !strings.Contains(got, "line 1") {
			t.Errorf("it went on with %s", got)
		}
	})
	t.Run("runtime/P08 wakes of one commit share a turn that starts with all of them", func(t *testing.T) {
		d := start(t, setup{model: replies(scripted.Reply{Text: "noted"})})
		id := d.session(t)
		inputs := must[[]protocol.QueuedInput](t)(d.WakeTogether(t.Context(), id, line(1), line(2), line(1), over("tsk_1")))
		if len(inputs) != 3 || inputs[0].TurnID != inputs[1].TurnID || inputs[2].TurnID == inputs[0].TurnID {
			t.Fatalf("inputs %+v", inputs)
		}
		d.wait(t, inputs[0].TurnID)
		d.wait(t, inputs[2].TurnID)
		want := []string{"notice: [monitor/line mon_1] line 1", "notice: [monitor/line mon_1] line 2", "agentMessage: noted", "notice: [task/completed tsk_1] tsk_1 is over", "agentMessage: ok"}
		if got := d.history(t, id); !slices.Equal(got, want) {
			t.Errorf("history %q, want %q", got, want)
		}
		if left := d.queue(t, id, false).Data; len(left) != 0 {
			t.Errorf("left in the queue: %+v", left)
		}
	})
	t.Run("runtime/P08 wakes for the earliest boundary enter the running turn one after the other", func(t *testing.T) {
		notice := func(n int) string { return fmt.Sprintf("notice: [monitor/line mon_1] line %d", n) }
		for _, c := range []struct {
			config func(*engine.Config)
			want   []string
		}{
			{apart, []string{notice(1), "userMessage: me too", "agentMessage: ok", notice(2), "agentMessage: ok", notice(3), "agentMessage: ok", notice(4), "agentMessage: ok"}},
			{nil, []string{notice(1), notice(2), "userMessage: me too", "agentMessage: ok", notice(3), "agentMessage: ok", notice(4), "agentMessage: ok"}},
		} {
			d, id, g := busy(t, c.config)
			o := d.observe(t, id)
			running := must[*protocol.TurnListResult](t)(d.Turns.List(t.Context(), &protocol.TurnListParams{SessionID: id})).Data[0].TurnID
			for n := range 4 {
				w := line(n + 1)
				w.Delivery = protocol.DeliverEarliest
				if n == 2 {
					w.Merge = "other"
				}
				if in := d.wake(t, id, w); in.TurnID != running || in.State != protocol.InputPendingActive {
					t.Errorf("line %d is %s in turn %s, and %s runs", n+1, in.State, in.TurnID, running)
				}
			}
			must[*protocol.TurnSteerResult](t)(d.Turns.Steer(t.Context(), &protocol.TurnSteerParams{TurnID: running, Input: text("me too")}))
			close(g.open)
			if report := d.wait(t, running); report.State != protocol.TurnCompleted {
				t.Errorf("the turn ended as %s", report.State)
			}
			o.over(running)
			if got := d.history(t, id); !slices.Equal(got[2:], c.want) {
				t.Errorf("history\n%q, want\n%q", got[2:], c.want)
			}
		}
	})
	t.Run("runtime/P08 a wake that a turn no longer accepts gets a turn of its own", func(t *testing.T) {
		d, id, g := busy(t, nil)
		running := must[*protocol.TurnListResult](t)(d.Turns.List(t.Context(), &protocol.TurnListParams{SessionID: id})).Data[0].TurnID
		queued := d.begin(t, id, "me").TurnID
		w := line(1)
		w.Delivery = protocol.DeliverEarliest
		in := d.wake(t, id, w)
		d.interrupt(t, running)
		close(g.open)
		d.wait(t, running)
		d.wait(t, queued)
		after := d.queue(t, id, true).Data[2]
		if after.ID != in.ID || after.TurnID == queued || after.TurnID == running {
			t.Fatalf("the wake became %+v; turns are %s, %s", after, running, queued)
		}
		d.wait(t, after.TurnID)
		if got, want := d.history(t, id), []string{"userMessage: me", "agentMessage: ok", "notice: [monitor/line mon_1] line 1", "agentMessage: ok"}; !slices.Equal(got[len(got)-4:], want) {
			t.Errorf("history %q, want %q", got, want)
		}
	})
}

func TestCauses(t *testing.T) {
	early := func(n int) engine.Wake {
		w := line(n)
		w.Delivery = protocol.DeliverEarliest
		return w
	}
	t.Run("runtime/T24 causes of a turn form one block at the end of its prompt and appear once in history afterwards", func(t *testing.T) {
		g := newGate("work")
		script := &scripted.Script{Otherwise: &scripted.Turn{Replies: []scripted.Reply{calls("work"), {Text: "done"}}}}
		model := &remembering{Provider: scripted.New(script)}
		d := start(t, setup{model: model, tools: []tool.Provider{g}})
		id := d.session(t)
		turn := d.wake(t, id, line(1)).TurnID
		<-g.called
		d.wake(t, id, early(2))
		same := early(2)
		same.Source = "told again"
		d.wake(t, id, same)
		close(g.open)
		d.wait(t, turn)
		d.turn(t, id, "and?")
		first, second, next := prompt(t, model.asked[0]), prompt(t, model.asked[1]), prompt(t, model.asked[2])
		block := []string{`event: [monitor/line mon_1] line 1`}
		if !slices.Equal(first, block) {
			t.Errorf("first prompt %q, want %q", first, block)
		}
		if last := second[len(second)-1]; last != "event: [monitor/line mon_1] line 1 | [monitor/line mon_1] line 2" || strings.Count(strings.Join(second, " "), "line 1") != 1 {
			t.Errorf("second prompt %q", second)
		}
		for _, l := range []string{"line 1", "line 2"} {
			if n := strings.Count(strings.Join(next, " "), l); n != 1 {
				t.Errorf("%s stands %d times in the next turn's prompt %q", l, n, next)
			}
		}
	})
	t.Run("runtime/T24 the prompt of a turn begins with the previous prompt up to its causes", func(t *testing.T) {
		model := &remembering{Provider: replies(scripted.Reply{Text: "hello"})}
		d := start(t, setup{model: model, tools: []tool.Provider{says("work", "worked")}})
		id := d.session(t)
		d.turn(t, id, "hi")
		for n := range 3 {
			d.wait(t, d.wake(t, id, line(n)).TurnID)
		}
		d.turn(t, id, "and?")
		for n, req := range model.asked[1:] {
			before, now := model.asked[n].Messages, req.Messages
			if len(before) >= len(now) || !slices.Equal(prompt(t, model.asked[n]), prompt(t, req)[:len(before)]) {
				t.Errorf("prompt %d is %q, the one before %q", n+1, prompt(t, req), prompt(t, model.asked[n]))
			}
		}
	})
	t.Run("runtime/T24 clients see a cause as a notice that names its origin", func(t *testing.T) {
		d := start(t, setup{model: replies(scripted.Reply{Text: "noted"})})
		id := d.session(t)
		in := d.wake(t, id, line(1))
		d.wait(t, in.TurnID)
		item := must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id})).Data[0]
		want := `{"kind":"process","turnId":"` + string(in.TurnID) + `","inputId":"` + string(in.ID) + `","cause":{"id":"task:mon_1:event:1","type":"monitor/line","origin":"mon_1"}}`
		if got := string(encoded(t, item.Origin)); item.Kind != protocol.ItemNotice || got != want {
			t.Errorf("item %s of %s, want %s", item.Kind, got, want)
		}
	})
}

// prompt returns a model's request with one line for each message.
func prompt(t *testing.T, req *provider.Request) (lines []string) {
	t.Helper()
	for _, m := range req.Messages {
		var parts []string
		for _, p := range m.Parts {
			if p.Text == "" {
				p.Text = string(encoded(t, p))
			}
			parts = append(parts, p.Text)
		}
		lines = append(lines, string(m.Role)+": "+strings.Join(parts, " | "))
	}
	return lines
}

func TestHold(t *testing.T) {
	t.Run("runtime/P08 the queue reports why no turn starts", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			held := newPause()
			g := newGate("work")
			d := start(t, setup{model: replies(calls("work"), scripted.Reply{Text: "done"}), tools: []tool.Provider{g}, plugins: plugins(hooked{"a", func(r *plugin.Registrar) {
				r.Operations().Command(protocol.OperationInfo{Name: "hold"}, func(context.Context, *plugin.OperationCall) (*plugin.OperationResult, error) {
					close(held.reached)
					<-held.goOn
					return &plugin.OperationResult{}, nil
				})
			}}), config: func(c *engine.Config) { c.Defaults.Approval.Mode = protocol.ApproveAsk }})
			id := d.session(t)
			is := func(want protocol.QueueHold) {
				t.Helper()
				if got := d.queue(t, id, false).Hold; got != want {
					t.Errorf("hold is %q, want %s", got, want)
				}
			}
			is(protocol.HoldEmpty)
			o := d.observe(t, id)
			turn := d.begin(t, id, "go").TurnID
			is(protocol.HoldEmpty)
			opened := o.typed(protocol.EventDecisionOpened)
			queued := d.wake(t, id, line(1)).TurnID
			is(protocol.HoldDecision)
			must[*protocol.DecisionRespondResult](t)(d.Decisions.Respond(t.Context(), "cli_a", &protocol.DecisionRespondParams{DecisionID: opened.Decision.ID, Choice: protocol.ChooseAllowOnce, ArgsHash: opened.Decision.ArgsHash}))
			<-g.called
			is(protocol.HoldTurn)
			done := make(chan error, 1)
			go func() {
				_, err := d.Operations.Command(t.Context(), &protocol.OperationParams{SessionID: id, Name: "hold"})
				done <- err
			}()
			synctest.Wait()
			close(g.open)
			<-held.reached
			is(protocol.HoldCommand)
			close(held.goOn)
			if err := <-done; err != nil {
				t.Error(err)
			}
			d.wait(t, turn)
			d.wait(t, queued)
			is(protocol.HoldEmpty)
		})
	})
}
