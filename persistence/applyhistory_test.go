package persistence

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"lashd/rpc/protocol"
)

func TestHistory(t *testing.T) {
	t.Run("runtime/S01 node ids are derived from their turn, and pages together return the whole path", func(t *testing.T) {
		s := open(t, t.TempDir())
		commit(t, s, rootCommit("ses_a"))
		want := []protocol.NodeID{protocol.DeriveNodeID("ses_a", "open", 0)}
		for i := range 23 {
			id := protocol.DeriveNodeID("ses_a", "trn_1", i)
			if id != protocol.DeriveNodeID("ses_a", "trn_1", i) || slices.Contains(want, id) {
				t.Fatalf("node id %s", id)
			}
			want = append(want, id)
			res := commit(t, s, &Commit{Session: "ses_a", Nodes: []protocol.Node{message(string(id))}})
			if n := res.Nodes[0]; n.Generation != int64(i+1) || n.Parent != want[i] || n.Frame != protocol.FrameID(want[0]) {
				t.Errorf("node placed as %+v", n)
			}
			if i%7 == 6 { // the path goes over several branches
				commit(t, s, &Commit{Session: "ses_a", Rewind: want[len(want)-3], Pins: []Pin{{Node: want[len(want)-1]}}})
				want = want[:len(want)-2]
				want = append(want, protocol.DeriveNodeID("ses_a", "again", i), protocol.DeriveNodeID("ses_a", "more", i))
				commit(t, s, &Commit{Session: "ses_a", Nodes: []protocol.Node{message(string(want[len(want)-2])), message(string(want[len(want)-1]))}})
			}
		}
		for page := 1; page <= len(want)+1; page++ {
			if got := path(t, s, "ses_a", page); !slices.Equal(got, want) {
				t.Fatalf("in pages of %d the path is %v, want %v", page, got, want)
			}
		}
		row := session(t, s, "ses_a")
		for i, id := range want {
			at, err := s.Locate(t.Context(), Cursor{Branch: row.Branch, Generation: row.Head.Generation}, id)
			if err != nil || at.Generation != int64(i) {
				t.Errorf("node %d is located at %+v, %v", i, at, err)
			}
		}
		verified(t, s)
	})
	t.Run("issue/2 a page of large nodes has fewer nodes", func(t *testing.T) {
		s := open(t, t.TempDir())
		commit(t, s, rootCommit("ses_a"))
		want := path(t, s, "ses_a", 1)
		for i := range 9 {
			n := message(fmt.Sprint("nod_", i))
			n.Message.Parts = []protocol.Part{{Kind: protocol.PartText, Text: strings.Repeat("x", 1<<20)}}
			commit(t, s, &Commit{Session: "ses_a", Nodes: []protocol.Node{n}})
			if want = append(want, n.ID); i == 5 { // the path goes over two branches
				commit(t, s, &Commit{Session: "ses_a", Rewind: want[4]})
				want = want[:5]
			}
		}
		if got := path(t, s, "ses_a", 100); !slices.Equal(got, want) {
			t.Errorf("the path is %v, want %v", got, want)
		}
		row := session(t, s, "ses_a")
		page, next, err := s.Path(t.Context(), Cursor{Branch: row.Branch, Generation: row.Head.Generation}, 100)
		if err != nil || len(page) != 4 || next.Done || page[2].Parent != page[3].ID {
			t.Errorf("a page of %d nodes, %+v, %v", len(page), next, err)
		}
	})
	t.Run("runtime/S02 append after a required ancestor", func(t *testing.T) {
		s := open(t, t.TempDir())
		commit(t, s, rootCommit("ses_a"))
		commit(t, s, &Commit{Session: "ses_a", Nodes: []protocol.Node{message("nod_1"), message("nod_2")}})
		commit(t, s, &Commit{Session: "ses_a", Requires: "nod_1", Nodes: []protocol.Node{message("nod_3")}})
		commit(t, s, &Commit{Session: "ses_a", Rewind: "nod_1"})
		_, err := s.Commit(t.Context(), &Commit{Session: "ses_a", Requires: "nod_2", Nodes: []protocol.Node{message("nod_4")}})
		if stale, ok := errors.AsType[*StaleBranchError](err); !ok || stale.Leaf != "nod_1" {
			t.Errorf("append to an abandoned branch: %v", err)
		}
		commit(t, s, &Commit{Session: "ses_a", Requires: "nod_1", Nodes: []protocol.Node{message("nod_4")}})
		if got := path(t, s, "ses_a", 10); !slices.Equal(got[1:], []protocol.NodeID{"nod_1", "nod_4"}) {
			t.Errorf("path %v", got)
		}
	})
	t.Run("runtime/S03 forks and pins keep shared nodes reachable", func(t *testing.T) {
		s := open(t, t.TempDir())
		commit(t, s, rootCommit("ses_a"))
		commit(t, s, &Commit{Session: "ses_a", Nodes: []protocol.Node{message("nod_1"), message("nod_2")}})
		commit(t, s, &Commit{Session: "ses_a", Rewind: "nod_1"})
		refuse(t, s, fork("ses_f", "ses_a", "nod_2"), ErrNotRetained)
		commit(t, s, &Commit{Session: "ses_a", Pins: []Pin{{Node: "nod_2", Reason: "keep"}}})
		commit(t, s, fork("ses_f", "ses_a", "nod_2"))
		if got := path(t, s, "ses_f", 10); len(got) != 3 || got[2] != "nod_2" {
			t.Errorf("path %v", got)
		}
		pins, err := s.Pins(t.Context(), session(t, s, "ses_a").Key)
		if err != nil || len(pins) != 1 || pins[0].Reason != "keep" {
			t.Errorf("pins %v, %v", pins, err)
		}
		commit(t, s, &Commit{Session: "ses_a", Unpin: []protocol.NodeID{"nod_2"}})
		refuse(t, s, fork("ses_g", "ses_a", "nod_2"), ErrNotRetained)
		// Another session's node is not this one's to keep; one of shared history is, although its own leaf left it.
		commit(t, s, rootCommit("ses_b"))
		refuse(t, s, &Commit{Session: "ses_b", Pins: []Pin{{Node: "nod_1"}}}, ErrNotRetained)
		commit(t, s, &Commit{Session: "ses_f", Rewind: "nod_1", Pins: []Pin{{Node: "nod_2"}}})
	})
	t.Run("runtime/S17 pages return every session once", func(t *testing.T) {
		s := open(t, t.TempDir())
		for i := range 25 {
			c := rootCommit(protocol.SessionID(fmt.Sprintf("ses_%02d", i)))
			c.AtMs = int64(1000 + i/5) // five at a time have the same time
			c.Create.Cwd = fmt.Sprint("/w", i%2)
			c.Create.Title = fmt.Sprint("title ", i)
			commit(t, s, c)
		}
		yes := true
		commit(t, s, &Commit{Session: "ses_03", Meta: &Meta{Archived: &yes}})
		list := func(q SessionQuery) (ids []protocol.SessionID) {
			for {
				page, err := s.Sessions(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				for _, one := range page {
					ids = append(ids, one.ID)
				}
				if len(page) < q.Limit {
					return ids
				}
				last := page[len(page)-1]
				q.BeforeMs, q.BeforeKey = last.UpdatedAtMs, last.Key
			}
		}
		var want []protocol.SessionID
		for i := 24; i >= 0; i-- {
			if i != 3 {
				want = append(want, protocol.SessionID(fmt.Sprintf("ses_%02d", i)))
			}
		}
		for _, limit := range []int{1, 4, 7, 100} {
			if got := list(SessionQuery{Limit: limit}); !slices.Equal(got, want) {
				t.Errorf("in pages of %d: %v", limit, got)
			}
		}
		if got := list(SessionQuery{Limit: 5, Cwd: "/w1"}); len(got) != 11 {
			t.Errorf("%d sessions of a workspace, want 11", len(got))
		}
		if got := list(SessionQuery{Limit: 5, Archived: true}); len(got) != 1 {
			t.Errorf("archived: %v", got)
		}
		commit(t, s, &Commit{Session: "ses_00", AtMs: 5000, Events: []Event{event(1)}})
		if got := list(SessionQuery{Limit: 3}); got[0] != "ses_00" {
			t.Errorf("the newest is %s", got[0])
		}
		if n, err := s.CountSessions(t.Context()); n != 25 || err != nil {
			t.Errorf("%d sessions, %v", n, err)
		}
	})
}
