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

// pluginListCommand implements lashd plugin list.
type pluginListCommand struct {
	ofWorkspace
	All bool `help:"Include built-in plugins; JSON output always has them."`
	inJSON
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

Example: lashd plugin list --cwd ~/src/project`
}

// Run prints the plugins, then the problems and what to do about each plugin that
// does not run.
func (c pluginListCommand) Run(ctx context.Context, e *environment) error {
	cwd, err := c.dir()
	if err != nil {
		return err
	}
	var r protocol.PluginListResult
	if err := e.ask(ctx, "plugin/list", protocol.PluginListParams{Cwd: cwd}, &r); err != nil {
		return err
	}
	if c.wantsJSON() {
		return printJSON(r)
	}
	rows := [][]string{{"PLUGIN", "VERSION", "SCOPE", "STATUS", "DIRECTORY"}}
	for _, p := range r.Data {
		if c.All || p.Scope != protocol.ScopeBuiltin {
			rows = append(rows, []string{oneLine(p.Name, 40), oneLine(p.Version, 20), string(p.Scope), string(p.Status), oneLine(p.Dir, 80)})
		}
	}
	if len(rows) == 1 {
		e.note("no plugins except the built-in ones; --all lists those, lashd plugin new creates a plugin")
		return nil
	}
	if err := table(rows); err != nil {
		return err
	}
	if err := printServers(r.Data); err != nil {
		return err
	}
	for _, p := range r.Data {
		printProblems(p)
		e.advise(p)
	}
	for _, root := range r.Roots {
		if root.Reason != "" {
			e.note("%s is watched by %s: %s", root.Dir, root.Watch, root.Reason)
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
			rows = append(rows, []string{s.Name, oneLine(p.Name, 40), s.State, strconv.Itoa(s.Tools), cmp.Or(oneLine(s.Sandbox, 80), "-")})
			if s.Error != "" && s.State != "ready" {
				failures = append(failures, "MCP server "+s.Name+": "+s.Error)
			}
		}
	}
	if len(rows) == 1 {
		return nil
	}
	fmt.Fprintln(stdout)
	if err := table(rows); err != nil {
		return err
	}
	for _, f := range failures {
		fmt.Fprintln(stdout, printable(f))
	}
	return nil
}

// printProblems prints the problems of a plugin with their files and lines, one
// per line, in the form that editors can follow.
func printProblems(p protocol.PluginInfo) {
	for _, problem := range p.Problems {
		problem.File = filepath.Join(p.Dir, problem.File)
		fmt.Fprintln(stdout, printable(problem.String()))
	}
}

// advise prints what to do about a plugin that does not run or that has problems.
// The advice goes to stderr, so that tables stay clean.
func (e *environment) advise(p protocol.PluginInfo) {
	switch p.Status {
	case protocol.PluginUntrusted:
		e.note("%s is not trusted and does not run; review and approve it with: lashd plugin trust %[1]s", p.Name)
	case protocol.PluginModified:
		e.note("%s has changed; the approved version keeps running; review the change with: lashd plugin trust %[1]s", p.Name)
	case protocol.PluginDisabled:
		e.note("%s is disabled; to enable it: lashd plugin enable %[1]s", p.Name)
	case protocol.PluginDegraded:
		e.note("%s has an error; the last good version keeps running; for details: lashd plugin logs %[1]s", p.Name)
	case protocol.PluginFailed:
		e.note("%s has an error and does not run; for details: lashd plugin logs %[1]s", p.Name)
	}
}

// pluginLogsCommand implements lashd plugin logs.
type pluginLogsCommand struct {
	Name string `arg:"" help:"Plugin; lashd plugin list lists the names."`
	ofWorkspace
	Lines int  `help:"Number of newest lines to print." default:"100" short:"n"`
	JSON  bool `help:"Print JSON."`
}

// Help is shown by --help.
func (pluginLogsCommand) Help() string {
	return `Prints the stderr and log messages of the plugin's programs, and lashd's messages about the plugin.

Example: lashd plugin logs reviewer -n 20`
}

// Run prints the newest lines of the plugin's log that the daemon has, oldest
// first.
func (c pluginLogsCommand) Run(ctx context.Context, e *environment) error {
	cwd, err := c.dir()
	if err != nil {
		return err
	}
	var r protocol.PluginLogsResult
	if err := e.ask(ctx, "plugin/logs", protocol.PluginLogsParams{Name: c.Name, Cwd: cwd, Limit: c.Lines}, &r); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(r.Data)
	}
	for _, l := range r.Data {
		fmt.Fprintln(stdout, logLine(l))
	}
	return nil
}

// logLine formats a line of the log of a plugin: the time of day, the level and
// the text.
func logLine(l protocol.PluginLogLine) string {
	return fmt.Sprintf("%s %-5s %s", time.UnixMilli(l.AtMs).Format(time.TimeOnly), l.Level, printable(l.Text))
}

// pluginReloadCommand implements lashd plugin reload. A dry run reads and checks
// the directories as well, but changes nothing.
type pluginReloadCommand struct {
	ofWorkspace
	DryRun bool `help:"Show what would change without doing it."`
	Refuse bool `help:"Fail if a turn is running."`
	inJSON
}

// Help is shown by --help.
func (pluginReloadCommand) Help() string {
	return `You rarely need this command: the daemon watches the plugin directories and reloads plugins itself. The command also
restarts programs that crashed too often. Sessions use reloaded plugins from their next turn.

Exit codes: 0 no plugin has problems, 1 a plugin has problems.

Example: lashd plugin reload --dry-run`
}

// Run reloads the plugins of the user and of the workspace, and prints what
// changed.
func (c pluginReloadCommand) Run(ctx context.Context, e *environment) error {
	cwd, err := c.dir()
	if err != nil {
		return err
	}
	p := protocol.PluginReloadParams{Cwd: cwd, DryRun: c.DryRun}
	if c.Refuse {
		p.WhenBusy = protocol.BusyRefuse
	}
	var r protocol.PluginReloadResult
	if err := e.ask(ctx, "plugin/reload", p, &r); err != nil {
		return err
	}
	if c.wantsJSON() {
		err = printJSON(r)
	} else {
		err = printReload(r)
	}
	if err == nil && len(r.Problems) > 0 {
		return &exitError{exitFailed, nil}
	}
	return err
}

// printReload prints the changes of a reload as a table, followed by problems. It
// also warns if the change affects the prompts of running sessions, which costs
// them their cache.
func printReload(r protocol.PluginReloadResult) error {
	rows := [][]string{{"PLUGIN", "CHANGE", "ADDED", "REMOVED"}}
	for _, c := range r.Data {
		rows = append(rows, []string{oneLine(c.Name, 40), string(c.Change), oneLine(strings.Join(c.Added, ", "), 60), oneLine(strings.Join(c.Removed, ", "), 60)})
	}
	if err := table(rows); err != nil {
		return err
	}
	if r.Prefix {
		fmt.Fprintln(stdout, "Tools or prompt text change, so the prompt caches of running sessions become invalid.")
	}
	for _, p := range r.Problems {
		printProblems(p)
	}
	return nil
}
