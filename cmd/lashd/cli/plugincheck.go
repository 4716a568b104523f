package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"

	"lashd/pluginloader"
	"lashd/pluginloader/manifest"
)

type pluginCommand struct {
	List    pluginListCommand    `cmd:"" default:"withargs" help:"List plugins, and what is wrong with them; the default."`
	Read    pluginReadCommand    `cmd:"" help:"Show what a plugin contributes and runs."`
	Logs    pluginLogsCommand    `cmd:"" help:"Show what a plugin has said."`
	Reload  pluginReloadCommand  `cmd:"" help:"Look at the directories of plugins now."`
	Trust   pluginTrustCommand   `cmd:"" help:"Approve what a plugin of the workspace is now."`
	Untrust pluginUntrustCommand `cmd:"" help:"Take all approvals of a plugin back."`
	Enable  pluginEnableCommand  `cmd:"" help:"Switch a plugin on again."`
	Disable pluginDisableCommand `cmd:"" help:"Switch a plugin off."`
	New     pluginNewCommand     `cmd:"" help:"Make a plugin that works, to begin with."`
	Check   pluginCheckCommand   `cmd:"" help:"Tell what a plugin would contribute, and what is wrong with it."`
	Dev     pluginDevCommand     `cmd:"" help:"Run a plugin while it is being written."`
}

type pluginCheckCommand struct {
	Dir  string `arg:"" help:"Directory of the plugin."`
	Exec bool   `name:"run" help:"Start the plugin's process, too, and ask it whatever it declares. Only for what you trust."`
	inJSON
}

// Help is shown by --help.
func (pluginCheckCommand) Help() string {
	return `Reads plugin.json, hooks/hooks.json and .mcp.json, without a daemon; nothing of the plugin is run. Mistakes and warnings have
file, line and column.

With --run its process is started as it is there, without a sandbox, and has to shake hands, answer each hook that it declares
in time, write its state, take it back and write the same again, and end by itself with nothing left. What it says is on stderr.

Exit codes: 0 the plugin can be loaded, 1 something is wrong with it.

Example: lashd plugin check ~/.agents/plugins/reviewer --no-json`
}

// verdict is what plugin check prints.
type verdict struct {
	OK       bool              `json:"ok"`
	Plugin   *manifest.Plugin  `json:"plugin,omitempty"`
	Problems manifest.Problems `json:"problems,omitempty"`
	Checks   []tried           `json:"checks,omitempty"` // of --run
}

func (c pluginCheckCommand) Run(ctx context.Context) error {
	root, err := os.OpenRoot(c.Dir)
	if err != nil {
		return fmt.Errorf("plugin check: %w", err)
	}
	defer root.Close()
	p, err := manifest.Load(root)
	problems, wrong := errors.AsType[manifest.Problems](err)
	if err != nil && !wrong {
		return fmt.Errorf("plugin check: %w", err)
	}
	v := verdict{OK: !wrong, Plugin: p, Problems: problems}
	if v.OK {
		if _, err := p.Beyond(ctx, manifest.Finder{Look: exec.LookPath}); err != nil {
			p.Warnings = append(p.Warnings, manifest.Problem{File: "plugin.json", Message: err.Error() + "; without it the plugin is not loaded", Warning: true})
		}
	}
	if v.OK && c.Exec {
		if v.Checks, err = try(ctx, p, c.Dir); err != nil {
			return fmt.Errorf("plugin check: %w", err)
		}
		v.OK = !slices.ContainsFunc(v.Checks, func(x tried) bool { return !x.OK })
	}
	if err := c.print(v); err != nil {
		return err
	}
	if !v.OK {
		return &exitError{exitFailed, nil}
	}
	return nil
}

func (c pluginCheckCommand) print(v verdict) error {
	if c.wantsJSON() {
		return printJSON(v)
	}
	for _, p := range v.Problems {
		fmt.Fprintln(stdout, printable(p.String()))
	}
	if v.Plugin == nil {
		return nil
	}
	for _, w := range v.Plugin.Warnings {
		fmt.Fprintln(stdout, printable(w.String()))
	}
	rows := append(contributions(pluginloader.Contributions(v.Plugin)), capabilities(v.Plugin.Capabilities)...)
	rows = slices.Insert(rows, 1, []string{"plugin", oneLine(v.Plugin.Name, 60), oneLine(v.Plugin.Version+" "+v.Plugin.Description, 80)})
	if err := table(rows); err != nil || len(v.Checks) == 0 {
		return err
	}
	fmt.Fprintln(stdout)
	return table(results(v.Checks))
}

// results is a row for each check.
func results(checks []tried) [][]string {
	rows := [][]string{{"CHECK", "RESULT", "MS", "DETAIL"}}
	for _, c := range checks {
		result := "ok"
		if !c.OK {
			result = "failed"
		}
		rows = append(rows, []string{c.Name, result, fmt.Sprint(c.TookMs), oneLine(c.Detail, 400)})
	}
	return rows
}
