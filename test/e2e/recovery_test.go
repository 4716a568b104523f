package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/rpc/protocol"
	"lashd/test/tree"
)

// outcome runs lashd and returns its exit code and output.
func (h *home) outcome(args ...string) (code int, out string) {
	h.t.Helper()
	cmd := h.command(args...)
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	cmd.Run() // the exit code is in ProcessState
	return cmd.ProcessState.ExitCode(), both.String()
}

// wants runs lashd and checks its exit code and output.
func (h *home) wants(code int, says string, args ...string) {
	h.t.Helper()
	got, out := h.outcome(args...)
	if got != code || !strings.Contains(out, says) {
		h.t.Errorf("lashd %q exits %d and prints %q; want %d and %q", args, got, out, code, says)
	}
}

func (h *home) inside(name string) string { return filepath.Join(h.dir, name) }

// unchanged checks that the data directory has not changed.
func (h *home) unchanged(before map[string]string) {
	h.t.Helper()
	if diff := cmp.Diff(before, tree.Read(h.t, h.dir)); diff != "" {
		h.t.Errorf("the data directory has changed: %.2000s", diff)
	}
}

func (h *home) remove(names ...string) {
	h.t.Helper()
	for _, name := range names {
		if err := os.RemoveAll(h.inside(name)); err != nil {
			h.t.Fatal(err)
		}
	}
}

func TestRestoredBackup(t *testing.T) {
	t.Run("outside/12 a restored backup answers an old cursor with a gap", func(t *testing.T) {
		w := newWorld(t, "allow", step(says("one")), step(says("two")), step(says("three")), step(says("other")), step(says("more")))
		d := w.serve()
		p := w.dial("")
		id := p.session(w.home)
		p.turn(id, "first")
		backup := filepath.Join(t.TempDir(), "backup")
		saved := p.attach(id, 0).Seq
		ask[protocol.ServerBackupResult](p, "server/backup", protocol.ServerBackupParams{Dir: backup})
		p.turn(id, "second")
		p.turn(id, "third")
		cursor := p.attach(id, 0).Seq
		epoch := p.init.Epoch
		d.stop()

		config, err := os.ReadFile(w.inside("config.toml"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(w.dir); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(backup, w.dir); err != nil {
			t.Fatal(err)
		}
		w.write(w.inside("config.toml"), string(config))
		w.serve()
		q := w.dial("")
		if q.attach(id, 0).Seq != saved {
			t.Errorf("the backup is at seq %d, want %d", q.attach(id, 0).Seq, saved)
		}
		for q.attach(id, 0).Seq < cursor { // beyond the length of the lost history
			q.turn(id, "elsewhere")
		}
		r := attachAt(w.dial(""), id, cursor, epoch)
		if r.Gap == nil || r.Gap.Reason != "otherStore" || !slices.Contains(texts(r.Items), "elsewhere") {
			t.Errorf("a cursor of the lost history gets gap %+v and items %q", r.Gap, texts(r.Items))
		}
		if again := attachAt(w.dial(""), id, r.Seq, q.init.Epoch); again.Gap != nil {
			t.Errorf("the new cursor gets gap %+v", again.Gap)
		}
	})
}

func TestLostData(t *testing.T) {
	t.Run("outside/14 a missing database is an error until the user creates a new one", func(t *testing.T) {
		w := newWorld(t, "allow", step(says("one")))
		d := w.serve()
		p := w.dial("")
		p.turn(p.session(w.home), "go")
		d.kill()
		w.remove("lashd.db")
		w.wants(66, "lash doctor --fix", "serve")
		before := tree.Read(t, w.dir)
		w.wants(1, "lashd.db is missing", "doctor")
		if _, err := os.Stat(w.inside("lashd.db-wal")); err != nil {
			t.Error("the log without a database was removed:", err)
		}
		w.unchanged(before)
		w.wants(0, "lashd-lost-", "doctor", "--fix")
		w.serve()
		if got := ask[protocol.StatusResult](w.dial(""), "server/status", protocol.Empty{}); got.Sessions != 0 || got.Store != "ok" {
			t.Errorf("the new store: %+v", got)
		}
	})
	t.Run("outside/15 a lost write-ahead log is reported until it is acknowledged", func(t *testing.T) {
		w := newWorld(t, "allow", step(says("one")), step(says("two")))
		d := w.serve()
		p := w.dial("")
		id := p.session(w.home)
		p.turn(id, "go")
		d.stop()
		d = w.serve()
		p = w.dial("")
		p.turn(id, "on")
		d.kill()
		w.remove("lashd.db-wal", "lashd.db-shm")
		for range 2 { // looking changes nothing
			before := tree.Read(t, w.dir)
			w.wants(1, "lost its newest commits", "doctor")
			w.unchanged(before)
		}
		for range 2 {
			d = w.serve()
			q := w.dial("")
			got := ask[protocol.StatusResult](q, "server/status", protocol.Empty{})
			if !strings.Contains(got.Store, "may have been restored from a copy. Run `lash doctor`") || q.init.Epoch == p.init.Epoch {
				t.Errorf("status %+v, epoch %d is unchanged", got, q.init.Epoch)
			}
			w.wants(1, "may have been restored from a copy", "doctor")
			d.stop()
			w.wants(1, "lost its newest commits", "doctor")
		}
		w.wants(0, "acknowledged", "doctor", "--fix")
		w.wants(0, `"healthy":true`, "doctor", "--json")
		w.serve()
		if got := ask[protocol.StatusResult](w.dial(""), "server/status", protocol.Empty{}); got.Store != "ok" {
			t.Errorf("after the acknowledgement: %+v", got)
		}
	})
	t.Run("outside/15 removing the write-ahead log stops the daemon and loses nothing", func(t *testing.T) {
		w := newWorld(t, "allow", step(says("one")))
		d := w.serve()
		p := w.dial("")
		id := p.session(w.home)
		p.turn(id, "go")
		seq := p.attach(id, 0).Seq
		w.remove("lashd.db-wal")
		d.over = true
		d.cmd.Wait() // the exit code is in ProcessState
		if code := d.cmd.ProcessState.ExitCode(); code != 74 {
			t.Errorf("the daemon exits %d, want 74", code)
		}
		w.serve()
		q := w.dial("")
		got := ask[protocol.StatusResult](q, "server/status", protocol.Empty{})
		if r := attachAt(q, id, seq, p.init.Epoch); r.Gap != nil || r.Seq < seq || got.Store != "ok" {
			t.Errorf("seq %d of %d, gap %+v, %s", r.Seq, seq, r.Gap, got.Store)
		}
	})
	t.Run("outside/15 a daemon whose lock file was removed still owns the directory", func(t *testing.T) {
		w := newWorld(t, "allow")
		w.serve()
		w.dial("")
		w.remove("lashd.lock")
		w.wants(75, "another lashd holds", "serve")
	})
}
