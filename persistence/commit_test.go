package persistence

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"lashd/rpc/protocol"
)

func TestCommit(t *testing.T) {
	t.Run("runtime/P01 a commit stores all of its parts", func(t *testing.T) {
		s := open(t, t.TempDir())
		commit(t, s, rootCommit("ses_a"))
		res := commit(t, s, &Commit{
			Session: "ses_a", AtMs: 2, Turned: true,
			Nodes:     []protocol.Node{message("nod_1")},
			Events:    []Event{event(1), event(2)},
			Turns:     []Turn{{ID: "trn_1", State: protocol.TurnQueued, Incarnation: "i1"}},
			Inputs:    []protocol.QueuedInput{{ID: "inp_1", TurnID: "trn_1", State: protocol.InputQueued}},
			Effects:   []Effect{{Turn: "trn_1", ID: 1, Kind: "model"}},
			Usage:     []Usage{{Operation: "trn_1", Row: protocol.UsageRow{Source: "turn", Model: "m", Calls: 1}}},
			Total:     &protocol.Usage{Input: 7},
			Component: []Component{{Name: "c", Body: []byte("v")}},
			Decisions: []protocol.Decision{{ID: "dec_1", TurnID: "trn_1"}},
			Pins:      []Pin{{Node: "nod_1", Reason: "r"}},
		})
		if res.Head.Leaf != "nod_1" || res.Head.Revision != 2 || res.Seq != 2 || len(res.Nodes) != 1 {
			t.Errorf("result %+v", res)
		}
		row := session(t, s, "ses_a")
		if row.TurnIndex != 1 || row.Usage.Input != 7 || row.Head != res.Head || row.Seq != 2 {
			t.Errorf("session %+v", row)
		}
		for table, want := range map[string]int{
			"nodes": 2, "events": 2, "turns": 1, "inputs": 1, "effects": 1, "usage": 1, "components": 1, "decisions": 1, "pins": 1,
		} {
			if n := count(t, s, "SELECT count(*) FROM "+table); n != want {
				t.Errorf("%d rows in %s, want %d", n, table, want)
			}
		}
		verified(t, s)
	})
	t.Run("runtime/P01 a rejected commit stores nothing", func(t *testing.T) {
		s := open(t, t.TempDir())
		commit(t, s, rootCommit("ses_a"))
		refuse(t, s, &Commit{
			Session: "ses_a", Nodes: []protocol.Node{message("nod_1")}, Events: []Event{event(1)},
			Component: []Component{{Name: "c", Body: []byte("v")}},
			Pins:      []Pin{{Node: "nod_of_nobody"}}, // the last thing that is applied
		}, ErrNotRetained)
		if row := session(t, s, "ses_a"); row.Seq != 0 || row.Head.Revision != 1 {
			t.Errorf("session %+v", row)
		}
		if n := count(t, s, "SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM components) + (SELECT count(*) FROM nodes)"); n != 1 {
			t.Errorf("%d rows, want the root node only", n)
		}
	})
	t.Run("runtime/P01 checks are made in order", func(t *testing.T) {
		s := open(t, t.TempDir())
		commit(t, s, rootCommit("ses_a"))
		wrong := int64(99)
		bad := Commit{Session: "ses_a", Requires: "nod_x", Fence: Fence{Revision: &wrong, Turn: "trn_x"}, Receipt: &Receipt{Key: "k", Hash: []byte("h"), Result: []byte("ok")}}
		other := bad
		other.Session = "ses_none"
		refuse(t, s, &other, ErrNotFound)
		_, err := s.Commit(t.Context(), &bad)
		if _, ok := errors.AsType[*StaleBranchError](err); !ok {
			t.Errorf("the ancestor comes before the revision: %v", err)
		}
		bad.Requires = ""
		refuse(t, s, &bad, ErrFenced)
		commit(t, s, &Commit{Session: "ses_a", Receipt: bad.Receipt})
		if res := commit(t, s, &bad); !res.Replayed { // the receipt comes before the fences
			t.Errorf("result %+v", res)
		}
	})
	t.Run("runtime/P01 a commit that cannot be encoded fails alone", func(t *testing.T) {
		s := open(t, t.TempDir())
		commit(t, s, rootCommit("ses_a"))
		broken := protocol.Node{ID: "nod_1", Plugin: &protocol.PluginNode{Type: "t", Body: []byte("{")}}
		refuse(t, s, &Commit{Session: "ses_a", Nodes: []protocol.Node{broken}}, ErrInvalid)
		refuse(t, s, &Commit{Session: "ses_a", Events: []Event{{Body: make([]byte, MaxCommitBytes+1)}}}, ErrBudget)
		refuse(t, s, &Commit{Nodes: []protocol.Node{message("nod_1")}}, ErrInvalid)
		commit(t, s, &Commit{Session: "ses_a", Nodes: []protocol.Node{message("nod_1")}})
		refuse(t, s, &Commit{Session: "ses_a", Nodes: []protocol.Node{message("nod_1")}}, ErrExists)
	})
	t.Run("runtime/P02 of concurrent commits with the same head revision one succeeds", func(t *testing.T) {
		s := open(t, t.TempDir())
		rev := commit(t, s, rootCommit("ses_a")).Head.Revision
		var won, fenced atomic.Int32
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				_, err := s.Commit(t.Context(), &Commit{Session: "ses_a", Fence: Fence{Revision: &rev}, Nodes: []protocol.Node{message(fmt.Sprint("nod_", i))}})
				switch {
				case err == nil:
					won.Add(1)
				case errors.Is(err, ErrFenced):
					fenced.Add(1)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 || fenced.Load() != 19 {
			t.Errorf("%d commits won and %d were fenced, want 1 and 19", won.Load(), fenced.Load())
		}
		if res := commit(t, s, &Commit{Session: "ses_a", Events: []Event{event(1)}}); res.Head.Revision != rev+1 {
			t.Errorf("an event alone moved the head to revision %d", res.Head.Revision)
		}
	})
	t.Run("runtime/P01 a turn is fenced by its state and its daemon", func(t *testing.T) {
		s := open(t, t.TempDir())
		commit(t, s, rootCommit("ses_a"))
		turn := func(state protocol.TurnState, by string) []Turn {
			return []Turn{{ID: "trn_1", State: state, Incarnation: by}}
		}
		commit(t, s, &Commit{Session: "ses_a", Turns: turn(protocol.TurnQueued, "old")})
		refuse(t, s, &Commit{Session: "ses_a", Fence: Fence{Turn: "trn_1", Incarnation: "new"}}, ErrFenced)
		// Taking over: fenced with what was read, written with one's own.
		take := &Commit{Session: "ses_a", Fence: Fence{Turn: "trn_1", Incarnation: "old"}, Turns: turn(protocol.TurnRunning, "new")}
		commit(t, s, take)
		refuse(t, s, take, ErrFenced)
		commit(t, s, &Commit{Session: "ses_a", Fence: Fence{Turn: "trn_1", Incarnation: "new"}, Turns: turn(protocol.TurnCompleted, "new")})
		refuse(t, s, &Commit{Session: "ses_a", Turns: turn(protocol.TurnCancelled, "new")}, ErrFenced)
	})
	t.Run("runtime/P01 the first answer counts", func(t *testing.T) {
		s := open(t, t.TempDir())
		commit(t, s, rootCommit("ses_a"))
		commit(t, s, &Commit{Session: "ses_a", Decisions: []protocol.Decision{{ID: "dec_1"}}})
		answer := func(by string) *Commit {
			return &Commit{Session: "ses_a", Decisions: []protocol.Decision{{ID: "dec_1", Answer: &protocol.DecisionAnswer{By: by}}}}
		}
		commit(t, s, answer("first"))
		refuse(t, s, answer("second"), ErrFenced)
		if d, err := s.Decision(t.Context(), "dec_1"); err != nil || d.Answer.By != "first" {
			t.Errorf("decision %+v, %v", d, err)
		}
		commit(t, s, &Commit{Session: "ses_a", Effects: []Effect{{Turn: "t", ID: 1, Finished: true, Body: []byte("result")}}})
		refuse(t, s, &Commit{Session: "ses_a", Effects: []Effect{{Turn: "t", ID: 1}}}, ErrFenced)
	})
}

func TestFenceOfEvents(t *testing.T) {
	t.Run("issue/29 a commit is fenced by the newest event", func(t *testing.T) {
		s := open(t, t.TempDir())
		commit(t, s, rootCommit("ses_a"))
		seq := commit(t, s, &Commit{Session: "ses_a", Events: []Event{event(1)}}).Seq
		next := &Commit{Session: "ses_a", Fence: Fence{Seq: &seq}, Events: []Event{event(2)}}
		commit(t, s, next)
		refuse(t, s, next, ErrFenced)
	})
	t.Run("issue/29 the first input is taken once", func(t *testing.T) {
		s := open(t, t.TempDir())
		c := rootCommit("ses_a")
		c.Create.First = []protocol.InputPart{{Text: "first"}}
		commit(t, s, c)
		if got := commit(t, s, &Commit{Session: "ses_a", TakeFirst: true}).First; len(got) != 1 || got[0].Text != "first" {
			t.Errorf("took %+v", got)
		}
		refuse(t, s, &Commit{Session: "ses_a", TakeFirst: true}, ErrNotFound)
	})
	t.Run("issue/29 a commit is fenced by a turn that was not written last", func(t *testing.T) {
		s := open(t, t.TempDir())
		commit(t, s, rootCommit("ses_a"))
		turns := []Turn{{ID: "trn_1", State: protocol.TurnQueued, Incarnation: "i1"}, {ID: "trn_2", State: protocol.TurnQueued, Incarnation: "i2"}}
		commit(t, s, &Commit{Session: "ses_a", Turns: turns})
		commit(t, s, &Commit{Session: "ses_a", Fence: Fence{Turn: "trn_1", Incarnation: "i1"}})
		refuse(t, s, &Commit{Session: "ses_a", Fence: Fence{Turn: "trn_1", Incarnation: "i2"}}, ErrFenced)
		refuse(t, s, &Commit{Session: "ses_a", Fence: Fence{Turn: "trn_3", Incarnation: "i2"}}, ErrFenced)
	})
}

func TestReceipts(t *testing.T) {
	keyed := func(hash string) *Commit {
		return &Commit{Session: "ses_a", Events: []Event{event(1)}, Receipt: &Receipt{Key: "k", Hash: []byte(hash), Result: []byte("first " + hash)}}
	}
	t.Run("runtime/P03 replay and conflict", func(t *testing.T) {
		s := open(t, t.TempDir())
		commit(t, s, rootCommit("ses_a"))
		commit(t, s, keyed("h"))
		if res := commit(t, s, keyed("h")); !res.Replayed || string(res.Stored) != "first h" {
			t.Errorf("replay gave %+v", res)
		}
		refuse(t, s, keyed("other"), ErrReceiptConflict)
		if _, err := s.Receipt(t.Context(), "k", []byte("other")); !errors.Is(err, ErrReceiptConflict) {
			t.Errorf("receipt: %v", err)
		}
		if _, err := s.Receipt(t.Context(), "unknown", nil); !errors.Is(err, ErrNotFound) {
			t.Errorf("receipt: %v", err)
		}
		if got := session(t, s, "ses_a").Seq; got != 1 {
			t.Errorf("seq %d after one commit and its replay", got)
		}
	})
	t.Run("issue/2 a begun request is recorded until its result is stored or the record is deleted", func(t *testing.T) {
		s := open(t, t.TempDir())
		commit(t, s, rootCommit("ses_a"))
		begun := &Commit{Receipt: &Receipt{Key: "k", Hash: []byte("h")}}
		commit(t, s, begun)
		if stored, err := s.Receipt(t.Context(), "k", []byte("h")); err != nil || len(stored) != 0 {
			t.Errorf("begun: %q, %v", stored, err)
		}
		if res := commit(t, s, begun); !res.Replayed {
			t.Errorf("it began twice: %+v", res)
		}
		refuse(t, s, keyed("other"), ErrReceiptConflict)
		commit(t, s, &Commit{Forget: "k"})
		if _, err := s.Receipt(t.Context(), "k", []byte("h")); !errors.Is(err, ErrNotFound) {
			t.Errorf("forgotten: %v", err)
		}
		commit(t, s, begun)
		if res := commit(t, s, keyed("h")); res.Replayed || res.Seq != 1 {
			t.Errorf("the answer gave %+v", res)
		}
		commit(t, s, &Commit{Forget: "k"})
		if res := commit(t, s, keyed("h")); !res.Replayed || string(res.Stored) != "first h" {
			t.Errorf("replay gave %+v", res)
		}
	})
	t.Run("runtime/P03 fifty concurrent commits with one key apply once", func(t *testing.T) {
		s := open(t, t.TempDir())
		commit(t, s, rootCommit("ses_a"))
		var replayed atomic.Int32
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				res, err := s.Commit(t.Context(), keyed("h"))
				if err != nil {
					t.Error(err)
				}
				if res.Replayed {
					replayed.Add(1)
				}
			})
		}
		wg.Wait()
		if n := session(t, s, "ses_a").Seq; n != 1 || replayed.Load() != 49 {
			t.Errorf("seq %d, %d replayed", n, replayed.Load())
		}
	})
	t.Run("runtime/P03 a repeated deletion gets the stored result", func(t *testing.T) {
		s := open(t, t.TempDir())
		commit(t, s, rootCommit("ses_a"))
		del := &Commit{Session: "ses_a", Delete: true, Receipt: &Receipt{Key: "d", Hash: []byte("h"), Result: []byte("ok")}}
		commit(t, s, del)
		if res := commit(t, s, del); string(res.Stored) != "ok" {
			t.Errorf("replay gave %+v", res)
		}
	})
	t.Run("runtime/P03 a key of a deleted session stays used, without its result", func(t *testing.T) {
		s := open(t, t.TempDir())
		commit(t, s, rootCommit("ses_a"))
		commit(t, s, keyed("h"))
		commit(t, s, &Commit{Session: "ses_a", Delete: true})
		commit(t, s, rootCommit("ses_b"))
		other := keyed("h")
		other.Session = "ses_b"
		refuse(t, s, other, ErrDeleted)
		if _, err := s.Receipt(t.Context(), "k", []byte("h")); !errors.Is(err, ErrDeleted) {
			t.Errorf("receipt: %v", err)
		}
		if _, err := s.Receipt(t.Context(), "k", []byte("other")); !errors.Is(err, ErrReceiptConflict) {
			t.Errorf("receipt: %v", err)
		}
	})
}

func TestResultOfAStoredCommit(t *testing.T) {
	t.Run("issue/29 a caller that stops waiting gets the cause of its context", func(t *testing.T) {
		s := must(Open(t.Context(), quiet(t.TempDir()))) // no writer runs yet
		ctx, cancel := context.WithCancelCause(t.Context())
		given := errors.New("given up")
		go func() {
			for len(s.requests) == 0 {
				runtime.Gosched()
			}
			cancel(given)
		}()
		if _, err := s.Commit(ctx, rootCommit("ses_a")); !errors.Is(err, given) {
			t.Errorf("commit gives %v", err)
		}
		run(t, s)()
	})
	t.Run("runtime/K02 a stored commit is reported as stored even if its caller or the store ends at that moment", func(t *testing.T) {
		for i := range 200 {
			ctx, cancel := context.WithCancel(t.Context())
			s := &writer{condition: &condition{}, requests: make(chan *request), ended: make(chan struct{})}
			go func() {
				r := <-s.requests
				close(r.done)
				cancel()
				if i%2 == 0 {
					close(s.ended)
				}
			}()
			if _, err := s.Commit(ctx, &Commit{Session: "ses_a"}); err != nil {
				t.Fatalf("commit %d: %v", i, err)
			}
			cancel()
		}
	})
}
