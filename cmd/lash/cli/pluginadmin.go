package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/rpc/protocol"
)

// ofWorkspace is the flag --cwd of commands about the plugins of a workspace and
// of the user. It selects whose workspace plugins are meant; plugins of the user
// are the same everywhere.
type ofWorkspace struct {
	Cwd string `help:"Workspace (default the current directory)." placeholder:"DIR"`
}

// dir returns the absolute path of the workspace.
func (o ofWorkspace) dir() (string, error) {
	if o.Cwd == "" {
		return os.Getwd()
	}
	return filepath.Abs(o.Cwd)
}

// pluginListCommand implements lash plugin list.
type pluginListCommand struct {
	ofWorkspace
	All bool `help:"Include built-in plugins; JSON output always has them."`
	console.InJSON
}

// Help is shown by --help.
func (pluginListCommand) Help() string {
	return `Lists the plugins of the user and of the workspace. Problems follow with file, line and column. STATUS is one of:
  loaded      the plugin runs
  degraded    the files have an error; the last good version runs
  modified    the files have changed; the approved version runs
  untrusted   not approved, does not run
  disabled    switched off
  failed      cannot be loaded

Example: lash plugin list --cwd ~/src/project`
}

// Run prints the plugins, then the problems and what to do about each plugin that
// does not run.
func (c pluginListCommand) Run(ctx context.Context, e *daemon.Environment) error {
	cwd, err := c.dir()
	if err != nil {
		return err
	}
	var r protocol.PluginListResult
	if err := e.Ask(ctx, "plugin/list", protocol.PluginListParams{Cwd: cwd}, &r); err != nil {
		return err
	}
	if c.JSON {
		return console.PrintJSON(r)
	}
	rows := [][]string{{"PLUGIN", "VERSION", "SCOPE", "STATUS", "DIRECTORY"}}
	for _, p := range r.Data {
		if c.All || p.Scope != protocol.ScopeBuiltin {
			rows = append(rows, []string{console.OneLine(p.Name, 40), console.OneLine(p.Version, 20), string(p.Scope), string(p.Status), console.OneLine(p.Dir, 80)})
		}
	}
	if len(rows) == 1 {
		e.Note("no plugins except the built-in ones; --all lists those, lash plugin new creates a plugin")
		return nil
	}
	if err := table(rows, "DIRECTORY", "VERSION", "SCOPE"); err != nil {
		return err
	}
	if err := printServers(r.Data); err != nil {
		return err
	}
	for _, p := range r.Data {
		printProblems(p)
		advise(e, p)
	}
	for _, root := range r.Roots {
		if root.Reason != "" {
			e.Note("%s is watched by %s: %s", root.Dir, root.Watch, root.Reason)
		}
	}
	return nil
}

// printServers prints the MCP servers of plugins with their sandboxes, and then in full why some of them failed: the errors have lines to
// copy into a file.
func printServers(plugins []protocol.PluginInfo) error {
	rows, failures := [][]string{{"MCP SERVER", "PLUGIN", "STATE", "TOOLS", "SANDBOX"}}, []string{}
	for _, p := range plugins {
		for _, s := range p.Servers {
			rows = append(rows, []string{s.Name, console.OneLine(p.Name, 40), s.State, strconv.Itoa(s.Tools), cmp.Or(console.OneLine(s.Sandbox, 80), "-")})
			if s.Error != "" && s.State != "ready" {
				failures = append(failures, "MCP server "+s.Name+": "+s.Error)
			}
		}
	}
	if len(rows) == 1 {
		return nil
	}
	fmt.Fprintln(console.Stdout)
	if err := table(rows, "SANDBOX", "PLUGIN", "TOOLS"); err != nil {
		return err
	}
	for _, f := range failures {
		fmt.Fprintln(console.Stdout, console.Printable(f))
	}
	return nil
}

// printProblems prints the problems of a plugin with their files and lines, one
// per line, in the form that editors can follow.
func printProblems(p protocol.PluginInfo) {
	for _, problem := range p.Problems {
		problem.File = filepath.Join(p.Dir, problem.File)
		fmt.Fprintln(console.Stdout, console.Printable(problem.String()))
	}
}

// advise prints what to do about a plugin that does not run or that has problems.
// The advice goes to stderr, so that tables stay clean.
func advise(e *daemon.Environment, p protocol.PluginInfo) {
	switch p.Status {
	case protocol.PluginUntrusted:
		e.Note("%s is not trusted and does not run; review and approve it with: lash plugin trust %[1]s", p.Name)
	case protocol.PluginModified:
		e.Note("%s has changed; the approved version keeps running; review the change with: lash plugin trust %[1]s", p.Name)
	case protocol.PluginDisabled:
		e.Note("%s is disabled; to enable it: lash plugin enable %[1]s", p.Name)
	case protocol.PluginDegraded:
		e.Note("%s has an error; the last good version keeps running; for details: lash plugin logs %[1]s", p.Name)
	case protocol.PluginFailed:
		e.Note("%s has an error and does not run; for details: lash plugin logs %[1]s", p.Name)
	}
}

// pluginLogsCommand implements lash plugin logs.
type pluginLogsCommand struct {
	Name string `arg:"" help:"Plugin; lash plugin list lists the names."`
	ofWorkspace
	Lines int  `help:"Number of newest lines to print." default:"100" short:"n"`
	JSON  bool `help:"Print JSON."`
}

// Help is shown by --help.
func (pluginLogsCommand) Help() string {
	return `Prints the stderr and log messages of the plugin's programs, and lashd's messages about the plugin.

Example: lash plugin logs reviewer -n 20`
}

// Run prints the newest lines of the plugin's log that the daemon has, oldest
// first.
func (c pluginLogsCommand) Run(ctx context.Context, e *daemon.Environment) error {
	cwd, err := c.dir()
	if err != nil {
		return err
	}
	var r protocol.PluginLogsResult
	if err := e.Ask(ctx, "plugin/logs", protocol.PluginLogsParams{Name: c.Name, Cwd: cwd, Limit: c.Lines}, &r); err != nil {
		return err
	}
	if c.JSON {
		return console.PrintJSON(r.Data)
	}
	for _, l := range r.Data {
		fmt.Fprintln(console.Stdout, logLine(l))
	}
	return nil
}

// logLine formats a line of the log of a plugin: the time of day, the level and
// the text.
func logLine(l protocol.PluginLogLine) string {
	return fmt.Sprintf("%s %-5s %s", time.UnixMilli(l.AtMs).Format(time.TimeOnly), l.Level, console.Printable(l.Text))
}

// pluginReloadCommand implements lash plugin reload. A dry run reads and checks
// the directories as well, but changes nothing.
type pluginReloadCommand struct {
	ofWorkspace
	DryRun bool `help:"Show what would change without doing it."`
	Refuse bool `help:"Fail if a turn is running."`
	console.InJSON
}

// Help is shown by --help.
func (pluginReloadCommand) Help() string {
	return `You rarely need this command: the daemon watches the plugin directories and reloads plugins itself. The command also
restarts programs that crashed too often. Sessions use reloaded plugins from their next turn.

Exit codes: 0 no plugin has problems, 1 a plugin has problems.

Example: lash plugin reload --dry-run`
}

// Run reloads the plugins of the user and of the workspace, and prints what
// changed.
func (c pluginReloadCommand) Run(ctx context.Context, e *daemon.Environment) error {
	cwd, err := c.dir()
	if err != nil {
		return err
	}
	p := protocol.PluginReloadParams{Cwd: cwd, DryRun: c.DryRun}
	if c.Refuse {
		p.WhenBusy = protocol.BusyRefuse
	}
	var r protocol.PluginReloadResult
	if err := e.AskDoing(ctx, "reading the plugins and starting those that changed", "Ctrl-C stops waiting; lash plugin shows what came of it", "plugin/reload", p, &r); err != nil {
		return err
	}
	if c.JSON {
		err = console.PrintJSON(r)
	} else {
		err = printReload(r)
	}
	if err == nil && len(r.Problems) > 0 {
		return console.Exit(console.ExitFailed, nil)
	}
	return err
}

// printReload prints the changes of a reload as a table, followed by problems. It
// also warns if the change affects the prompts of running sessions, which costs
// them their cache.
func printReload(r protocol.PluginReloadResult) error {
	rows := [][]string{{"PLUGIN", "CHANGE", "ADDED", "REMOVED"}}
	for _, c := range r.Data {
		rows = append(rows, []string{console.OneLine(c.Name, 40), string(c.Change), console.OneLine(strings.Join(c.Added, ", "), 60), console.OneLine(strings.Join(c.Removed, ", "), 60)})
	}
	if err := table(rows, "REMOVED", "ADDED"); err != nil {
		return err
	}
	if r.Prefix {
		fmt.Fprintln(console.Stdout, "Tools or prompt text change, so the prompt caches of running sessions become invalid.")
	}
	for _, p := range r.Problems {
		printProblems(p)
	}
	return nil
}
