package engine_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"lashd/engine"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

func TestSteer(t *testing.T) {
	steer := func(t *testing.T, d *daemon, id protocol.TurnID, input string, at protocol.Boundary) *protocol.TurnSteerResult {
		t.Helper()
		return must[*protocol.TurnSteerResult](t)(d.Turns.Steer(t.Context(), &protocol.TurnSteerParams{TurnID: id, Input: text(input), Boundary: at}))
	}
	t.Run("runtime/T06 a steered input enters at the first checkpoint of its boundary, and the log records that", func(t *testing.T) {
		g := newGate("work")
		script := &scripted.Script{
			Turns: []scripted.Turn{
				{Match: &scripted.Match{LastUserContains: "go"}, Replies: []scripted.Reply{calls("work")}},
				{Match: &scripted.Match{LastUserContains: "soon"}, Replies: []scripted.Reply{{Text: "answer to soon"}}},
				{Match: &scripted.Match{LastUserContains: "last"}, Replies: []scripted.Reply{{Text: "answer to last"}}},
			},
		}
		d := start(t, setup{model: scripted.New(script), tools: []tool.Provider{g}})
		id := d.session(t)
		o := d.observe(t, id)
		turn := d.begin(t, id, "go").TurnID
		<-g.called
		last := steer(t, d, turn, "last", protocol.BoundaryBeforeCompletion)
		soon := steer(t, d, turn, "soon", "")
		close(g.open)
		report := d.wait(t, turn)
		o.over(turn)
		want := []string{"userMessage: go", "toolCall work: success", "userMessage: soon", "agentMessage: answer to soon", "userMessage: last", "agentMessage: answer to last"}
		if got := d.history(t, id); !slices.Equal(got, want) {
			t.Errorf("history\n%q, want\n%q", got, want)
		}
		accepted := o.of(protocol.EventInputAccepted)
		if len(accepted) != 2 || accepted[0].InputIDs[0] != soon.InputID || accepted[0].Boundary != protocol.BoundaryAfterWork ||
			accepted[1].InputIDs[0] != last.InputID || accepted[1].Boundary != protocol.BoundaryBeforeCompletion {
			t.Errorf("accepted %+v", accepted)
		}
		if report.State != protocol.TurnCompleted {
			t.Errorf("state %s", report.State)
		}
		inputs := must[*protocol.QueueListResult](t)(d.Queue.List(t.Context(), &protocol.QueueListParams{SessionID: id, All: true})).Data
		for _, in := range inputs {
			if in.State != protocol.InputCompleted || in.TurnID != turn {
				t.Errorf("input %s is %s in turn %s", in.ID, in.State, in.TurnID)
			}
		}
	})
	t.Run("runtime/P07 an input that is steered too late gets the next turn", func(t *testing.T) {
		p := newPause()
		d := start(t, setup{model: replies(scripted.Reply{Text: "first"}), driver: &pausingDriver{reply: p}})
		id := d.session(t)
		o := d.observe(t, id)
		turn := d.begin(t, id, "go").TurnID
		<-p.reached
		must[*protocol.TurnInterruptResult](t)(d.Turns.Interrupt(t.Context(), "cli_a", &protocol.TurnInterruptParams{TurnID: turn}))
		late := steer(t, d, turn, "late", "") // the turn will not pass a checkpoint any more
		close(p.goOn)
		d.wait(t, turn)
		accepted := o.until(func(e protocol.Event) bool { return e.Type == protocol.EventTurnAccepted && e.TurnID != turn })
		if !slices.Equal(accepted.InputIDs, []protocol.InputID{late.InputID}) {
			t.Errorf("the next turn was accepted with %v, want the input that came late", accepted.InputIDs)
		}
		if report := d.wait(t, accepted.TurnID); report.State != protocol.TurnCompleted {
			t.Errorf("it ended as %s %+v", report.State, report.Issues)
		}
		if got := d.history(t, id); !slices.Equal(got[len(got)-2:], []string{"userMessage: late", "agentMessage: ok"}) {
			t.Errorf("history %q", got)
		}
		if _, err := d.Turns.Steer(t.Context(), &protocol.TurnSteerParams{TurnID: turn, Input: text("x")}); !errors.Is(err, engine.ErrTurnNotActive) {
			t.Errorf("steering a turn that has ended: %v", err)
		}
	})
}

func TestWhenBusy(t *testing.T) {
	g := newGate("work")
	d := start(t, setup{model: replies(calls("work"), scripted.Reply{Text: "done"}), tools: []tool.Provider{g}})
	id := d.session(t)
	first := d.begin(t, id, "go")
	<-g.called
	also := func(how protocol.WhenBusy) (*protocol.TurnStartResult, error) {
		return d.Turns.Start(t.Context(), &protocol.TurnStartParams{SessionID: id, Input: text(string(how)), WhenBusy: how})
	}
	t.Run("runtime/P08 refuse names the running turn", func(t *testing.T) {
		_, err := also(protocol.BusyRefuse)
		if active, ok := errors.AsType[*engine.TurnActiveError](err); !ok || active.TurnID != first.TurnID {
			t.Errorf("error %v", err)
		}
	})
	t.Run("runtime/P08 a steered input enters the turn, and a queued one gets its own turn", func(t *testing.T) {
		steered := must[*protocol.TurnStartResult](t)(also(protocol.BusySteer))
		queued := must[*protocol.TurnStartResult](t)(also(protocol.BusyQueue))
		if steered.TurnID != first.TurnID || queued.TurnID == first.TurnID || queued.State != protocol.TurnQueued {
			t.Errorf("steered into %s, queued as %+v, running is %s", steered.TurnID, queued, first.TurnID)
		}
		close(g.open)
		d.wait(t, first.TurnID)
		d.wait(t, queued.TurnID)
		want := []string{"userMessage: go", "toolCall work: success", "userMessage: steer", "agentMessage: ok", "userMessage: queue", "agentMessage: ok"}
		if got := d.history(t, id); !slices.Equal(got, want) {
			t.Errorf("history %q, want %q", got, want)
		}
	})
	if _, err := also("never"); err == nil {
		t.Error("an unknown whenBusy was taken")
	}
}

func TestQueue(t *testing.T) {
	g := newGate("work")
	d := start(t, setup{model: replies(calls("work"), scripted.Reply{Text: "done"}), tools: []tool.Provider{g}})
	id := d.session(t)
	o := d.observe(t, id)
	running := d.begin(t, id, "go")
	<-g.called
	var queued []*protocol.TurnStartResult
	for _, s := range []string{"one", "two", "three", "four"} {
		queued = append(queued, d.begin(t, id, s))
	}
	cancel := func(t *testing.T, in protocol.InputID, suffix bool) []protocol.CancelStatus {
		t.Helper()
		var got []protocol.CancelStatus
		for _, c := range must[*protocol.QueueCancelResult](t)(d.Queue.Cancel(t.Context(), &protocol.QueueCancelParams{SessionID: id, InputID: in, Suffix: suffix})).Data {
			got = append(got, c.Status)
		}
		return got
	}
	for _, c := range []struct {
		name   string
		input  protocol.InputID
		suffix bool
		want   []protocol.CancelStatus
	}{
		{"an input whose turn runs is claimed", running.InputID, false, []protocol.CancelStatus{protocol.CancelAlreadyClaimed}},
		{"one that waits is cancelled", queued[1].InputID, false, []protocol.CancelStatus{protocol.CancelDone}},
		{"and again", queued[1].InputID, false, []protocol.CancelStatus{protocol.CancelAlreadyCancelled}},
		{"with all that came after it", queued[2].InputID, true, []protocol.CancelStatus{protocol.CancelDone, protocol.CancelDone}},
		{"one that never was", "inp_none", false, []protocol.CancelStatus{protocol.CancelNotFound}},
	} {
		t.Run("runtime/P07 "+c.name, func(t *testing.T) {
			if got := cancel(t, c.input, c.suffix); !slices.Equal(got, c.want) {
				t.Errorf("status %v, want %v", got, c.want)
			}
		})
	}
	close(g.open)
	d.wait(t, queued[0].TurnID)
	t.Run("runtime/P07 a queued turn without inputs is cancelled, and a finished one stays completed", func(t *testing.T) {
		for i, want := range []protocol.TurnState{protocol.TurnCompleted, protocol.TurnCancelled, protocol.TurnCancelled, protocol.TurnCancelled} {
			if got := d.wait(t, queued[i].TurnID).State; got != want {
				t.Errorf("turn %d ended as %s, want %s", i, got, want)
			}
		}
		if got := cancel(t, running.InputID, false); !slices.Equal(got, []protocol.CancelStatus{protocol.CancelAlreadyCompleted}) {
			t.Errorf("status %v", got)
		}
	})
	t.Run("runtime/P07 queue/changed lists the queued inputs down to the last", func(t *testing.T) {
		o.over(queued[0].TurnID)
		var sizes []int
		for _, e := range o.of(protocol.EventQueueChanged) {
			sizes = append(sizes, len(e.Queue))
		}
		if want := []int{1, 2, 3, 4, 3, 1, 0}; !slices.Equal(sizes, want) {
			t.Errorf("queue sizes %v, want %v", sizes, want)
		}
	})
}

func TestIdempotency(t *testing.T) {
	top := t // what a subtest starts must outlive it
	d := start(t, setup{model: replies(scripted.Reply{Text: "done"})})
	id := d.session(t)
	p := func(input string) *protocol.TurnStartParams {
		return &protocol.TurnStartParams{SessionID: id, Input: text(input), Mutation: protocol.Mutation{IdempotencyKey: "k1"}}
	}
	first := must[*protocol.TurnStartResult](t)(d.Turns.Start(t.Context(), p("go")))
	t.Run("runtime/P03 reliability/P2 a repeated key with the same params gets the first answer, also after a restart", func(t *testing.T) {
		d.wait(t, first.TurnID)
		for range 2 {
			again := must[*protocol.TurnStartResult](t)(d.Turns.Start(t.Context(), p("go")))
			if !again.Duplicate || again.TurnID != first.TurnID || again.Seq != first.Seq || first.Duplicate {
				t.Errorf("again %+v, first %+v", again, first)
			}
			d = d.restart(top, nil)
		}
		if turns := must[*protocol.TurnListResult](t)(d.Turns.List(t.Context(), &protocol.TurnListParams{SessionID: id})).Data; len(turns) != 1 {
			t.Errorf("%d turns, want 1", len(turns))
		}
	})
	t.Run("runtime/P03 a repeated key with other params or another method is a conflict", func(t *testing.T) {
		if _, err := d.Turns.Start(t.Context(), p("other")); !errors.Is(err, persistence.ErrReceiptConflict) {
			t.Errorf("other input: %v", err)
		}
		title := &protocol.SessionSetTitleParams{SessionID: id, Title: "x", Mutation: protocol.Mutation{IdempotencyKey: "k1"}}
		if _, err := d.Sessions.SetTitle(t.Context(), title); !errors.Is(err, persistence.ErrReceiptConflict) {
			t.Errorf("other method: %v", err)
		}
		other := p("go")
		other.SessionID = d.session(t)
		if _, err := d.Turns.Start(t.Context(), other); !errors.Is(err, persistence.ErrReceiptConflict) {
			t.Errorf("other session: %v", err)
		}
	})
	t.Run("runtime/P03 a tool call whose key is in use for another call is rejected before it runs", func(t *testing.T) {
		g := newGate("work")
		d := start(t, setup{model: replies(), tools: []tool.Provider{g}})
		call := func(args string) (*protocol.ToolCallResult, error) {
			return d.Tools.Call(t.Context(), &protocol.ToolCallParams{
				SessionID: "ses_x", Name: "work", Args: json.RawMessage(args), Mutation: protocol.Mutation{IdempotencyKey: "k3"},
			})
		}
		must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{SessionID: "ses_x", Cwd: t.TempDir()}))
		results := make(chan *protocol.ToolCallResult, 2)
		for range cap(results) {
			go func() {
				res, err := call(`{"n": 1}`)
				if err != nil {
					t.Error(err)
					res = &protocol.ToolCallResult{}
				}
				results <- res
			}()
		}
		<-g.called
		if _, err := call(`{"n": 2}`); !errors.Is(err, persistence.ErrReceiptConflict) {
			t.Errorf("another call with the key of one that runs: %v", err)
		}
		close(g.open)
		a, b := <-results, <-results
		if a.CallID != b.CallID || a.Duplicate == b.Duplicate || len(g.called) != 0 {
			t.Errorf("results %+v and %+v, and %d more calls", a, b, len(g.called))
		}
	})
	t.Run("runtime/P03 of many concurrent requests with one key, one takes effect", func(t *testing.T) {
		cwd := t.TempDir()
		ids := make(chan protocol.SessionID, 8)
		for range cap(ids) {
			go func() {
				res, err := d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: cwd, Mutation: protocol.Mutation{IdempotencyKey: "k2"}})
				if err != nil {
					t.Error(err)
					ids <- ""
					return
				}
				ids <- res.SessionID
			}()
		}
		want := <-ids
		for range cap(ids) - 1 {
			if got := <-ids; got != want {
				t.Errorf("sessions %s and %s", got, want)
			}
		}
	})
}

func TestWithdraw(t *testing.T) {
	t.Run("runtime/P07 an input that waits for a checkpoint can be cancelled, alone or with later ones, and stays in the list", func(t *testing.T) {
		g := newGate("work")
		d := start(t, setup{model: replies(calls("work"), scripted.Reply{Text: "done"}), tools: []tool.Provider{g}})
		id := d.session(t)
		turn := d.begin(t, id, "go")
		<-g.called
		var steered []protocol.InputID
		for _, s := range []string{"one", "two"} {
			r := must[*protocol.TurnSteerResult](t)(d.Turns.Steer(t.Context(), &protocol.TurnSteerParams{TurnID: turn.TurnID, Input: text(s)}))
			steered = append(steered, r.InputID)
		}
		woken := d.wake(t, id, over("tsk_1"))
		must[*protocol.QueueCancelResult](t)(d.Queue.Cancel(t.Context(), &protocol.QueueCancelParams{SessionID: id, InputID: steered[0]}))
		rest := must[*protocol.QueueCancelResult](t)(d.Queue.Cancel(t.Context(), &protocol.QueueCancelParams{SessionID: id, InputID: steered[1], Suffix: true})).Data
		if len(rest) != 2 || rest[0].Status != protocol.CancelDone || rest[1] != (protocol.CancelledInput{InputID: woken.ID, Status: protocol.CancelDone}) {
			t.Errorf("withdrawn %+v", rest)
		}
		if report := d.wait(t, woken.TurnID); report.State != protocol.TurnCancelled {
			t.Errorf("the turn of the wake is %s", report.State)
		}
		close(g.open)
		d.wait(t, turn.TurnID)
		if got, want := d.history(t, id), []string{"userMessage: go", "toolCall work: success", "agentMessage: done"}; !slices.Equal(got, want) {
			t.Errorf("history %q, want %q", got, want)
		}
		if _, refused := d.refusal(t, id, over("tsk_1")); refused != protocol.WakeDuplicate {
			t.Errorf("the wake that was withdrawn comes again: %q", refused)
		}
		d = d.restart(t, nil)
		var kept []string
		for _, in := range d.queue(t, id, true).Data {
			kept = append(kept, string(in.State)+" "+in.Input[0].Text)
			if in.TurnID == "" {
				t.Errorf("%s tells no turn", in.ID)
			}
		}
		if want := []string{"completed go", "cancelled one", "cancelled two", "cancelled [task/completed tsk_1] tsk_1 is over"}; !slices.Equal(kept, want) {
			t.Errorf("kept %q, want %q", kept, want)
		}
	})
}
