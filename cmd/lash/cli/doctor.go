package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"lashd/cmd/internal/config"
	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/cmd/internal/diagnosis"
	"lashd/engine/sandbox"
	"lashd/rpc/protocol"
)

// doctorCommand implements lash doctor. Scripts may rely on the ids of the
// checks; the texts may change.
type doctorCommand struct {
	console.InJSON
	Fix bool `help:"Accept a data loss: continue with an older database, or move the files of a missing one aside."`
}

// Help is shown by --help.
func (doctorCommand) Help() string {
	return `Checks config.toml, the key and server of each model, disk space, the open-file limit and the database. The database
check verifies the checksum of every stored record. The checks change nothing.

If the daemon is running, doctor asks the daemon and skips the full database check. For the full check, stop the daemon first:
  lash stop

--fix accepts a data loss that doctor reported. It deletes nothing:
  - If the database is older than the last one seen, --fix acknowledges that.
  - If the database is missing, --fix moves the remaining files to lashd-lost-TIME in the data directory. The next start creates a
    new database.
To recover the data instead, read docs/recovery.md first.

Exit codes: 0 no problems, 1 a problem, or a check that could not run.

Examples:
  lash doctor
  lash doctor --fix`
}

// stopDaemon is the advice to stop a daemon that has the database open.
const stopDaemon = "stop the daemon: lash stop"

// Run examines the installation and prints all results, also after a failure of
// one check.
func (c doctorCommand) Run(ctx context.Context, e *daemon.Environment) error {
	d := &diagnosis.Diagnosis{Version: daemon.Version, DataDir: e.Home, Healthy: true}
	examine(ctx, d, e, c.Fix)
	if err := d.Print(c.JSON); err != nil {
		return err
	}
	return d.Result()
}

// examine runs all checks. It asks a running daemon about the database, or has lashd check it.
// A missing data directory is not a problem.
func examine(ctx context.Context, d *diagnosis.Diagnosis, e *daemon.Environment, fix bool) {
	if _, err := os.Stat(e.Home); errors.Is(err, os.ErrNotExist) {
		d.Note("directory", e.Home+" does not exist yet; the first lash run creates it", nil, "")
		if cfg, configured := checkConfig(d, e); configured {
			checkModels(ctx, d, e, cfg)
		}
		return
	}
	cfg, configured := checkConfig(d, e)
	checkDisk(d, e.Home)
	checkScratch(ctx, d, e)
	if l, err := e.Dial(ctx, false, nil); err == nil {
		defer l.Close()
		askDaemon(ctx, d, e, l)
		if fix {
			d.Note("fix", "", errors.New("--fix needs a stopped daemon"), stopDaemon+"; then run lash doctor --fix again")
		}
		return
	}
	d.Note("daemon", "not running (nothing listens on "+e.Socket+")", nil, "")
	checkFiles(d, 0, fileLimit())
	if configured {
		checkModels(ctx, d, e, cfg)
	}
	checkStore(ctx, d, e, fix)
}

// checkStore adds the checks of lashd check, which opens the database. Its progress goes to stderr.
func checkStore(ctx context.Context, d *diagnosis.Diagnosis, e *daemon.Environment, fix bool) {
	program, err := e.Program()
	if err != nil {
		d.Note("database", "", err, "install lash and lashd together")
		return
	}
	args := []string{"--home", e.Home, "--socket", e.Socket, "check", "--json"}
	if fix {
		args = append(args, "--fix")
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	var found diagnosis.Diagnosis
	if wrong := json.Unmarshal(out, &found); wrong != nil {
		d.Note("database", "", fmt.Errorf("%s check failed: %w", program, cmp.Or(err, wrong)), "install lash and lashd of the same version")
		return
	}
	d.Checks, d.Found, d.Healthy = append(d.Checks, found.Checks...), found.Found, d.Healthy && found.Healthy
}

// checkConfig checks config.toml and returns its settings. ok is false if they
// cannot be used; checks that depend on them are then skipped.
func checkConfig(d *diagnosis.Diagnosis, e *daemon.Environment) (cfg config.Config, ok bool) {
	cfg, err := config.Load(e.Home)
	if err == nil {
		_, err = cfg.Source(config.OpenKeySources(e.Home, cfg, ""), config.NotSet)
	}
	return cfg, d.Note("config", config.File(e.Home)+" is valid or absent", err, "correct the file; lashd schema config describes each key")
}

// askDaemon checks a running daemon through its status methods. It does not open
// the database, which belongs to the daemon.
func askDaemon(ctx context.Context, d *diagnosis.Diagnosis, e *daemon.Environment, l *daemon.Link) {
	d.Daemon, d.Diagnostics = new(protocol.StatusResult), new(protocol.DiagnosticsResult)
	err := errors.Join(l.Call(ctx, "server/status", nil, d.Daemon), l.Call(ctx, "server/diagnostics", nil, d.Diagnostics))
	s, used := d.Daemon, d.Diagnostics
	up := span(time.Duration(s.UptimeMs) * time.Millisecond)
	if d.Note("daemon", fmt.Sprintf("lashd %s, pid %d, up %s, %s, %s, %s, %d MiB of memory", s.Version, s.Pid, up, plural(s.Connections, "connection", "connections"),
		plural(s.Running, "running turn", "running turns"), plural(s.Decisions, "open question", "open questions"), used.RSSBytes>>20), err, "see "+l.Daemon.DataDir+"/lashd.log") && s.Store != "ok" {
		err = errors.New(s.Store)
	}
	d.Note("database", fmt.Sprintf("in use by the daemon: %d sessions, %d KiB, write-ahead log %d KiB, durability %s", s.Sessions,
		used.DBBytes>>10, used.WALBytes>>10, used.Durability), err, stopDaemon+"; then run lash doctor again for the full check")
	if l.Stale(ctx) {
		d.Checks = append(d.Checks, diagnosis.Check{ID: "config", OK: true, Detail: "config.toml changed after the daemon started; the daemon still uses the old settings", Remedy: daemon.FreshConfig})
	}
	checkFiles(d, used.OpenFiles, used.FileLimit)
	askModels(ctx, d, e, l)
	notePlugins(d)
}

// notePlugins adds the checks of the sandbox, of the plugin directories and of
// plugins with problems, from the daemon's diagnostics.
func notePlugins(d *diagnosis.Diagnosis) {
	d.Note("sandbox", d.Diagnostics.Sandbox, nil, "")
	d.Note("containment", d.Diagnostics.Containment, nil, "")
	noteRoots(d)
	for _, p := range d.Diagnostics.Ailing {
		d.Note("plugin", "", fmt.Errorf("%s in %s is %s: %s", p.Name, p.Dir, p.Status, ailment(&p)), "for details: lash plugin logs "+p.Name+"; after a fix: lash plugin reload")
	}
}

// noteRoots adds the directories that the daemon watches: in one check for each way, and those with a reason in checks of their own.
func noteRoots(d *diagnosis.Diagnosis) {
	var ways []string
	dirs := map[string][]string{}
	for _, r := range d.Diagnostics.Roots {
		if r.Reason != "" {
			d.Note("watch", fmt.Sprintf("%s, by %s: %s", r.Dir, r.Watch, r.Reason), nil, "")
			continue
		}
		if dirs[r.Watch] == nil {
			ways = append(ways, r.Watch)
		}
		dirs[r.Watch] = append(dirs[r.Watch], r.Dir)
	}
	for _, way := range ways {
		d.Note("watch", fmt.Sprintf("by %s: %s", way, strings.Join(dirs[way], ", ")), nil, "")
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
			return "MCP server " + s.Name + " cannot be reached: " + console.OneLine(s.Error, 200)
		}
	}
	return "a program of the plugin crashed too often; lashd stopped restarting it"
}

// checkScratch notes the size of the temporary files of sandboxed commands.
func checkScratch(ctx context.Context, d *diagnosis.Diagnosis, e *daemon.Environment) {
	n, bytes := sandbox.Places{Scratch: e.Scratch()}.Size(ctx)
	if n == 0 {
		return
	}
	d.Note("scratch", fmt.Sprintf("temporary files and caches of sandboxed commands: %d workspaces, %d MiB in %s; those of a workspace that was not used for 30 days are removed when the daemon starts", n,
		(bytes+1<<20-1)>>20, e.Scratch()), nil, "")
}
