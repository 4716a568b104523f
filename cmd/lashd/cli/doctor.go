package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"lashd/persistence"
	"lashd/rpc/protocol"
	"lashd/rpc/socket"
)

// doctorCommand implements lashd doctor. Scripts may rely on the ids of the
// checks; the texts may change.
type doctorCommand struct {
	inJSON
	Fix bool `help:"Accept a data loss: continue with an older database, or move the files of a missing one aside."`
}

// Help is shown by --help.
func (doctorCommand) Help() string {
	return `Checks config.toml, the key and server of each model, disk space, the open-file limit and the database. The database
check verifies the checksum of every stored record. The checks change nothing.

If the daemon is running, doctor asks the daemon and skips the full database check. For the full check, stop the daemon first:
  lashd call shutdown '{"daemon":true}'

--fix accepts a data loss that doctor reported. It deletes nothing:
  - If the database is older than the last one seen, --fix acknowledges that.
  - If the database is missing, --fix moves the remaining files to lashd-lost-TIME in the data directory. The next start creates a
    new database.
To recover the data instead, read docs/recovery.md first.

Exit codes: 0 no problems, 1 a problem, or a check that could not run.

Examples:
  lashd doctor --no-json
  lashd doctor --fix`
}

// diagnosis is the JSON output of lashd doctor. The ids of checks are stable.
// Daemon and Diagnostics are set if the daemon is running, and Found if the
// database was verified.
type diagnosis struct {
	Version     string                      `json:"version"`
	DataDir     string                      `json:"dataDir"`
	Healthy     bool                        `json:"healthy"`
	Checks      []check                     `json:"checks"`
	Daemon      *protocol.StatusResult      `json:"daemon,omitempty"`
	Diagnostics *protocol.DiagnosticsResult `json:"diagnostics,omitempty"`
	Found       *persistence.Report         `json:"database,omitempty"`

	fix bool // --fix was given
}

// check is the result of one check. Detail says what was found, and Remedy how to
// fix a problem. One id may occur several times, such as model and plugin.
type check struct {
	ID     string `json:"id"` // daemon, directory, filesystem, config, model, disk, scratch, files, lock, database, rollback, fix, sandbox, containment, watch, plugin
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
}

// Run examines the installation and prints all results, also after a failure of
// one check.
func (c doctorCommand) Run(ctx context.Context, e *environment) error {
	d := &diagnosis{Version: Version, DataDir: e.home, Healthy: true, fix: c.Fix}
	d.examine(ctx, e)
	if err := c.print(d); err != nil {
		return err
	}
	if !d.Healthy {
		return &exitError{exitFailed, nil}
	}
	return nil
}

// print prints the checks as lines or as JSON. A failed check has a second line
// with its remedy.
func (c doctorCommand) print(d *diagnosis) error {
	if c.wantsJSON() {
		return printJSON(d)
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	for _, check := range d.Checks {
		fmt.Fprintf(w, "%s\t%s\t%s\n", map[bool]string{true: "ok", false: "WRONG"}[check.OK], check.ID, printable(check.Detail))
		if check.Remedy != "" {
			fmt.Fprintf(w, "\t\tTo fix: %s\n", printable(check.Remedy))
		}
	}
	return w.Flush()
}

// note adds a check, which has failed if err is not nil, and reports whether it
// has passed. detail is the text of a passed check, remedy the advice for a failed
// one.
func (d *diagnosis) note(id, detail string, err error, remedy string) bool {
	c := check{ID: id, OK: err == nil, Detail: detail}
	if err != nil {
		c.Detail, c.Remedy, d.Healthy = err.Error(), remedy, false
	}
	d.Checks = append(d.Checks, c)
	return err == nil
}

// examine runs all checks. It asks a running daemon instead of opening the
// database. Otherwise it holds the lock, so that no daemon can start during the
// check. A missing data directory is not a problem.
func (d *diagnosis) examine(ctx context.Context, e *environment) {
	if _, err := os.Stat(e.home); errors.Is(err, os.ErrNotExist) {
		d.note("directory", e.home+" does not exist yet; the first lashd run creates it", nil, "")
		if cfg, configured := d.checkConfig(e); configured {
			d.checkModels(ctx, e, cfg)
		}
		return
	}
	cfg, configured := d.checkConfig(e)
	d.checkDisk(e.home)
	d.checkScratch(ctx, e)
	if l, err := e.dial(ctx, false, nil); err == nil {
		defer l.Close()
		d.askDaemon(ctx, e, l)
		if d.fix {
			d.note("fix", "", errors.New("--fix needs a stopped daemon"), stopDaemon+"; then run lashd doctor --fix again")
		}
		return
	}
	d.note("daemon", "not running (nothing listens on "+e.socket+")", nil, "")
	d.checkFiles(0, fileLimit())
	if configured {
		d.checkModels(ctx, e, cfg)
	}
	lock, err := socket.Hold(e.home) // the lock keeps a daemon from starting during the check
	if held, ok := errors.AsType[*socket.HeldError](err); ok {
		d.note("lock", "", held, heldRemedy(held, e)+" (the database was not checked)")
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

// checkConfig checks config.toml and returns its settings. ok is false if they
// cannot be used; checks that depend on them are then skipped.
func (d *diagnosis) checkConfig(e *environment) (cfg config, ok bool) {
	cfg, err := e.config()
	if err == nil {
		_, err = cfg.source(e.keySources(cfg, ""), notSet)
	}
	return cfg, d.note("config", e.configFile()+" is valid or absent", err, "correct the file; lashd schema config describes each key")
}

// heldRemedy says what to do if another process holds the lock, which may be a
// daemon on another socket.
func heldRemedy(held *socket.HeldError, e *environment) string {
	if held.Socket != "" && held.Socket != e.socket {
		return "omit --socket and LASHD_SOCKET, or set them to the socket of that daemon"
	}
	return "wait until that process answers, or stop it"
}

// notLocked says what to do about a data directory that cannot be locked.
func notLocked(err error) string {
	if errors.Is(err, syscall.ENOSPC) {
		return "free disk space"
	}
	return "follow the message; other users could read or replace the stored data"
}

// askDaemon checks a running daemon through its status methods. It does not open
// the database, which belongs to the daemon.
func (d *diagnosis) askDaemon(ctx context.Context, e *environment, l *link) {
	d.Daemon, d.Diagnostics = new(protocol.StatusResult), new(protocol.DiagnosticsResult)
	err := errors.Join(l.Call(ctx, "server/status", nil, d.Daemon), l.Call(ctx, "server/diagnostics", nil, d.Diagnostics))
	s, used := d.Daemon, d.Diagnostics
	up := age(time.Duration(s.UptimeMs) * time.Millisecond)
	if d.note("daemon", fmt.Sprintf("lashd %s, pid %d, up %s, %d connections, %d running turns, %d open decisions, %d MiB of memory",
		s.Version, s.Pid, up, s.Connections, s.Running, s.Decisions, used.RSSBytes>>20), err, "see "+l.daemon.DataDir+"/lashd.log") && s.Store != "ok" {
		err = errors.New(s.Store)
	}
	d.note("database", fmt.Sprintf("in use by the daemon: %d sessions, %d KiB, write-ahead log %d KiB, durability %s", s.Sessions,
		used.DBBytes>>10, used.WALBytes>>10, used.Durability), err, stopDaemon+"; then run lashd doctor again for the full check")
	if l.stale() {
		d.Checks = append(d.Checks, check{ID: "config", OK: true, Detail: "config.toml changed after the daemon started; the daemon still uses the old settings", Remedy: freshConfig})
	}
	d.checkFiles(used.OpenFiles, used.FileLimit)
	d.askModels(ctx, e, l)
	d.notePlugins()
}

// notePlugins adds the checks of the sandbox, of the plugin directories and of
// plugins with problems, from the daemon's diagnostics.
func (d *diagnosis) notePlugins() {
	d.note("sandbox", d.Diagnostics.Sandbox, nil, "")
	d.note("containment", d.Diagnostics.Containment, nil, "")
	for _, r := range d.Diagnostics.Roots {
		d.note("watch", strings.TrimSuffix(fmt.Sprintf("%s, by %s: %s", r.Dir, r.Watch, r.Reason), ": "), nil, "")
	}
	for _, p := range d.Diagnostics.Ailing {
		d.note("plugin", "", fmt.Errorf("%s in %s is %s: %s", p.Name, p.Dir, p.Status, ailment(&p)), "for details: lashd plugin logs "+p.Name+"; after a fix: lashd plugin reload")
	}
}

// ailment describes the problem of a plugin: its first load error, an unreachable
// MCP server, or else a program that was stopped after crashes.
func ailment(p *protocol.PluginInfo) string {
	if len(p.Problems) > 0 {
		return p.Problems[0].Message
	}
	for _, s := range p.Servers {
		if s.State == "unreachable" {
			return "MCP server " + s.Name + " cannot be reached: " + oneLine(s.Error, 200)
		}
	}
	return "a program of the plugin crashed too often; lashd stopped restarting it"
}

// progress returns a function that prints the progress of the database check on a
// terminal, after the first second. The check calls it from one goroutine.
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
