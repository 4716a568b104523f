package e2e

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lashd/rpc/protocol"
)

// TestSIGKILLUnderLoad kills daemons of one data directory while four clients use them, and checks
// what the next one recovers. LASHD_LONG=1 repeats this 500 times.
func TestSIGKILLUnderLoad(t *testing.T) {
	cycles := 6
	if os.Getenv("LASHD_LONG") != "" {
		cycles = 500
	}
	c := newCampaign(t)
	for i := range cycles {
		c.cycle(i)
		if t.Failed() {
			t.Fatalf("in cycle %d", i)
		}
	}
	last := c.serve()
	c.check()
	last.stop()
	c.inspect("the whole store", (&inspection{db: c.db, dir: c.dir}).all())
	c.inspect("the commands", twice(c.ran()))
	c.report()
}

func (c *campaign) report() {
	asked := number(c.t, c.db, "SELECT count(*) FROM decisions WHERE json_extract(CAST(body AS TEXT), '$.kind') = 'outcome'")
	c.t.Logf("acknowledged: %d sessions, %d turns, %d answers; seen: %d durable events; turns whose answer was lost: %d; "+
		"commands that ran: %d, of unknown outcome: %d; artifact files: %d; slowest restart %v",
		c.sessions, c.turns, c.answers, c.events, c.unsure, len(c.ran()), asked, len(c.known), c.slowest)
	if c.turns == 0 || c.events == 0 || len(c.ran()) == 0 {
		c.t.Error("nothing was acknowledged in any cycle")
	}
}

// ran are the lines that commands left in workspaces. Each line is the key of its turn.
func (h *home) ran() []string {
	h.t.Helper()
	names, err := filepath.Glob(filepath.Join(h.work, "*", "ran"))
	if err != nil {
		h.t.Fatal(err)
	}
	var keys []string
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			h.t.Fatal(err)
		}
		keys = append(keys, strings.Fields(string(text))...)
	}
	return keys
}

// twice reports the first key that occurs more than once.
func twice(keys []string) error {
	slices.Sort(keys)
	for i := 1; i < len(keys); i++ {
		if keys[i] == keys[i-1] {
			return fmt.Errorf("I4: the command of %s ran more than once", keys[i])
		}
	}
	return nil
}

// campaign is a data directory whose daemons are killed, and what clients received from the newest
// one.
type campaign struct {
	*world
	db        *sql.DB
	known     map[string]bool
	witnesses []*witness

	sessions, turns, answers, events, unsure int
	slowest, ready                           time.Duration
}

func newCampaign(t *testing.T) *campaign {
	w := newWorld(t, "allow")
	return &campaign{world: w, known: map[string]bool{}}
}

// cycle starts a daemon, checks its recovery, loads it and kills it.
func (c *campaign) cycle(i int) {
	began := time.Now()
	d := c.serve()
	c.dial("").conn.Close()
	took := time.Since(began)
	c.slowest = max(c.slowest, took)
	if i == 0 {
		c.ready = max(10*time.Second, 5*took) // the first start has nothing to recover; slow machines get more time
	}
	if took > c.ready {
		c.t.Errorf("reliability/I14 the daemon was ready after %v, want at most %v", took, c.ready)
	}
	if c.db == nil {
		c.db = c.database("ro")
	}
	c.check()
	c.load(i, d)
}

// load runs four clients until the daemon is killed.
func (c *campaign) load(cycle int, d *daemon) {
	var wg sync.WaitGroup
	for i := range 4 {
		cwd := filepath.Join(c.work, fmt.Sprint(i))
		if err := os.MkdirAll(cwd, 0o700); err != nil {
			c.t.Fatal(err)
		}
		w := newWitness(c.dial(""), fmt.Sprintf("%d-%d", cycle, i), cwd)
		w.person, w.big = i == 3, i == 0
		c.witnesses = append(c.witnesses, w)
		wg.Go(w.work)
	}
	time.Sleep(time.Duration(5+cycle*13%170) * time.Millisecond) // vary the time of the kill
	d.kill()
	wg.Wait()
	for _, w := range c.witnesses {
		w.told = w.peer.log(w.id())
	}
}

// check checks what a daemon recovered after the kill of its predecessor.
func (c *campaign) check() {
	p := c.dial("")
	var ids []protocol.SessionID
	for _, w := range c.witnesses {
		c.count(w)
		c.inspect(w.name, w.kept(p))
		all := c.replay(w.id())
		c.inspect(w.name, w.repeated(all, c.turnsOf(w.id())))
		ids = append(ids, w.id())
	}
	if len(c.witnesses) > 0 {
		if r := c.witnesses[0].oneMore(p); r != nil {
			c.t.Errorf("reliability/I14 %v", r)
		}
		c.inspect("the store", (&inspection{db: c.db, dir: c.dir, known: c.known}).of(ids))
	}
	c.witnesses = nil
	c.model.Reset()
	p.conn.Close()
}

func (c *campaign) inspect(what string, err error) {
	c.t.Helper()
	if err != nil {
		c.t.Errorf("%s: reliability/%v", what, err)
	}
}

func (c *campaign) count(w *witness) {
	if w.created != nil {
		c.sessions++
	}
	for _, claim := range w.claims {
		if claim.acked == nil {
			c.unsure++
		} else {
			c.turns++
		}
	}
	c.answers += len(w.answers)
	c.events += len(w.told)
}

// turnsOf returns the turns of a session in the database.
func (c *campaign) turnsOf(id protocol.SessionID) []protocol.TurnID {
	c.t.Helper()
	ids, err := column[protocol.TurnID](c.db, "SELECT turn_id FROM turns JOIN sessions USING (session) WHERE session_id = ?", id)
	if err != nil {
		c.t.Fatal(err)
	}
	return ids
}
