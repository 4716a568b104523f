package e2e

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"lashd/rpc/protocol"
)

// soaking is the length of a soak and its load.
type soaking struct {
	sessions, clients, lives int
	life                     time.Duration // of each daemon; all but the last are killed
	pause                    time.Duration // of a client between two actions
}

// TestSoak has clients of many sessions run turns, tasks of all recovery contracts, monitors and
// triggers while a plugin is edited and daemons are killed. At the end only stored data may be left.
// It takes a minute, or ten with LASHD_LONG=1.
func TestSoak(t *testing.T) {
	how := soaking{sessions: 30, clients: 6, lives: 3, life: 6 * time.Second, pause: 250 * time.Millisecond}
	if os.Getenv("LASHD_LONG") != "" {
		how = soaking{sessions: 200, clients: 20, lives: 10, life: time.Minute, pause: 500 * time.Millisecond}
	}
	s := newSoak(t, how)
	s.begin()
	for i := range how.lives {
		s.live(i == how.lives-1)
		if t.Failed() {
			t.Fatalf("in life %d", i)
		}
	}
	s.finish()
}

// soak is a data directory whose sessions clients use for a long time.
type soak struct {
	*world
	soaking
	db     *sql.DB
	daemon *daemon
	users  []*user
	dead   map[string]bool // incarnations of killed daemons
	edits  int
	base   protocol.DiagnosticsResult // diagnostics before any work

	slowest, settled, rested time.Duration // start of a daemon until it has abandoned all lost tasks; end of all work; rest after that
}

func newSoak(t *testing.T, how soaking) *soak {
	w := newWorld(t, "allow")
	config, err := os.ReadFile(filepath.Join(w.dir, "config.toml"))
	if err != nil {
		t.Fatal(err)
	}
	w.write(filepath.Join(w.dir, "config.toml"), "park_after = \"2s\"\n"+string(config))
	return &soak{world: w, soaking: how, dead: map[string]bool{}}
}

// begin starts the first daemon, creates the sessions, and records the daemon's resources once no
// session is in memory.
func (s *soak) begin() {
	s.edit()
	s.daemon = s.serve()
	p := s.dial("")
	for i := range s.clients {
		s.users = append(s.users, newUser(s, i))
	}
	for i := range s.sessions {
		s.users[i%s.clients].has(p, newHeld(s, i))
	}
	s.base = s.atRest(p, nil)
	p.conn.Close()
	s.db = s.database("ro")
}

// live has the clients work until the daemon is killed or, for the last one, until the time is over.
// Then it starts the next daemon.
func (s *soak) live(last bool) {
	ctx, stop := context.WithCancel(s.t.Context())
	defer stop()
	calm, cancel := context.WithTimeout(ctx, s.life)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { s.editing(calm) })
	for _, u := range s.users {
		wg.Go(func() { u.work(ctx, calm) })
	}
	<-calm.Done()
	if last {
		stop()
		wg.Wait()
		return
	}
	time.Sleep(200 * time.Millisecond) // requests that are lost in the kill are part of the test
	s.daemon.kill()
	wg.Wait()
	s.remember()
	began := time.Now()
	s.daemon = s.serve()
	s.dial("").conn.Close()
	eventually(s.t, "no task of a killed daemon is running", func() error { return ownerless(s.db, s.dead) })
	s.slowest = max(s.slowest, time.Since(began))
	s.model.Reset()
}

// remember records the incarnations so far. No daemon may run.
func (s *soak) remember() {
	all, err := column[string](s.db, "SELECT DISTINCT json_extract(CAST(body AS TEXT), '$.incarnation') FROM task_events WHERE json_extract(CAST(body AS TEXT), '$.kind') = 'started'")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, id := range all {
		s.dead[id] = true
	}
}

// finish ends all work and checks what is left.
func (s *soak) finish() {
	began := time.Now()
	var wg sync.WaitGroup
	for _, u := range s.users {
		wg.Go(u.finish)
	}
	wg.Wait()
	s.settled = time.Since(began)
	p := s.dial("")
	for _, u := range s.users {
		for _, h := range u.held {
			h.check(s.replay(h.id))
		}
	}
	began = time.Now()
	end := s.atRest(p, &s.base)
	s.rested = time.Since(began)
	s.daemon.stop()
	eventually(s.t, "no process is left", func() error {
		if left := marked(s.mark()); len(left) > 0 {
			return fmt.Errorf("%q", left)
		}
		return nil
	})
	err := errors.Join((&inspection{db: s.db, dir: s.dir}).all(), over(s.db), s.completed(), s.contracts())
	if err != nil {
		s.t.Error("issue/5 after a soak:", err)
	}
	s.report(end)
}

// atRest waits until no session is in memory and the daemon uses no more than before. Without before,
// it waits until its use does not change any more.
func (s *soak) atRest(p *peer, before *protocol.DiagnosticsResult) (now protocol.DiagnosticsResult) {
	s.t.Helper()
	var newest protocol.DiagnosticsResult
	same := 0
	for deadline := time.Now().Add(2 * patience); ; time.Sleep(200 * time.Millisecond) {
		loaded := ask[protocol.StatusResult](p, "server/status", protocol.Empty{}).Loaded
		now = ask[protocol.DiagnosticsResult](p, "server/diagnostics", protocol.Empty{})
		if same++; figures(now) != figures(newest) {
			same = 0
		}
		newest = now
		if loaded == 0 && (before == nil && same >= 5 || before != nil && noMore(now, *before)) {
			return now
		}
		if time.Now().After(deadline) {
			s.t.Errorf("issue/5 at rest %d sessions are in memory; the daemon uses %v, before %v", loaded, figures(now), figures(*cmp.Or(before, &now)))
			return now
		}
	}
}

// figures summarizes the resources of a daemon.
func figures(d protocol.DiagnosticsResult) [3]int {
	return [3]int{d.Goroutines, d.OpenFiles, d.Children}
}

// noMore allows for connections to the database and to the model, which are opened on demand and stay
// open.
func noMore(now, before protocol.DiagnosticsResult) bool {
	return now.Goroutines <= before.Goroutines+4 && now.OpenFiles <= before.OpenFiles+4 && now.Children <= before.Children
}

func (s *soak) mark() string { return "LASHD_E2E_SOAK=" + s.dir }
