package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"lashd/engine/task"
	"lashd/persistence"
	"lashd/rpc/protocol"
	"lashd/rpc/socket"
)

type doctorCommand struct {
	inJSON
}

// Help is shown by --help.
func (doctorCommand) Help() string {
	return `Checks config.toml, each model's key and server, disk space and the limit of open files, and the database: its structure, the hash chain of
every session's log, the sum of every other row, its history and its files. If a daemon runs, it is asked instead; stop it to have all checked: lashd call shutdown '{"daemon":true}'. Nothing
is repaired, deleted or replaced.

Exit codes: 0 all is well, 1 something is wrong, or could not be checked.

Example: lashd doctor --no-json`
}

// diagnosis is what doctor prints. Checks have stable ids.
type diagnosis struct {
	Version     string                      `json:"version"`
	DataDir     string                      `json:"dataDir"`
	Healthy     bool                        `json:"healthy"`
	Checks      []check                     `json:"checks"`
	Daemon      *protocol.StatusResult      `json:"daemon,omitempty"`
	Diagnostics *protocol.DiagnosticsResult `json:"diagnostics,omitempty"`
	Found       *persistence.Report         `json:"database,omitempty"`
}

type check struct {
	ID     string `json:"id"` // daemon, directory, filesystem, config, model, disk, files, lock, database, sandbox, watch, plugin
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
}

func (c doctorCommand) Run(ctx context.Context, e *environment) error {
	d := &diagnosis{Version: Version, DataDir: e.home, Healthy: true}
	d.examine(ctx, e)
	if err := c.print(d); err != nil {
		return err
	}
	if !d.Healthy {
		return &exitError{exitFailed, nil}
	}
	return nil
}

func (c doctorCommand) print(d *diagnosis) error {
	if c.wantsJSON() {
		return printJSON(d)
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	for _, check := range d.Checks {
		fmt.Fprintf(w, "%s\t%s\t%s\n", map[bool]string{true: "ok", false: "WRONG"}[check.OK], check.ID, printable(check.Detail))
		if check.Remedy != "" {
			fmt.Fprintf(w, "\t\tWhat to do: %s\n", printable(check.Remedy))
		}
	}
	return w.Flush()
}

// note adds a check that went well if there is no error.
func (d *diagnosis) note(id, detail string, err error, remedy string) bool {
	c := check{ID: id, OK: err == nil, Detail: detail}
	if err != nil {
		c.Detail, c.Remedy, d.Healthy = err.Error(), remedy, false
	}
	d.Checks = append(d.Checks, c)
	return err == nil
}

func (d *diagnosis) examine(ctx context.Context, e *environment) {
	if _, err := os.Stat(e.home); errors.Is(err, os.ErrNotExist) {
		d.note("directory", e.home+" is not there yet; the first lashd run makes it", nil, "")
		return
	}
	cfg, err := e.config()
	if err == nil {
		_, err = cfg.models(cfg.keys(os.Getenv), notSet)
	}
	configured := d.note("config", e.configFile()+" is as it should be, or missing", err, "correct the file; the README explains each key")
	d.checkDisk(e.home)
	if l, err := e.dial(ctx, false, nil); err == nil {
		defer l.Close()
		d.askDaemon(ctx, l)
		return
	}
	d.note("daemon", "none listens on "+e.socket, nil, "")
	d.checkFiles(0, fileLimit())
	if configured {
		d.checkModels(ctx, cfg)
	}
	lock, err := socket.Acquire(e.home) // a daemon may be starting just now
	if held, ok := errors.AsType[*socket.HeldError](err); ok {
		d.note("lock", "", held, heldRemedy(held, e)+"; the database was not looked at")
		return
	}
	if !d.note("directory", e.home+" is private", err, notLocked(err)) {
		return
	}
	defer lock.Release()
	if d.note("filesystem", "local", e.checkLocal(), "move the data directory to a local disk") {
		d.openDatabase(ctx, e)
	}
}

func heldRemedy(held *socket.HeldError, e *environment) string {
	if held.Socket != "" && held.Socket != e.socket {
		return "leave out --socket and LASHD_SOCKET, or name the socket of that one"
	}
	return "stop that process, or wait until it answers"
}

// notLocked is what to do about a data directory that cannot be locked.
func notLocked(err error) string {
	if errors.Is(err, syscall.ENOSPC) {
		return "free some space on the disk"
	}
	return "do what the message says; others could read or replace what is stored here"
}

// askDaemon does not open the database: it is the daemon's alone.
func (d *diagnosis) askDaemon(ctx context.Context, l *link) {
	d.Daemon, d.Diagnostics = new(protocol.StatusResult), new(protocol.DiagnosticsResult)
	err := errors.Join(l.Call(ctx, "server/status", nil, d.Daemon), l.Call(ctx, "server/diagnostics", nil, d.Diagnostics))
	s, used := d.Daemon, d.Diagnostics
	up := age(time.Duration(s.UptimeMs) * time.Millisecond)
	if d.note("daemon", fmt.Sprintf("lashd %s, pid %d, up %s, %d connections, %d turns running, %d questions open, %d MiB of memory",
		s.Version, s.Pid, up, s.Connections, s.Running, s.Decisions, used.RSSBytes>>20), err, "see "+l.daemon.DataDir+"/lashd.log") && s.Store != "ok" {
		err = errors.New(s.Store)
	}
	d.note("database", fmt.Sprintf("open and written by the daemon: %d sessions, %d KiB, log %d KiB, durability %s", s.Sessions,
		used.DBBytes>>10, used.WALBytes>>10, used.Durability), err, "stop the daemon with lashd call shutdown '{\"daemon\":true}' and run lashd doctor again")
	if l.stale() {
		d.Checks = append(d.Checks, check{ID: "config", OK: true, Detail: "config.toml was changed since the daemon started, which goes on with the old one", Remedy: freshConfig})
	}
	d.checkFiles(used.OpenFiles, used.FileLimit)
	d.askModels(ctx, l)
	d.notePlugins()
}

// notePlugins says how plugins are watched and confined, and which are not as they should be.
func (d *diagnosis) notePlugins() {
	d.note("sandbox", d.Diagnostics.Sandbox, nil, "")
	for _, r := range d.Diagnostics.Roots {
		d.note("watch", strings.TrimSuffix(fmt.Sprintf("%s, by %s: %s", r.Dir, r.Watch, r.Reason), ": "), nil, "")
	}
	for _, p := range d.Diagnostics.Ailing {
		why := "a program of it has crashed too often, and is not started any more"
		if len(p.Problems) > 0 {
			why = p.Problems[0].Message
		}
		d.note("plugin", "", fmt.Errorf("%s in %s is %s: %s", p.Name, p.Dir, p.Status, why), "lashd plugin logs "+p.Name+" says more; then lashd plugin reload")
	}
}

func (d *diagnosis) openDatabase(ctx context.Context, e *environment) {
	if _, err := os.Stat(filepath.Join(e.home, "lashd.db")); errors.Is(err, os.ErrNotExist) {
		d.note("database", "not there yet", nil, "")
		return
	}
	store, err := e.openStore(ctx)
	if err != nil {
		d.note("database", "", err, remedy(err, e))
		return
	}
	found, err := verify(ctx, store)
	d.Found = &found
	if err == nil && len(found.Problems) > 0 {
		err = fmt.Errorf("%d problems in %d sessions; the first: %s", len(found.Problems), found.Sessions, found.Problems[0])
	}
	d.note("database", fmt.Sprintf("%d sessions, %d events, %d files: structure, chains, contents and tasks are as they were written",
		found.Sessions, found.Events, found.Blobs), err, remedy(err, e))
}

// verify checks everything. The store is closed afterwards; it needs its writer for that only.
func verify(ctx context.Context, store *persistence.Store) (persistence.Report, error) {
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- store.Run(running) }()
	found, err := store.Verify(ctx, progress())
	if err == nil {
		var wrong []string
		wrong, err = store.VerifyTasks(ctx, task.Fold)
		found.Problems = append(found.Problems, wrong...)
	}
	if damaged := store.Healthy(); err == nil && damaged != nil {
		err = damaged
	}
	stop()
	return found, errors.Join(err, <-ended, store.Close())
}

// progress tells a person how far the check is, once it has taken a while.
func progress() func(done, all int) {
	began := time.Now()
	return func(done, all int) {
		if time.Since(began) < time.Second || !terminal(os.Stderr) {
			return
		}
		fmt.Fprintf(os.Stderr, "\rverified %d of %d sessions", done, all)
		if done == all {
			fmt.Fprintln(os.Stderr)
		}
	}
}

// remedy is what to do about an error of the database.
func remedy(err error, e *environment) string {
	switch {
	case errors.Is(err, persistence.ErrNewerSchema):
		return "install a lashd that is at least as new"
	case errors.Is(err, persistence.ErrOtherSchema):
		return "run the build that wrote it, or move " + e.home + " away to begin anew"
	case errors.Is(err, persistence.ErrBusy):
		return "another program has the file open, such as a database shell: close it"
	case errors.Is(err, persistence.ErrFull):
		return "free some space on the disk"
	}
	return "copy " + e.home + " away as it is, then put a backup in its place; while damaged, it can be read but is not written to"
}
