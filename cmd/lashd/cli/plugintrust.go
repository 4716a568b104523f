package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unicode"

	"lashd/rpc/protocol"
)

type pluginTrustCommand struct {
	Name string `arg:"" help:"Plugin of the workspace; lashd plugin list lists them."`
	ofWorkspace
	Digest string `help:"Approve only what has this digest, and ask nothing." placeholder:"DIGEST"`
}

// Help is shown by --help.
func (pluginTrustCommand) Help() string {
	return `Shows what a plugin of the workspace contributes, which programs it runs and what it may ask for, and asks whether exactly that may
run. Any change of any of its files, or of a file that its commands name, makes it untrusted again. Lines that begin with "not covered" tell
which files a command may use that may change without a new approval.

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
	return e.decide(ctx, "plugin/trust", protocol.PluginTrustParams{Name: c.Name, Cwd: cwd, Digest: digest})
}

// approve shows a plugin to a person, and asks.
func (c pluginTrustCommand) approve(ctx context.Context, e *environment, cwd string) (protocol.Digest, error) {
	var r protocol.PluginReadResult
	if err := e.ask(ctx, "plugin/read", protocol.PluginParams{Name: c.Name, Cwd: cwd}, &r); err != nil {
		return "", err
	}
	if r.Digest == "" {
		printProblems(r.Plugin)
		return "", &exitError{exitFailed, errors.New("there is nothing that could be approved: the plugin cannot be loaded as it is")}
	}
	if !terminal(os.Stdin) {
		return "", &exitError{exitUsage, errors.New("nobody is there to ask: give --digest, as plugin read tells it")}
	}
	if err := printRead(r); err != nil {
		return "", err
	}
	fmt.Fprint(stdout, "may exactly this run? [y/N] ")
	in := bufio.NewScanner(os.Stdin)
	if !in.Scan() || !strings.EqualFold(strings.TrimSpace(in.Text()), "y") {
		return "", &exitError{exitDenied, errors.New("it was not approved")}
	}
	return r.Digest, nil
}

func printRead(r protocol.PluginReadResult) error {
	printProblems(r.Plugin)
	if err := table(append(contributions(r.Contributes), capabilities(r.Reach.Capabilities)...)); err != nil {
		return err
	}
	printReach(r.Reach)
	if r.Digest != "" {
		printLine("digest", string(r.Digest))
	}
	return nil
}

// printReach prints what a plugin reaches beyond its directory. Nothing is cut off: what is not seen cannot be approved.
func printReach(r protocol.PluginReach) {
	for _, argv := range r.Commands {
		printLine("runs", quoted(argv))
	}
	for _, x := range r.Executables {
		printLine("program", x.Path+" "+string(x.Digest))
	}
	for _, f := range r.Files {
		printLine("names", f.Path+" "+cmp.Or(string(f.Digest), "(no such file yet)"))
	}
	for _, text := range r.Uncovered {
		printLine("not covered", text)
	}
	for _, address := range r.Addresses {
		printLine("speaks to", address)
	}
	for _, name := range r.Environment {
		printLine("is given", name+" of the environment")
	}
	if r.Configures {
		printLine("configures", "sessions: it may change their configuration, and approval only to be stricter")
	}
}

func printLine(what, text string) { fmt.Fprintf(stdout, "%-11s  %s\n", what, printable(text)) }

// quoted is a command of which one can tell where an argument ends.
func quoted(argv []string) string {
	all := make([]string, len(argv))
	for i, arg := range argv {
		if all[i] = arg; arg == "" || strings.ContainsFunc(arg, func(r rune) bool { return unicode.IsSpace(r) || r == '"' }) {
			all[i] = strconv.Quote(arg)
		}
	}
	return strings.Join(all, " ")
}

// contributions are a row for each thing that a plugin adds, below a head.
func contributions(all []protocol.PluginContribution) [][]string {
	rows := [][]string{{"CONTRIBUTES", "NAME", "DETAIL"}}
	for _, c := range all {
		rows = append(rows, []string{c.Kind, oneLine(c.Name, 60), oneLine(c.Detail, 80)})
	}
	return rows
}

// capabilities are a row for each thing that a plugin may ask of lashd.
func capabilities[S ~string](all []S) (rows [][]string) {
	for _, name := range all {
		rows = append(rows, []string{"may ask for", oneLine(string(name), 60), ""})
	}
	return rows
}

type pluginReadCommand struct {
	Name string `arg:"" help:"Plugin; lashd plugin list lists them."`
	ofWorkspace
	inJSON
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
	if c.wantsJSON() {
		return printJSON(r)
	}
	return printRead(r)
}

// decide sends what a person has decided of a plugin, and prints what has become of it.
func (e *environment) decide(ctx context.Context, method string, params any) error {
	var r protocol.PluginResult
	if err := e.ask(ctx, method, params, &r); err != nil {
		return err
	}
	printProblems(r.Plugin)
	fmt.Fprintf(stdout, "%s is %s\n", printable(r.Plugin.Name), r.Plugin.Status)
	return nil
}

type pluginUntrustCommand struct {
	Name string `arg:"" help:"Plugin; lashd plugin list lists them."`
	ofWorkspace
}

// Help is shown by --help.
func (pluginUntrustCommand) Help() string {
	return `Takes every approval of a plugin of the workspace back. Turns that run keep it; later ones do not have it.

Example: lashd plugin untrust linter`
}

func (c pluginUntrustCommand) Run(ctx context.Context, e *environment) error {
	cwd, err := c.dir()
	if err != nil {
		return err
	}
	return e.decide(ctx, "plugin/untrust", protocol.PluginUntrustParams{Name: c.Name, Cwd: cwd})
}

// pluginSwitch switches a plugin on or off.
type pluginSwitch struct {
	Name string `arg:"" help:"Plugin; lashd plugin list lists them."`
	ofWorkspace
}

func (c pluginSwitch) turn(ctx context.Context, e *environment, on bool) error {
	cwd, err := c.dir()
	if err != nil {
		return err
	}
	return e.decide(ctx, "plugin/setEnabled", protocol.PluginEnableParams{Name: c.Name, Cwd: cwd, Enabled: on})
}

type pluginEnableCommand struct{ pluginSwitch }

// Help is shown by --help.
func (pluginEnableCommand) Help() string {
	return "Switches a plugin on again.\n\nExample: lashd plugin enable linter"
}

func (c pluginEnableCommand) Run(ctx context.Context, e *environment) error {
	return c.turn(ctx, e, true)
}

type pluginDisableCommand struct{ pluginSwitch }

// Help is shown by --help.
func (pluginDisableCommand) Help() string {
	return `Switches a plugin off, also for later starts of lashd. Its state is kept.

Example: lashd plugin disable linter`
}

func (c pluginDisableCommand) Run(ctx context.Context, e *environment) error {
	return c.turn(ctx, e, false)
}
