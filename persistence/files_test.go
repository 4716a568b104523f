package persistence

import (
	"errors"
	"os"
	"testing"

	"lashd/rpc/protocol"
)

// digestOf is the digest of a content that has a copy in a pack.
func digestOf(s string) protocol.Digest { return protocol.DigestOf([]byte(s)) }

func regular(text string) protocol.FileState {
	return protocol.FileState{Kind: protocol.FileRegular, Mode: 0o644, Size: int64(len(text)), Digest: digestOf(text)}
}

// looked is the result of a scan: one file, with a copy.
func looked(text string) *Commit {
	return &Commit{Files: FileCommit{
		Workspace: "/w", Copies: []FileCopy{{Digest: digestOf(text), Pack: "p", Length: 7}},
		Index: []WorkspaceFile{{Path: "f", FileState: regular(text), ModifiedNs: 5, Inode: 1<<64 - 1}},
	}}
}

// pointed is a point of a session, whose turn made one text of another.
func pointed(id protocol.PointID, step int64, before, after string) *Commit {
	was, is := regular(before), regular(after)
	c := looked(after)
	c.Session = "ses_a"
	c.Files.Points = []StoredPoint{{FilePoint: protocol.FilePoint{ID: id, SessionID: "ses_a", Kind: protocol.PointTurn, State: protocol.PointClosed, TurnID: protocol.TurnID("trn_" + id)}}}
	c.Files.Changes = []FileChange{{Point: id, Step: step, Path: "f", FileChangeBody: FileChangeBody{Before: &was, After: &is}}}
	return c
}

func (s *Store) copies(t *testing.T) int {
	t.Helper()
	return len(must(s.Files.CopiesIn(t.Context(), "p")))
}

func TestFiles(t *testing.T) {
	sweep := &Commit{Tidy: FileTidy{Sweep: true}}
	t.Run("issue/6-2 the index of a workspace is read back as stored", func(t *testing.T) {
		s := open(t, t.TempDir())
		if w := must(s.Files.Workspace(t.Context(), "/w")); w.Known || len(w.Files) != 0 {
			t.Errorf("before it is looked at: %+v", w)
		}
		commit(t, s, looked("one"))
		commit(t, s, looked("two"))
		w := must(s.Files.Workspace(t.Context(), "/w"))
		if want := looked("two").Files.Index[0]; !w.Known || len(w.Files) != 1 || w.Files[0] != want {
			t.Errorf("got %+v, want %+v", w, want)
		}
		commit(t, s, &Commit{Files: FileCommit{Workspace: "/w", Gone: []string{"f"}}})
		if w := must(s.Files.Workspace(t.Context(), "/w")); !w.Known || len(w.Files) != 0 {
			t.Errorf("once it is gone: %+v", w)
		}
	})
	t.Run("issue/6-2 copies stay until neither the workspace nor a point needs them", func(t *testing.T) {
		s := open(t, t.TempDir())
		commit(t, s, rootCommit("ses_a"))
		commit(t, s, looked("one"))
		commit(t, s, pointed("fpt_1", 1, "one", "two"))
		commit(t, s, pointed("fpt_2", 2, "two", "three"))
		commit(t, s, sweep)
		if n := s.copies(t); n != 3 {
			t.Errorf("%d copies, want 3", n)
		}
		old := must(s.Files.OldestPoints(t.Context(), 1))
		old[0].Unrestorable = "too old"
		commit(t, s, &Commit{Files: FileCommit{Pruned: old}, Tidy: FileTidy{Sweep: true}})
		points := must(s.Files.Points(t.Context(), must(s.Session(t.Context(), "ses_a")).Key))
		if n := s.copies(t); n != 2 || len(points) != 2 || points[0].Unrestorable != "too old" || points[1].Unrestorable != "" {
			t.Errorf("%d copies, want 2; points %+v", n, points)
		}
		commit(t, s, &Commit{Session: "ses_a", Delete: true})
		commit(t, s, &Commit{Tidy: FileTidy{Sweep: true, InUse: []string{"/w"}}})
		if n := s.copies(t); n != 1 {
			t.Errorf("%d copies while the workspace is in use, want 1", n)
		}
		commit(t, s, sweep)
		if n := s.copies(t); n != 0 {
			t.Errorf("%d copies are left", n)
		}
	})
	t.Run("issue/6-2 a row cannot refer to a missing copy", func(t *testing.T) {
		s := open(t, t.TempDir())
		c := looked("one")
		c.Files.Copies = nil
		if _, err := s.Commit(t.Context(), c); err == nil {
			t.Error("it is stored")
		}
		if w := must(s.Files.Workspace(t.Context(), "/w")); w.Known {
			t.Errorf("there is %+v", w)
		}
	})
	t.Run("issue/6-2 a commit with copies is rejected on a full disk", func(t *testing.T) {
		s := open(t, t.TempDir())
		commit(t, s, rootCommit("ses_a"))                                                               // by then the space was reserved
		if err := errors.Join(os.Remove(s.ballast.path), os.Mkdir(s.ballast.path, 0o700)); err != nil { // so upkeep cannot reserve it again
			t.Fatal(err)
		}
		s.ballast.released.Store(true)
		s.writer.restoreBallast()
		refuse(t, s, looked("one"), ErrFull)
	})
	t.Run("issue/6-2 unfinished undos are listed until their journal is removed", func(t *testing.T) {
		s := open(t, t.TempDir())
		commit(t, s, rootCommit("ses_a"))
		c := pointed("fpt_1", 1, "one", "one")
		c.Files.Points[0].Journal = []byte(`{}`)
		commit(t, s, c)
		if ids := must(s.Files.RewindingSessions(t.Context())); len(ids) != 1 || ids[0] != "ses_a" {
			t.Errorf("rewinding %v", ids)
		}
		commit(t, s, &Commit{Session: "ses_a", Files: FileCommit{Workspace: "/w", Points: []StoredPoint{{FilePoint: c.Files.Points[0].FilePoint}}}})
		if ids := must(s.Files.RewindingSessions(t.Context())); len(ids) != 0 {
			t.Errorf("rewinding %v", ids)
		}
	})
	t.Run("issue/6-2 a point without a session is rejected", func(t *testing.T) {
		s := open(t, t.TempDir())
		c := pointed("fpt_1", 1, "one", "one")
		c.Session = ""
		if _, err := s.Commit(t.Context(), c); !errors.Is(err, ErrInvalid) {
			t.Errorf("error %v", err)
		}
	})
}
