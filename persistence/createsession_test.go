package persistence

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"lashd/rpc/protocol"
)

func fork(id, from protocol.SessionID, node protocol.NodeID) *Commit {
	return &Commit{Session: id, Create: &NewSession{Source: &protocol.ForkSource{SessionID: from, Node: node}}}
}

func TestDelete(t *testing.T) {
	t.Run("runtime/P12 ids are used once", func(t *testing.T) {
		s := open(t, t.TempDir())
		refuse(t, s, &Commit{Session: "ses_a", Delete: true}, ErrNotFound) // leaves no tombstone
		commit(t, s, rootCommit("ses_a"))
		refuse(t, s, rootCommit("ses_a"), ErrExists)
		key := session(t, s, "ses_a").Key
		commit(t, s, &Commit{Session: "ses_a", Delete: true})
		refuse(t, s, rootCommit("ses_a"), ErrDeleted)
		refuse(t, s, &Commit{Session: "ses_a", Events: []Event{event(1)}}, ErrDeleted)
		refuse(t, s, fork("ses_f", "ses_a", "nod_1"), ErrDeleted)
		if _, err := s.Session(t.Context(), "ses_a"); !errors.Is(err, ErrDeleted) {
			t.Errorf("session: %v", err)
		}
		commit(t, s, rootCommit("ses_b"))
		if got := session(t, s, "ses_b").Key; got <= key {
			t.Errorf("the key %d of a deleted session was given to another: %d", key, got)
		}
	})
	t.Run("runtime/P13 deleting a session deletes everything it owns", func(t *testing.T) {
		s := open(t, t.TempDir())
		commit(t, s, rootCommit("ses_a"))
		large, err := s.PrepareBlob(bytes.Repeat([]byte("x"), inlineBlob+1))
		if err != nil {
			t.Fatal(err)
		}
		commit(t, s, &Commit{
			Session: "ses_a", Nodes: []protocol.Node{message("nod_1")}, Events: []Event{event(1)},
			Turns:     []Turn{{ID: "trn_1", State: protocol.TurnQueued}},
			Inputs:    []protocol.QueuedInput{{ID: "inp_1", State: protocol.InputQueued}},
			Effects:   []Effect{{Turn: "trn_1", ID: 1}, {Turn: "outside of a turn", ID: 1}},
			Usage:     []Usage{{Operation: "o"}},
			Receipt:   &Receipt{Key: "k"},
			Component: []Component{{Name: "c", Body: make([]byte, 2000)}},
			Decisions: []protocol.Decision{{ID: "dec_1"}},
			Pins:      []Pin{{Node: "nod_1"}},
			Blobs:     []Blob{large},
		})
		commit(t, s, &Commit{Session: "ses_a", Delete: true})
		for _, table := range []string{"sessions", "branches", "nodes", "events", "turns", "inputs", "effects", "usage",
			"components", "decisions", "pins", "blobs", "blob_refs"} {
			if n := count(t, s, "SELECT count(*) FROM "+table); n != 0 {
				t.Errorf("%d rows left in %s", n, table)
			}
		}
		if n := count(t, s, "SELECT count(*) FROM receipts WHERE session IS NOT NULL OR result IS NOT NULL"); n != 0 {
			t.Errorf("%d receipts still refer to the session", n)
		}
		if _, err := os.Stat(s.writer.blobs.path(large.Digest)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("file of the blob: %v", err)
		}
	})
	t.Run("runtime/P13 shared history stays for forks", func(t *testing.T) {
		s := open(t, t.TempDir())
		commit(t, s, rootCommit("ses_a"))
		commit(t, s, &Commit{Session: "ses_a", Nodes: []protocol.Node{message("nod_1"), message("nod_2"), message("nod_3")}})
		commit(t, s, fork("ses_f", "ses_a", "nod_2"))
		commit(t, s, fork("ses_g", "ses_f", "nod_1"))
		commit(t, s, &Commit{Session: "ses_a", Delete: true})
		if got := path(t, s, "ses_f", 2); len(got) != 3 || got[2] != "nod_2" {
			t.Errorf("path of the fork: %v", got)
		}
		commit(t, s, &Commit{Session: "ses_f", Delete: true})
		if got := path(t, s, "ses_g", 10); len(got) != 2 || got[1] != "nod_1" {
			t.Errorf("path of the fork's fork: %v", got)
		}
		if n := count(t, s, "SELECT count(*) FROM nodes"); n != 2 {
			t.Errorf("%d nodes are kept, want 2", n)
		}
		verified(t, s)
	})
}

func TestComponents(t *testing.T) {
	t.Run("runtime/P06 inline threshold, removal and replacement", func(t *testing.T) {
		s := open(t, t.TempDir())
		commit(t, s, rootCommit("ses_a"))
		small, large := make([]byte, inlineComponent), make([]byte, inlineComponent+1)
		commit(t, s, &Commit{Session: "ses_a", Component: []Component{{"small", small}, {"large", large}, {"empty", []byte{}}}})
		if n := count(t, s, "SELECT count(*) FROM blobs"); n != 1 {
			t.Errorf("%d blobs, want only that of the large one", n)
		}
		got, err := s.Components(t.Context(), session(t, s, "ses_a").Key, "")
		if err != nil || len(got["small"]) != len(small) || len(got["large"]) != len(large) || got["empty"] == nil {
			t.Errorf("components %v, %v", len(got), err)
		}
		commit(t, s, fork("ses_f", "ses_a", session(t, s, "ses_a").Head.Leaf))
		commit(t, s, &Commit{Session: "ses_a", Component: []Component{{"large", bytes.Repeat([]byte("n"), 1000)}, {"small", nil}}})
		if n := count(t, s, "SELECT count(*) FROM blobs"); n != 2 {
			t.Errorf("%d blobs, want the new one and the fork's old one", n)
		}
		commit(t, s, &Commit{Session: "ses_f", Component: []Component{{"large", []byte("now small")}}})
		if n := count(t, s, "SELECT count(*) FROM blobs"); n != 1 {
			t.Errorf("%d blobs, want the old one gone with its last user", n)
		}
		verified(t, s)
	})
	t.Run("runtime/P06 unchanged components are not written", func(t *testing.T) {
		s := open(t, t.TempDir())
		commit(t, s, rootCommit("ses_a"))
		big := &Commit{Session: "ses_a", Component: []Component{{"big", make([]byte, 512<<10)}, {"other", make([]byte, 300)}}}
		commit(t, s, big)
		s.fold(t.Context(), "TRUNCATE")
		var sizes []int64
		for range 100 {
			_, before := s.Sizes()
			commit(t, s, big)
			_, after := s.Sizes()
			sizes = append(sizes, after-before)
		}
		if most := slices.Max(sizes); most > 16<<10 {
			t.Errorf("a commit of unchanged components wrote %d bytes", most)
		}
	})
	t.Run("runtime/P06 writes do not grow with the session", func(t *testing.T) {
		s := open(t, t.TempDir())
		commit(t, s, rootCommit("ses_a"))
		var sizes []int64
		for i := range 100 {
			_, before := s.Sizes()
			commit(t, s, &Commit{Session: "ses_a", Nodes: []protocol.Node{message(fmt.Sprint("nod_", i))}, Events: []Event{event(i)},
				Component: []Component{{"turn", fmt.Appendf(nil, "%0600d", i)}}})
			_, after := s.Sizes()
			sizes = append(sizes, after-before)
		}
		early, late := slices.Max(sizes[10:40]), slices.Max(sizes[70:])
		if late > early+16<<10 {
			t.Errorf("late commits write %d bytes, early ones %d", late, early)
		}
	})
}

func TestBlobs(t *testing.T) {
	s := open(t, t.TempDir())
	commit(t, s, rootCommit("ses_a"))
	for _, size := range []int{0, 1, inlineBlob, inlineBlob + 1} {
		data := bytes.Repeat([]byte{'b'}, size)
		b := must(s.PrepareBlob(data))
		commit(t, s, &Commit{Session: "ses_a", Blobs: []Blob{b}})
		if got, err := s.Blob(t.Context(), b.Digest); err != nil || !bytes.Equal(got, data) {
			t.Errorf("blob of %d bytes: %d, %v", size, len(got), err)
		}
	}
	file := must(s.PrepareBlob(bytes.Repeat([]byte{'c'}, inlineBlob+1)))
	if err := os.Remove(s.writer.blobs.path(file.Digest)); err != nil {
		t.Fatal(err)
	}
	refuse(t, s, &Commit{Session: "ses_a", Blobs: []Blob{file}}, ErrNotFound)
	if _, err := s.PrepareBlob(make([]byte, MaxBlob+1)); !errors.Is(err, ErrBudget) {
		t.Errorf("too large: %v", err)
	}

	t.Run("a deletion keeps the file of a commit in progress", func(t *testing.T) {
		data := bytes.Repeat([]byte{'d'}, inlineBlob+1)
		b := must(s.PrepareBlob(data))
		commit(t, s, rootCommit("ses_b"))
		commit(t, s, &Commit{Session: "ses_b", Blobs: []Blob{b}})
		again := must(s.PrepareBlob(data))
		commit(t, s, &Commit{Session: "ses_b", Delete: true})
		commit(t, s, &Commit{Session: "ses_a", Blobs: []Blob{again}})
		if _, err := s.Blob(t.Context(), b.Digest); err != nil {
			t.Error(err)
		}
	})
	t.Run("runtime/P15 unused files are removed after an hour", func(t *testing.T) {
		kept := must(s.PrepareBlob(bytes.Repeat([]byte{'e'}, inlineBlob+1)))
		commit(t, s, &Commit{Session: "ses_a", Blobs: []Blob{kept}})
		garbage, young := protocol.DigestOf([]byte("garbage")), protocol.DigestOf([]byte("young"))
		old := time.Now().Add(-2 * blobWait)
		for _, d := range []protocol.Digest{garbage, young} {
			if err := s.writer.blobs.write(d, []byte("left by a crash")); err != nil {
				t.Fatal(err)
			}
		}
		for _, d := range []protocol.Digest{garbage, kept.Digest} {
			if err := os.Chtimes(s.writer.blobs.path(d), old, old); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.writer.blobs.sweep(func(d protocol.Digest) (bool, error) { return s.hasBlob(t.Context(), d) }); err != nil {
			t.Fatal(err)
		}
		for d, want := range map[protocol.Digest]bool{garbage: false, young: true, kept.Digest: true} {
			if _, err := os.Stat(s.writer.blobs.path(d)); (err == nil) != want {
				t.Errorf("file %s exists: %v, want %v", d, err == nil, want)
			}
		}
	})
	t.Run("runtime/P15 a file is kept if the rows cannot be read that may name it", func(t *testing.T) {
		unsure := protocol.DigestOf([]byte("unsure"))
		old, unreadable := time.Now().Add(-2*blobWait), errors.New("the rows cannot be read")
		if err := errors.Join(s.writer.blobs.write(unsure, []byte("x")), os.Chtimes(s.writer.blobs.path(unsure), old, old)); err != nil {
			t.Fatal(err)
		}
		if err := s.writer.blobs.sweep(func(protocol.Digest) (bool, error) { return false, unreadable }); !errors.Is(err, unreadable) {
			t.Errorf("the sweep reports %v, want %v", err, unreadable)
		}
		if _, err := os.Stat(s.writer.blobs.path(unsure)); err != nil {
			t.Error(err)
		}
	})
}
