package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lashd/rpc/protocol"
)

// many is the number of files that an undo restores while it is killed.
const many = 1500

// holding counts the files of the workspace that contain a text.
func (h *home) holding(text string) (n int) {
	h.t.Helper()
	for i := range many {
		data, err := os.ReadFile(filepath.Join(h.work, fmt.Sprintf("f%04d", i)))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			h.t.Fatal(err)
		}
		if string(data) == text {
			n++
		}
	}
	return n
}

func TestRewindKilled(t *testing.T) {
	t.Run("issue/6-2 a rewind interrupted by SIGKILL is finished by the next daemon and can be undone", func(t *testing.T) {
		w := newWorld(t, "allow", step(shell(`for f in f*; do echo changed >$f; done; echo new >g`)), step(says("done")))
		for i := range many {
			w.write(filepath.Join(w.work, fmt.Sprintf("f%04d", i)), "old\n")
		}
		d := w.serve()
		p := w.dial("")
		id := p.session(w.home)
		turn := p.turn(id, "go")
		if n := w.holding("changed\n"); n != many {
			t.Fatalf("the turn changed %d files: %+v", n, turn)
		}
		params := protocol.SessionRewindParams{SessionID: id, ToTurn: turn.TurnID, Files: protocol.RewindAlso}
		params.IdempotencyKey = "undo"
		go try[protocol.SessionRewindResult](p, "session/rewind", params)
		eventually(t, "some files are restored", func() error {
			if data, err := os.ReadFile(filepath.Join(w.work, "f0009")); err != nil || string(data) != "old\n" {
				return errors.New("not yet")
			}
			return nil
		})
		d.kill()
		if n := w.holding("old\n"); n == 0 || n == many {
			t.Fatalf("%d files were restored when the daemon died", n)
		}
		w.serve()
		p = w.dial("")
		// The client repeats the request whose answer was lost, and gets its result.
		res := ask[protocol.SessionRewindResult](p, "session/rewind", params)
		if !res.Duplicate || res.Point == "" || res.Nodes == 0 || len(res.Files) != many+1 {
			t.Errorf("answer %+v with %d files", res.Point, len(res.Files))
		}
		if n := w.holding("old\n"); n != many {
			t.Errorf("%d of %d files were restored", n, many)
		}
		entries, err := os.ReadDir(w.work)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), ".lashd") || e.Name() == "g" {
				t.Errorf("%s was left behind", e.Name())
			}
		}
		points := ask[protocol.SessionPointsResult](p, "session/points", protocol.SessionParams{SessionID: id}).Data
		if len(points) != 2 || points[1].State != protocol.PointClosed || points[1].Unrestorable != "" {
			t.Errorf("points %+v", points)
		}
		ask[protocol.SessionRewindResult](p, "session/rewind", protocol.SessionRewindParams{SessionID: id, ToPoint: res.Point, Files: protocol.RewindOnly})
		if n := w.holding("changed\n"); n != many {
			t.Errorf("after the second undo, %d of %d files have their contents", n, many)
		}
	})
	t.Run("issue/6-2 changes of a turn interrupted by SIGKILL are undone only with force, as a person may have made them", func(t *testing.T) {
		w := newWorld(t, "allow", step(shell(`echo changed >f; sleep 600`)), step(says("done")))
		w.write(filepath.Join(w.work, "f"), "old\n")
		d := w.serve()
		p := w.dial("")
		id := p.session(w.home)
		p.attach(id, 0)
		turn := p.start(id, "go")
		eventually(t, "the command is running", func() error {
			if data, err := os.ReadFile(filepath.Join(w.work, "f")); err != nil || string(data) != "changed\n" {
				return errors.New("not yet")
			}
			return nil
		})
		d.kill()
		w.serve()
		p = w.dial("")
		eventually(t, "the question about the command is open", func() error { return unknowns(p, id) })
		p.wait(turn.TurnID)
		undo := protocol.SessionRewindParams{SessionID: id, ToTurn: turn.TurnID, Files: protocol.RewindOnly}
		_, err := try[protocol.SessionRewindResult](p, "session/rewind", undo)
		if code, kind := refusal(err); code != -32011 || kind != protocol.KindFileConflict {
			t.Errorf("rewind: %v", err)
		}
		undo.Force = true
		res := ask[protocol.SessionRewindResult](p, "session/rewind", undo)
		if len(res.Files) != 1 || res.Files[0].Conflict != protocol.ConflictUnsure {
			t.Errorf("files %+v", res.Files)
		}
		if data, err := os.ReadFile(filepath.Join(w.work, "f")); err != nil || string(data) != "old\n" {
			t.Errorf("f is %q, %v", data, err)
		}
	})
}

// unknowns answers the question about the outcome of an interrupted call, once it is open.
func unknowns(p *peer, id protocol.SessionID) error {
	open := ask[protocol.DecisionListResult](p, "decision/list", protocol.DecisionListParams{SessionID: id}).Data
	if len(open) == 0 {
		return errors.New("nothing is open")
	}
	params := protocol.DecisionRespondParams{DecisionID: open[0].ID, Choice: protocol.ChooseTellModel}
	_, err := try[protocol.DecisionRespondResult](p, "decision/respond", params)
	return err
}
