package engine_test

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine/filepoint"
	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/persistence"
	"lashd/rpc/protocol"
	"lashd/test/tree"
)

// rewindJournal is what a rewind that was cut off leaves in the store.
type rewindJournal struct {
	Steps  []filepoint.Step      `json:"steps"`
	Files  []protocol.FileRewind `json:"files"`
	Leaf   protocol.NodeID       `json:"leaf"`
	ToNode protocol.NodeID       `json:"toNode,omitempty"`
}

// cutOff is a directory in which a turn has changed a.txt, and a rewind of that turn with history was cut off before it began.
type cutOff struct {
	*daemon
	dir     string
	id      protocol.SessionID // of that turn
	other   protocol.SessionID // in the same directory
	turn    protocol.TurnID
	leaf    protocol.NodeID // after it
	root    protocol.NodeID // before it
	at, on  chan struct{}   // of the tool that writes a.txt
	found   string          // by that, the last time
	rewind  persistence.StoredPoint
	journal rewindJournal
}

func newCutOff(t *testing.T) *cutOff {
	c := &cutOff{dir: t.TempDir()}
	write(t, c.dir, "a.txt", "old\n")
	work, at, on := gated("work", func() {
		c.found = c.file(t)
		write(t, c.dir, "a.txt", "new\n")
	})
	c.at, c.on = at, on
	c.daemon = start(t, setup{model: callsWork(), tools: []tool.Provider{work}})
	c.id, c.other = c.beside(t, c.dir), c.beside(t, c.dir)
	c.root = c.row(t).Head.Leaf
	c.turn = c.work(t, c.id)
	c.leaf = c.row(t).Head.Leaf
	key := c.row(t).Key
	p := must[[]persistence.StoredPoint](t)(c.store.Files.Points(t.Context(), key))[0]
	change := must[[]persistence.FileChange](t)(c.store.Files.Changes(t.Context(), p.Workspace, p.Row))[0]
	c.journal = rewindJournal{
		Steps: []filepoint.Step{{Path: "a.txt", Now: change.After, Want: change.Before}},
		Files: []protocol.FileRewind{{Path: "a.txt"}}, Leaf: c.leaf, ToNode: c.root,
	}
	c.rewind = persistence.StoredPoint{Root: p.Root, FilePoint: protocol.FilePoint{
		ID: protocol.NewPointID(), SessionID: c.id, Kind: protocol.PointRewind, State: protocol.PointOpen, To: p.ID, AtMs: 1, Files: 1,
	}}
	return c
}

func (c *cutOff) row(t *testing.T) persistence.Session {
	t.Helper()
	return must[persistence.Session](t)(c.store.Session(t.Context(), c.id))
}

// work runs a turn whose tool writes a.txt.
func (c *cutOff) work(t *testing.T, id protocol.SessionID) protocol.TurnID {
	t.Helper()
	turn := c.begin(t, id, "go").TurnID
	<-c.at
	c.on <- struct{}{}
	c.wait(t, turn)
	return turn
}

// crash leaves the rewind as one that was cut off, and starts the daemon again: not yet the session.
func (c *cutOff) crash(t *testing.T) {
	t.Helper()
	c.daemon = c.restart(t, nil)
	synctest.Wait() // else it finds the rewind, and loads the session
	c.rewind.Journal = must[[]byte](t)(json.Marshal(c.journal))
	f := persistence.FileCommit{Workspace: c.rewind.Root, Points: []persistence.StoredPoint{c.rewind}}
	must[persistence.Result](t)(c.store.Commit(t.Context(), &persistence.Commit{Session: c.id, Files: f}))
}

func (c *cutOff) load(t *testing.T, id protocol.SessionID) {
	t.Helper()
	must[*protocol.QueueListResult](t)(c.Queue.List(t.Context(), &protocol.QueueListParams{SessionID: id}))
}

// open are the rewinds of a session that are not over.
func (c *cutOff) open(t *testing.T, id protocol.SessionID) []persistence.StoredPoint {
	t.Helper()
	row := must[persistence.Session](t)(c.store.Session(t.Context(), id))
	return must[[]persistence.StoredPoint](t)(c.store.Files.OpenRewinds(t.Context(), row.Key))
}

func (c *cutOff) file(t *testing.T) string {
	t.Helper()
	_, text, _ := strings.Cut(tree.Read(t, c.dir)["a.txt"], " ")
	return text
}

// givenUp checks that clients learn that the rewind was given up, and that its changes can still be undone.
func (c *cutOff) givenUp(t *testing.T, why string) {
	t.Helper()
	points := c.points(t, c.id)
	p := points[slices.IndexFunc(points, func(o protocol.FilePoint) bool { return o.ID == c.rewind.ID })]
	if p.State != protocol.PointClosed || !strings.Contains(p.Unrestorable, why) || points[0].Undone {
		t.Errorf("points %+v, want the rewind given up because %q", points, why)
	}
	if open := c.open(t, c.id); len(open) > 0 {
		t.Errorf("open rewinds %+v", open)
	}
}

func TestInterruptedRewinds(t *testing.T) {
	after := func(name string, check func(*testing.T, *cutOff)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { check(t, newCutOff(t)) })
		})
	}
	after("issue/6-2 a rewind that was cut off waits for tools of others, and its session's turns for it", func(t *testing.T, c *cutOff) {
		c.crash(t)
		busy := c.begin(t, c.other, "go").TurnID
		<-c.at
		c.load(t, c.id)
		next := c.begin(t, c.id, "go on").TurnID
		time.Sleep(time.Minute)
		synctest.Wait()
		o := c.observe(t, c.id)
		if n := len(c.open(t, c.id)); n != 1 || c.file(t) != "new\n" {
			t.Errorf("while tools run %d rewinds are open, a.txt is %q", n, c.file(t))
		}
		c.on <- struct{}{}
		c.wait(t, busy)
		o.typed(protocol.EventSessionRewound)
		<-c.at
		if c.found != "old\n" {
			t.Errorf("the turn after it has found %q", c.found)
		}
		c.on <- struct{}{}
		if r := c.wait(t, next); r.State != protocol.TurnCompleted || c.file(t) != "new\n" {
			t.Errorf("the turn after it is %s, a.txt %q", r.State, c.file(t))
		}
		after := c.row(t).Head
		c.daemon = c.restart(t, nil)
		c.load(t, c.id)
		time.Sleep(time.Minute)
		if now := c.row(t).Head; now != after || c.file(t) != "new\n" {
			t.Errorf("at the next start the head is %+v, was %+v; a.txt %q", now, after, c.file(t))
		}
	})
	after("issue/6-2 while a rewind that was cut off waits, a turn can be cancelled, and the session deleted", func(t *testing.T, c *cutOff) {
		c.crash(t)
		c.begin(t, c.other, "go")
		<-c.at
		c.load(t, c.id)
		next := c.begin(t, c.id, "go on").TurnID
		began := time.Now()
		if got := c.interrupt(t, next); got == "" {
			t.Error("the turn is not cancelled")
		}
		must[*protocol.SessionReadResult](t)(c.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: c.id}))
		must[*protocol.SeqResult](t)(c.Sessions.Delete(t.Context(), &protocol.SessionMutationParams{SessionID: c.id}))
		if took := time.Since(began); took > 0 {
			t.Errorf("that took %v", took)
		}
		c.on <- struct{}{}
	})
	after("issue/6-2 a rewind that was cut off does not wait for ever: tools may wait for its session", func(t *testing.T, c *cutOff) {
		c.crash(t)
		c.begin(t, c.other, "go")
		<-c.at
		c.load(t, c.id)
		next := c.begin(t, c.id, "go on").TurnID
		<-c.at // of this one
		c.givenUp(t, "a session is running tools")
		c.on <- struct{}{}
		c.on <- struct{}{}
		c.wait(t, next)
	})
	after("issue/6-2 two sessions in a directory, both with a rewind that was cut off, do not wait for each other", func(t *testing.T, c *cutOff) {
		c.crash(t)
		p := c.rewind
		other := must[persistence.Session](t)(c.store.Session(t.Context(), c.other))
		p.ID, p.SessionID = protocol.NewPointID(), c.other
		p.Journal = must[[]byte](t)(json.Marshal(rewindJournal{Leaf: other.Head.Leaf, Files: c.journal.Files, Steps: c.journal.Steps}))
		f := persistence.FileCommit{Workspace: p.Root, Points: []persistence.StoredPoint{p}}
		must[persistence.Result](t)(c.store.Commit(t.Context(), &persistence.Commit{Session: c.other, Files: f}))
		third := c.begin(t, c.beside(t, c.dir), "go").TurnID
		<-c.at
		c.load(t, c.id)
		c.load(t, c.other)
		time.Sleep(3 * time.Second)
		c.on <- struct{}{}
		c.wait(t, third)
		time.Sleep(3 * time.Second)
		for _, id := range []protocol.SessionID{c.id, c.other} {
			if open := c.open(t, id); len(open) > 0 {
				t.Errorf("open rewinds %+v", open)
			}
		}
		if c.file(t) != "old\n" {
			t.Errorf("a.txt is %q", c.file(t))
		}
	})
	after("issue/6-2 a rewind that was cut off is given up where history has gone on since", func(t *testing.T, c *cutOff) {
		c.work(t, c.id)
		c.crash(t)
		before := c.row(t).Head
		c.load(t, c.id)
		c.work(t, c.other) // nothing is held
		must[*protocol.SessionWaitResult](t)(c.Sessions.Wait(t.Context(), &protocol.SessionWaitParams{SessionID: c.id}))
		c.givenUp(t, "newer turns have run since")
		if now := c.row(t).Head; now != before || c.file(t) != "new\n" {
			t.Errorf("the head is %+v, was %+v; a.txt %q", now, before, c.file(t))
		}
	})
	after("issue/6-2 an interrupted rewind is given up if its workspace is gone, and can be requested again", func(t *testing.T, c *cutOff) {
		c.crash(t)
		ok(t, os.Rename(c.dir, c.dir+"-away"))
		c.load(t, c.id)
		must[*protocol.SessionWaitResult](t)(c.Sessions.Wait(t.Context(), &protocol.SessionWaitParams{SessionID: c.id}))
		c.givenUp(t, "names a session whose workspace cannot be opened")
		ok(t, os.Rename(c.dir+"-away", c.dir))
		c.undo(t, onlyFiles(c.id, c.turn))
		if c.file(t) != "old\n" {
			t.Errorf("undone again, a.txt is %q", c.file(t))
		}
	})
	after("issue/6-2 a rewind that was cut off is brought to its end although the session's plugins cannot be opened", func(t *testing.T, c *cutOff) {
		c.setup.plugins = []plugin.Factory{broken{}}
		c.crash(t)
		c.load(t, c.id)
		must[*protocol.SessionWaitResult](t)(c.Sessions.Wait(t.Context(), &protocol.SessionWaitParams{SessionID: c.id}))
		if c.file(t) != "old\n" {
			t.Errorf("a.txt is %q", c.file(t))
		}
	})
}

// broken is a plugin that cannot be opened.
type broken struct{}

func (broken) ID() string                                       { return "broken" }
func (broken) Build(plugin.BuildContext) (plugin.Plugin, error) { return nil, errors.New("broken") }
