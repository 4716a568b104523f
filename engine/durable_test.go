package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine"
	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

func TestTurnCommit(t *testing.T) {
	t.Run("runtime/P01 reliability/P3 the events of a turn's commit appear all at once", func(t *testing.T) {
		p := newPause()
		d := start(t, setup{model: replies(calls("look"), calls("look"), scripted.Reply{Text: "done", Usage: &protocol.Usage{Output: 1}}),
			tools: []tool.Provider{says("look", "fine")}, driver: &pausingDriver{visible: p}})
		id := d.session(t)
		turn := d.begin(t, id, "go").TurnID
		<-p.reached // the last commit is next
		before := must[persistence.Session](t)(d.store.Session(t.Context(), id))
		if stored := must[persistence.StoredTurn](t)(d.store.Turn(t.Context(), turn)); stored.Report != nil || stored.State != protocol.TurnRunning {
			t.Errorf("before: turn %+v", stored.Turn)
		}
		rows := must[[]persistence.Effect](t)(d.store.Effects(t.Context(), turn))
		syncs := slices.DeleteFunc(rows, func(e persistence.Effect) bool { return e.Kind != "sync" })
		if len(syncs) != 2 || len(syncs[1].Body) > 30 {
			t.Errorf("the journal has %d environments; the second, which is the same, takes %d bytes", len(syncs), len(syncs[1].Body))
		}
		close(p.goOn)
		report := d.wait(t, turn)
		after := must[persistence.Session](t)(d.store.Session(t.Context(), id))
		if before.Head.Generation != 0 || before.TurnIndex != 0 || before.Usage.Total() != 0 || len(syncs) == 0 {
			t.Errorf("before: head %+v, turn index %d, usage %+v, %d journal rows", before.Head, before.TurnIndex, before.Usage, len(syncs))
		}
		if after.Head.Generation != 6 || after.Head.Revision != before.Head.Revision+1 || after.TurnIndex != 1 || after.Usage != report.Usage {
			t.Errorf("after: head %+v, turn index %d, usage %+v", after.Head, after.TurnIndex, after.Usage)
		}
		if rows := must[[]persistence.Effect](t)(d.store.Effects(t.Context(), turn)); len(rows) != 0 {
			t.Errorf("%d journal rows are left", len(rows))
		}
	})
	t.Run("runtime/P02 each commit that moves the head adds one to its revision, even beside a turn", func(t *testing.T) {
		g := newGate("work")
		d := start(t, setup{model: replies(calls("work"), scripted.Reply{Text: "done"}), tools: []tool.Provider{g}})
		id := d.session(t)
		turn := d.begin(t, id, "go").TurnID
		<-g.called
		before := must[persistence.Session](t)(d.store.Session(t.Context(), id)).Head
		note := protocol.NodeBody{Message: &protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: "note"}}}}
		appended := must[*protocol.GraphAppendResult](t)(d.History.Append(t.Context(), &protocol.GraphAppendParams{SessionID: id, Nodes: []protocol.NodeBody{note}}))
		configured := must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Prompt: new("new")}))
		if configured.Head.Revision != before.Revision+2 || configured.Head.Leaf != appended.Leaf {
			t.Errorf("head %+v after two changes of %+v", configured.Head, before)
		}
		close(g.open)
		report := d.wait(t, turn)
		after := must[persistence.Session](t)(d.store.Session(t.Context(), id)).Head
		if after.Revision != before.Revision+3 || report.HeadRevision != after.Revision {
			t.Errorf("head %+v, report says %d", after, report.HeadRevision)
		}
		want := []string{"userMessage: note", "userMessage: go", "toolCall work: success", "agentMessage: done"}
		if got := d.history(t, id); !slices.Equal(got, want) {
			t.Errorf("history %q, want %q", got, want)
		}
		_, err := d.History.Rewind(t.Context(), &protocol.SessionRewindParams{SessionID: id, ToNode: "nod_none"})
		if !errors.Is(err, persistence.ErrNotFound) {
			t.Errorf("rewind to a node that never was: %v", err)
		}
	})
	for _, tools := range []bool{true, false} {
		t.Run(fmt.Sprintf("runtime/P05 a turn that another daemon took over is refused whatever it still wants to store, tools: %t", tools), func(t *testing.T) {
			g := newGate("work")
			model := replies(calls("work"), scripted.Reply{Text: "done"})
			if !tools {
				model = modelFunc(func(_ context.Context, _ *provider.Request, yield func(provider.Chunk, error) bool) {
					g.called <- tool.Invocation{}
					<-g.open
					yield(provider.Chunk{Text: "done", Stop: protocol.StopEnd}, nil)
				})
			}
			d := start(t, setup{model: model, tools: []tool.Provider{g}})
			id := d.session(t)
			o := d.observe(t, id)
			turn := d.begin(t, id, "go").TurnID
			<-g.called
			takeOver(t, d, turn)
			before := must[persistence.Session](t)(d.store.Session(t.Context(), id))
			close(g.open)
			waited := must[*protocol.TurnReport](t)(d.Turns.Wait(t.Context(), &protocol.TurnWaitParams{TurnID: turn, TimeoutMs: 300}))
			after := must[persistence.Session](t)(d.store.Session(t.Context(), id))
			if waited.State != protocol.TurnRunning || after.Seq != before.Seq || after.Head != before.Head {
				t.Errorf("state %s; seq %d, was %d", waited.State, after.Seq, before.Seq)
			}
			if got := must[persistence.StoredTurn](t)(d.store.Turn(t.Context(), turn)); got.Incarnation != "another" {
				t.Errorf("the turn is driven by %q again", got.Incarnation)
			}
			must[*protocol.SeqResult](t)(d.Sessions.SetTitle(t.Context(), &protocol.SessionSetTitleParams{SessionID: id, Title: "still here"}))
			o.until(func(e protocol.Event) bool { return e.Title == "still here" }) // though the session was loaded again
			o.gapless(0)
		})
	}
}

// takeOver makes a turn another daemon's.
func takeOver(t *testing.T, d *daemon, turn protocol.TurnID) {
	t.Helper()
	row := must[persistence.StoredTurn](t)(d.store.Turn(t.Context(), turn))
	c := &persistence.Commit{Session: row.Session, AtMs: 1, Fence: persistence.Fence{Turn: turn, Incarnation: row.Incarnation}}
	row.Incarnation = "another"
	c.Turns = []persistence.Turn{row.Turn}
	must[persistence.Result](t)(d.store.Commit(t.Context(), c))
}

func TestResidency(t *testing.T) {
	t.Run("runtime/S16 a session in use cannot be closed; an idle one is unloaded and loads again", func(t *testing.T) {
		g := newGate("work")
		d := start(t, setup{model: replies(calls("work"), scripted.Reply{Text: "done"}), tools: []tool.Provider{g}})
		id := d.session(t)
		turn := d.begin(t, id, "go").TurnID
		<-g.called
		shut := func() error {
			_, err := d.Sessions.Close(t.Context(), &protocol.SessionMutationParams{SessionID: id})
			return err
		}
		if err := shut(); !errors.Is(err, engine.ErrSessionInUse) {
			t.Errorf("close beside a turn: %v", err)
		}
		close(g.open)
		d.wait(t, turn)
		if err := shut(); err != nil {
			t.Errorf("close: %v", err)
		}
		if next := d.turn(t, id, "and?"); next.State != protocol.TurnCompleted {
			t.Errorf("the next turn ended as %s", next.State)
		}
	})
	t.Run("runtime/S16 an unused session is unloaded", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := start(t, setup{model: replies(scripted.Reply{Text: "a"}), config: func(c *engine.Config) { c.Idle = time.Minute }})
			id := d.session(t)
			d.turn(t, id, "go")
			_, sub, err := d.Sessions.Attach(t.Context(), &protocol.SessionAttachParams{SessionID: id})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(2*time.Minute + time.Second)
			synctest.Wait()
			if n, _ := d.Stats(); n != 1 {
				t.Errorf("%d sessions in memory while one is watched", n)
			}
			sub.Close()
			time.Sleep(time.Minute + time.Second)
			synctest.Wait()
			if n, _ := d.Stats(); n != 0 {
				t.Errorf("%d sessions in memory, want none", n)
			}
			if got := d.turn(t, id, "and?"); got.State != protocol.TurnCompleted {
				t.Errorf("the next turn ended as %s", got.State)
			}
		})
	})
}

func TestDelete(t *testing.T) {
	t.Run("runtime/P12 an id is used once, and deleting twice is no error", func(t *testing.T) {
		d := start(t, setup{model: replies()})
		make := func() error {
			_, err := d.Sessions.New(t.Context(), &protocol.SessionNewParams{SessionID: "ses_mine", Cwd: t.TempDir()})
			return err
		}
		if err := make(); err != nil {
			t.Fatal(err)
		}
		if err := make(); !errors.Is(err, persistence.ErrExists) {
			t.Errorf("a second session of the same id: %v", err)
		}
		for range 2 {
			must[*protocol.SeqResult](t)(d.Sessions.Delete(t.Context(), &protocol.SessionMutationParams{SessionID: "ses_mine"}))
		}
		if err := make(); !errors.Is(err, persistence.ErrDeleted) {
			t.Errorf("a new session with a deleted id: %v", err)
		}
	})
	t.Run("runtime/P03 a deletion is idempotent by its key, and keys of a deleted session stay used", func(t *testing.T) {
		d := start(t, setup{model: replies()})
		p := &protocol.SessionNewParams{Mutation: protocol.Mutation{IdempotencyKey: "made"}, Cwd: t.TempDir()}
		id := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), p)).SessionID
		remove := func(id protocol.SessionID, key string) (*protocol.SeqResult, error) {
			return d.Sessions.Delete(t.Context(), &protocol.SessionMutationParams{Mutation: protocol.Mutation{IdempotencyKey: key}, SessionID: id})
		}
		if _, err := remove(id, "made"); !errors.Is(err, persistence.ErrReceiptConflict) {
			t.Errorf("deleted with the key of another request: %v", err)
		}
		for _, key := range []string{"gone", "once more"} {
			for _, again := range []bool{false, true} {
				if r, err := remove(id, key); err != nil || r.Duplicate != again {
					t.Errorf("deleted with the key %s, again %v: %+v, %v", key, again, r, err)
				}
			}
		}
		if _, err := d.Sessions.New(t.Context(), p); !errors.Is(err, persistence.ErrDeleted) {
			t.Errorf("made again: %v", err)
		}
		p.Title = "another"
		if _, err := d.Sessions.New(t.Context(), p); !errors.Is(err, persistence.ErrReceiptConflict) {
			t.Errorf("another one with its key: %v", err)
		}
		for _, key := range []string{"", "none"} {
			if _, err := remove("ses_none", key); !errors.Is(err, persistence.ErrNotFound) {
				t.Errorf("what never was is deleted with the key %q: %v", key, err)
			}
		}
	})
	t.Run("runtime/P13 deleting stops the turn, ends subscriptions, and leaves forks as they are", func(t *testing.T) {
		g := newGate("work")
		script := &scripted.Script{Turns: []scripted.Turn{
			{Match: &scripted.Match{LastUserContains: "work"}, Replies: []scripted.Reply{calls("work")}},
			{Replies: []scripted.Reply{{Text: "first"}}},
		}}
		d := start(t, setup{model: scripted.New(script), tools: []tool.Provider{g}})
		id := d.session(t)
		d.turn(t, id, "go")
		fork := must[*protocol.SessionNewResult](t)(d.History.Fork(t.Context(), &protocol.SessionForkParams{SessionID: id}))
		o := d.observe(t, id)
		stalled := d.begin(t, id, "work").TurnID
		<-g.called
		must[*protocol.SeqResult](t)(d.Sessions.Delete(t.Context(), &protocol.SessionMutationParams{SessionID: id}))
		if _, err := d.Turns.Wait(t.Context(), &protocol.TurnWaitParams{TurnID: stalled}); !errors.Is(err, persistence.ErrNotFound) {
			t.Errorf("waiting for a turn of a deleted session: %v", err)
		}
		for {
			if _, err := o.sub.Next(t.Context()); err != nil {
				if !errors.Is(err, persistence.ErrDeleted) {
					t.Errorf("the subscription ended with %v", err)
				}
				break
			}
		}
		if got := d.history(t, fork.SessionID); !slices.Equal(got, []string{"userMessage: go", "agentMessage: first"}) {
			t.Errorf("history of the fork %q", got)
		}
		if got := d.turn(t, fork.SessionID, "x"); !got.State.Terminal() {
			t.Errorf("a turn of the fork ended as %s", got.State)
		}
	})
}

func TestWait(t *testing.T) {
	t.Run("runtime/T18 any client can wait for a turn repeatedly, also after a restart", func(t *testing.T) {
		g := newGate("work")
		d := start(t, setup{model: replies(calls("work"), scripted.Reply{Text: "done"}), tools: []tool.Provider{g}})
		turn := d.begin(t, d.session(t), "go").TurnID
		<-g.called
		early := make(chan *protocol.TurnReport, 3)
		for range cap(early) {
			go func() {
				report, err := d.Turns.Wait(t.Context(), &protocol.TurnWaitParams{TurnID: turn})
				if err != nil {
					t.Error(err)
				}
				early <- report
			}()
		}
		if r := must[*protocol.TurnReport](t)(d.Turns.Wait(t.Context(), &protocol.TurnWaitParams{TurnID: turn, TimeoutMs: 1})); r.State != protocol.TurnRunning {
			t.Errorf("after a timeout the turn is %s", r.State)
		}
		close(g.open)
		first, second, third := <-early, <-early, <-early
		d = d.restart(t, nil)
		for _, got := range []*protocol.TurnReport{second, third, d.wait(t, turn), d.wait(t, turn)} {
			if got.State != first.State || got.DurationMs != first.DurationMs || got.HeadRevision != first.HeadRevision {
				t.Errorf("reports %+v and %+v", got, first)
			}
		}
	})
}
