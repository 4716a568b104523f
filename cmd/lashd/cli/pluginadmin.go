package cli

import (
	"bufio"
	"context"
	"errors"
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
	JSON *bool `help:"Print JSON; the default unless stdout is a terminal." negatable:""`
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
	if wantsJSON(c.JSON) {
		return printJSON(r)
	}
	rows := [][]string{{"PLUGIN", "VERSION", "SCOPE", "STATUS", "DIRECTORY"}}
	for _, p := range r.Data {
		rows = append(rows, []string{oneLine(p.Name, 40), oneLine(p.Version, 20), string(p.Scope), string(p.Status), oneLine(p.Dir, 80)})
	}
	if err := table(rows); err != nil {
		return err
	}
	for _, p := range r.Data {
		printProblems(p)
	}
	for _, root := range r.Roots {
		if root.Reason != "" {
			e.note("%s is watched by %s: %s", root.Dir, root.Watch, root.Reason)
		}
	}
	return nil
}

// printProblems prints what is wrong with a plugin, as editors understand it.
func printProblems(p protocol.PluginInfo) {
	for _, problem := range p.Problems {
		place := p.Dir
		if problem.File != "" {
			place = fmt.Sprintf("%s:%d:%d", filepath.Join(p.Dir, problem.File), problem.Line, problem.Column)
		}
		fmt.Println(printable(fmt.Sprintf("%s: %s", place, problem.Message)))
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
		fmt.Println(logLine(l))
	}
	return nil
}

func logLine(l protocol.PluginLogLine) string {
	return fmt.Sprintf("%s %-5s %s", time.UnixMilli(l.AtMs).Format(time.TimeOnly), l.Level, printable(l.Text))
}

type pluginReloadCommand struct {
	ofWorkspace
	DryRun bool  `help:"Only tell what would change; nothing is started."`
	Refuse bool  `help:"Not while any turn runs."`
	JSON   *bool `help:"Print JSON; the default unless stdout is a terminal." negatable:""`
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
	if wantsJSON(c.JSON) {
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
		fmt.Println("tools or texts of the prompt change: what the model's provider has cached of sessions is of no use then")
	}
	for _, p := range r.Problems {
		printProblems(p)
	}
	return nil
}

type pluginTrustCommand struct {
	Name string `arg:"" help:"Plugin of the workspace; lashd plugin list lists them."`
	ofWorkspace
	Digest string `help:"Approve only what has this digest, and ask nothing." placeholder:"DIGEST"`
}

// Help is shown by --help.
func (pluginTrustCommand) Help() string {
	return `Shows what a plugin of the workspace contributes, which programs it runs and what it may ask for, and asks whether exactly that may
run. Any change of any of its files makes it untrusted again; what was approved before runs until then.

Exit codes: 0 it is approved, 3 it was not.

Example: lashd plugin trust linter --cwd ~/src/project`
}

func (c pluginTrustCommand) Run(ctx context.Context, e *environment) error {
	cwd, err := c.dir()
	if err != nil {
		return err
	}
	digest := protocol.Digest(c.Digest)
	if digest == "" {
		if digest, err = c.approve(ctx, e, cwd); err != nil {
			return err
		}
	}
	var r protocol.PluginResult
	if err := e.ask(ctx, "plugin/trust", protocol.PluginTrustParams{Name: c.Name, Cwd: cwd, Digest: digest}, &r); err != nil {
		return err
	}
	printProblems(r.Plugin)
	fmt.Printf("%s is %s\n", printable(r.Plugin.Name), r.Plugin.Status)
	return nil
}

// approve shows a plugin to a person, and asks.
func (c pluginTrustCommand) approve(ctx context.Context, e *environment, cwd string) (protocol.Digest, error) {
	var r protocol.PluginReadResult
	if err := e.ask(ctx, "plugin/read", protocol.PluginParams{Name: c.Name, Cwd: cwd}, &r); err != nil {
		return "", err
	}
	if !terminal(os.Stdin) {
		return "", &exitError{exitUsage, errors.New("nobody is there to ask: give --digest, as plugin read tells it in found")}
	}
	if err := printRead(r); err != nil {
		return "", err
	}
	fmt.Print("may exactly this run? [y/N] ")
	in := bufio.NewScanner(os.Stdin)
	if !in.Scan() || !strings.EqualFold(strings.TrimSpace(in.Text()), "y") {
		return "", &exitError{exitDenied, errors.New("it was not approved")}
	}
	return r.Plugin.Found, nil
}

func printRead(r protocol.PluginReadResult) error {
	rows := [][]string{{"CONTRIBUTES", "NAME", "DETAIL"}}
	for _, c := range r.Contributes {
		rows = append(rows, []string{c.Kind, oneLine(c.Name, 60), oneLine(c.Detail, 80)})
	}
	for _, argv := range r.Reach.Commands {
		rows = append(rows, []string{"runs", oneLine(strings.Join(argv, " "), 120), ""})
	}
	for _, x := range r.Reach.Executables {
		rows = append(rows, []string{"program", oneLine(x.Path, 80), string(x.Digest)})
	}
	for _, a := range r.Reach.Addresses {
		rows = append(rows, []string{"speaks to", oneLine(a, 100), ""})
	}
	for _, name := range r.Reach.Environment {
		rows = append(rows, []string{"is given", oneLine(name, 60), "of the environment"})
	}
	for _, name := range r.Reach.Capabilities {
		rows = append(rows, []string{"may ask for", name, ""})
	}
	rows = append(rows, []string{"digest", string(r.Plugin.Found), ""})
	return table(rows)
}

type pluginReadCommand struct {
	Name string `arg:"" help:"Plugin; lashd plugin list lists them."`
	ofWorkspace
	JSON *bool `help:"Print JSON; the default unless stdout is a terminal." negatable:""`
}

// Help is shown by --help.
func (pluginReadCommand) Help() string {
	return `What it contributes, which programs it runs, what it may ask for, and the digest of all that.

Example: lashd plugin read linter`
}

func (c pluginReadCommand) Run(ctx context.Context, e *environment) error {
	cwd, err := c.dir()
	if err != nil {
		return err
	}
	var r protocol.PluginReadResult
	if err := e.ask(ctx, "plugin/read", protocol.PluginParams{Name: c.Name, Cwd: cwd}, &r); err != nil {
		return err
	}
	if wantsJSON(c.JSON) {
		return printJSON(r)
	}
	printProblems(r.Plugin)
	return printRead(r)
}

// pluginDecision is a command that changes what a person has decided of a plugin.
type pluginDecision struct {
	Name string `arg:"" help:"Plugin; lashd plugin list lists them."`
	ofWorkspace
}

func (c pluginDecision) decide(ctx context.Context, e *environment, method string, params func(name, cwd string) any) error {
	cwd, err := c.dir()
	if err != nil {
		return err
	}
	var r protocol.PluginResult
	if err := e.ask(ctx, method, params(c.Name, cwd), &r); err != nil {
		return err
	}
	printProblems(r.Plugin)
	fmt.Printf("%s is %s\n", printable(r.Plugin.Name), r.Plugin.Status)
	return nil
}

type pluginUntrustCommand struct{ pluginDecision }

// Help is shown by --help.
func (pluginUntrustCommand) Help() string {
	return `Takes every approval of a plugin of the workspace back. Turns that run keep it; later ones do not have it.

Example: lashd plugin untrust linter`
}

func (c pluginUntrustCommand) Run(ctx context.Context, e *environment) error {
	return c.decide(ctx, e, "plugin/untrust", func(name, cwd string) any { return protocol.PluginUntrustParams{Name: name, Cwd: cwd} })
}

type pluginEnableCommand struct{ pluginDecision }

// Help is shown by --help.
func (pluginEnableCommand) Help() string {
	return "Switches a plugin on again.\n\nExample: lashd plugin enable linter"
}

func (c pluginEnableCommand) Run(ctx context.Context, e *environment) error {
	return c.decide(ctx, e, "plugin/setEnabled", func(name, cwd string) any {
		return protocol.PluginEnableParams{Name: name, Cwd: cwd, Enabled: true}
	})
}

type pluginDisableCommand struct{ pluginDecision }

// Help is shown by --help.
func (pluginDisableCommand) Help() string {
	return `Switches a plugin off, also for later starts of lashd. Its state is kept.

Example: lashd plugin disable linter`
}

func (c pluginDisableCommand) Run(ctx context.Context, e *environment) error {
	return c.decide(ctx, e, "plugin/setEnabled", func(name, cwd string) any { return protocol.PluginEnableParams{Name: name, Cwd: cwd} })
}

func wantsJSON(flag *bool) bool {
	if flag != nil {
		return *flag
	}
	return !terminal(os.Stdout)
}
