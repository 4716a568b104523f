package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"

	"lashd/cmd/internal/console"
	"lashd/pluginloader"
	"lashd/pluginloader/manifest"
)

// pluginCommand implements lash plugin.
type pluginCommand struct {
	List    pluginListCommand    `cmd:"" default:"withargs" help:"List plugins and their problems (default)."`
	Show    pluginShowCommand    `cmd:"" help:"Show what a plugin adds and runs."`
	Logs    pluginLogsCommand    `cmd:"" help:"Show the log of a plugin."`
	Reload  pluginReloadCommand  `cmd:"" help:"Reload changed plugins."`
	Trust   pluginTrustCommand   `cmd:"" help:"Review and approve a workspace plugin."`
	Untrust pluginUntrustCommand `cmd:"" help:"Revoke the approval of a workspace plugin."`
	Enable  pluginEnableCommand  `cmd:"" help:"Enable a plugin."`
	Disable pluginDisableCommand `cmd:"" help:"Disable a plugin."`
	New     pluginNewCommand     `cmd:"" help:"Create a starter plugin."`
	Check   pluginCheckCommand   `cmd:"" help:"Check the files of a plugin."`
	Dev     pluginDevCommand     `cmd:"" help:"Reload a plugin on each change while you write it."`
}

// pluginCheckCommand implements lash plugin check, for authors of plugins and
// their CI. It needs neither a daemon nor a data directory.
type pluginCheckCommand struct {
	Dir  string `arg:"" help:"Directory of the plugin."`
	Exec bool   `name:"run" help:"Also run the plugin and call each of its hooks. Use only with plugins you trust."`
	console.InJSON
}

// Help is shown by --help.
func (pluginCheckCommand) Help() string {
	return `Checks plugin.json, hooks/hooks.json and .mcp.json, skills, commands and agents. It needs no daemon and runs nothing. Errors and
warnings have file, line and column. A directory with .claude or .agents instead is checked as the files of a workspace. Warnings name
once what lashd does not support.

With --run, lashd starts the plugin's process without a sandbox. The process must complete the handshake, answer each declared
hook in time, save and restore its state, and exit without leaving processes behind. Its stderr is shown.

Exit codes: 0 the plugin can be loaded, 1 it has errors.

Example: lash plugin check ~/.agents/plugins/reviewer`
}

// verdict is the JSON output of plugin check. Plugin is missing if plugin.json
// cannot be read; warnings are inside it.
type verdict struct {
	OK       bool              `json:"ok"`
	Plugin   *manifest.Plugin  `json:"plugin,omitempty"`
	Problems manifest.Problems `json:"problems,omitempty"`
	Checks   []tried           `json:"checks,omitempty"` // results of --run
}

// Run checks the files and, if they are valid, with --run also the process. It
// prints everything it found before it fails.
// An invalid plugin gives console.ExitFailed without a further message.
func (c pluginCheckCommand) Run(ctx context.Context) error {
	root, err := os.OpenRoot(c.Dir)
	if err != nil {
		return fmt.Errorf("plugin check: %w", err)
	}
	defer root.Close()
	p, err := manifest.LoadAny(root)
	problems, wrong := errors.AsType[manifest.Problems](err)
	if err != nil && !wrong {
		return fmt.Errorf("plugin check: %w", err)
	}
	v := verdict{OK: !wrong, Plugin: p, Problems: problems}
	if v.OK {
		if _, err := p.Beyond(ctx, manifest.Finder{Look: exec.LookPath}); err != nil {
			p.Warnings = append(p.Warnings, manifest.Problem{File: "plugin.json", Message: err.Error() + "; the plugin cannot be loaded without it", Warning: true})
		}
	}
	if v.OK && c.Exec {
		progress := console.Begin("starting the plugin and calling its hooks", "Ctrl-C cancels it")
		v.Checks, err = try(ctx, p, c.Dir)
		progress.End()
		if err != nil {
			return fmt.Errorf("plugin check: %w", err)
		}
		v.OK = !slices.ContainsFunc(v.Checks, func(x tried) bool { return !x.OK })
	}
	if err := c.print(v); err != nil {
		return err
	}
	if !v.OK {
		return console.Exit(console.ExitFailed, nil)
	}
	return nil
}

// print prints the problems, the contributions and the checks of --run. Warnings
// do not make the check fail.
// JSON output has all problems; the tables shorten long texts.
func (c pluginCheckCommand) print(v verdict) error {
	if c.JSON {
		return console.PrintJSON(v)
	}
	for _, p := range v.Problems {
		fmt.Fprintln(console.Stdout, console.Printable(p.String()))
	}
	if v.Plugin == nil {
		return nil
	}
	for _, w := range v.Plugin.Warnings {
		fmt.Fprintln(console.Stdout, console.Printable(w.String()))
	}
	rows := append(contributions(pluginloader.Contributions(v.Plugin)), capabilities(v.Plugin.Capabilities)...)
	rows = slices.Insert(rows, 1, []string{"plugin", console.OneLine(v.Plugin.Name, 60), console.OneLine(v.Plugin.Version+" "+v.Plugin.Description, 80)})
	if err := table(rows); err != nil || len(v.Checks) == 0 {
		return err
	}
	fmt.Fprintln(console.Stdout)
	return table(results(v.Checks))
}

// results returns a table of checks, with the time that each took in milliseconds.
// The first row has the column names.
func results(checks []tried) [][]string {
	rows := [][]string{{"CHECK", "RESULT", "MS", "DETAIL"}}
	for _, c := range checks {
		result := "ok"
		if !c.OK {
			result = "failed"
		}
		rows = append(rows, []string{c.Name, result, fmt.Sprint(c.TookMs), console.OneLine(c.Detail, 400)})
	}
	return rows
}
