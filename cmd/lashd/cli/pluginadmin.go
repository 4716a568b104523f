package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lashd/rpc/protocol"
)

// ofWorkspace says whose plugins a command is about.
type ofWorkspace struct {
	Cwd string `help:"Workspace whose plugins are meant, besides the user's; the default is the current directory." placeholder:"DIR"`
}

func (o ofWorkspace) dir() (string, error) {
	if o.Cwd == "" {
		return os.Getwd()
	}
	return filepath.Abs(o.Cwd)
}

type pluginListCommand struct {
	ofWorkspace
	All bool `help:"Those that ship inside lashd, too; JSON always has them."`
	inJSON
}

// Help is shown by --help.
func (pluginListCommand) Help() string {
	return `STATUS is loaded; degraded or modified, when what runs is not what the directory holds by now; failed, untrusted or disabled, when
nothing of it runs. What is wrong is told below, with file, line and column.

Example: lashd plugin list --cwd ~/src/project`
}

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
		e.note("there are no plugins but those that ship inside lashd, which --all lists; lashd plugin new makes one")
		return nil
	}
	if err := table(rows); err != nil {
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

// printProblems prints what is wrong with a plugin.
func printProblems(p protocol.PluginInfo) {
	for _, problem := range p.Problems {
		problem.File = filepath.Join(p.Dir, problem.File)
		fmt.Fprintln(stdout, printable(problem.String()))
	}
}

// advise tells what to do about a plugin that is not as it should be.
func (e *environment) advise(p protocol.PluginInfo) {
	switch p.Status {
	case protocol.PluginUntrusted:
		e.note("%s: nobody has approved what it is now, so nothing of it runs; lashd plugin trust %[1]s shows it, and asks", p.Name)
	case protocol.PluginModified:
		e.note("%s: what was approved runs, not what the directory holds by now; lashd plugin trust %[1]s shows that, and asks", p.Name)
	case protocol.PluginDisabled:
		e.note("%s: lashd plugin enable %[1]s switches it on again", p.Name)
	case protocol.PluginDegraded:
		e.note("%s: what ran before goes on; lashd plugin logs %[1]s tells more", p.Name)
	case protocol.PluginFailed:
		e.note("%s: nothing of it runs; lashd plugin logs %[1]s tells more", p.Name)
	}
}

type pluginLogsCommand struct {
	Name string `arg:"" help:"Plugin; lashd plugin list lists them."`
	ofWorkspace
	Lines int  `help:"How many of the newest lines." default:"100" short:"n"`
	JSON  bool `help:"Print JSON."`
}

// Help is shown by --help.
func (pluginLogsCommand) Help() string {
	return `What the programs of a plugin have written on stderr or told as log, and what lashd has to say of them.

Example: lashd plugin logs reviewer -n 20`
}

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

func logLine(l protocol.PluginLogLine) string {
	return fmt.Sprintf("%s %-5s %s", time.UnixMilli(l.AtMs).Format(time.TimeOnly), l.Level, printable(l.Text))
}

type pluginReloadCommand struct {
	ofWorkspace
	DryRun bool `help:"Only tell what would change; nothing is started."`
	Refuse bool `help:"Not while any turn runs."`
	inJSON
}

// Help is shown by --help.
func (pluginReloadCommand) Help() string {
	return `Looks at the directories now, which the daemon does by itself when something in them changes. It tries again what did not start, and
resumes what has crashed too often. Sessions take other plugins at their next turn.

Exit codes: 0 all plugins are as they are in their directories, 1 some are not.

Example: lashd plugin reload --dry-run`
}

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

func printReload(r protocol.PluginReloadResult) error {
	rows := [][]string{{"PLUGIN", "CHANGE", "MORE", "LESS"}}
	for _, c := range r.Data {
		rows = append(rows, []string{oneLine(c.Name, 40), string(c.Change), oneLine(strings.Join(c.Added, ", "), 60), oneLine(strings.Join(c.Removed, ", "), 60)})
	}
	if err := table(rows); err != nil {
		return err
	}
	if r.Prefix {
		fmt.Fprintln(stdout, "tools or texts of the prompt change: what the model's provider has cached of sessions is of no use then")
	}
	for _, p := range r.Problems {
		printProblems(p)
	}
	return nil
}
