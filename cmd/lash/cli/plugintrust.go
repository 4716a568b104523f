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

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/rpc/protocol"
)

// pluginTrustCommand implements lash plugin trust. Only a person may approve a
// plugin, so without --digest it needs a terminal.
type pluginTrustCommand struct {
	Name string `arg:"" help:"Workspace plugin; lash plugin list lists the names."`
	ofWorkspace
	Digest string `help:"Approve without asking if the plugin has this digest." placeholder:"DIGEST"`
}

// Help is shown by --help.
func (pluginTrustCommand) Help() string {
	return `Shows what a workspace plugin adds, which programs it runs and what it may request, and asks for your approval. The
approval covers the exact files of the plugin and the files that its commands name. Any change needs a new approval. Lines that
begin with "not covered" list files that a command may use and that can change without a new approval.

Exit codes: 0 approved, 3 not approved.

Example: lash plugin trust linter --cwd ~/src/project`
}

// Run approves the plugin with the digest that the user has seen or named. If the
// files change in between, the daemon rejects the request.
func (c pluginTrustCommand) Run(ctx context.Context, e *daemon.Environment) error {
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
	return decide(ctx, e, "step 2 of 2, starting the plugin", "plugin/trust", protocol.PluginTrustParams{Name: c.Name, Cwd: cwd, Digest: digest})
}

// approve shows a plugin on the terminal, asks for approval, and returns the
// approved digest. Any answer but y is a no.
func (c pluginTrustCommand) approve(ctx context.Context, e *daemon.Environment, cwd string) (protocol.Digest, error) {
	var r protocol.PluginReadResult
	err := e.AskDoing(ctx, "step 1 of 2, reading the files of the plugin", "Ctrl-C cancels it; nothing is approved", "plugin/read", protocol.PluginReadParams{Name: c.Name, Cwd: cwd}, &r)
	if err != nil {
		return "", err
	}
	if r.Digest == "" {
		printProblems(r.Plugin)
		return "", console.Exit(console.ExitFailed, errors.New("the plugin cannot be approved because it cannot be loaded"))
	}
	if !console.Terminal(os.Stdin) {
		return "", console.Exit(console.ExitUsage, errors.New("no terminal to ask on; give --digest with the digest that lash plugin show prints"))
	}
	if err := printRead(r); err != nil {
		return "", err
	}
	fmt.Fprint(console.Stdout, "Allow this plugin to run? [y/N] ")
	in := bufio.NewScanner(os.Stdin)
	if !in.Scan() || !strings.EqualFold(strings.TrimSpace(in.Text()), "y") {
		return "", console.Exit(console.ExitDenied, errors.New("the plugin was not approved"))
	}
	return r.Digest, nil
}

// printRead prints the contributions of a plugin and everything that it can reach.
// A plugin that cannot be loaded has only problems.
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

// printReach prints what a plugin can reach outside its directory. It shortens
// nothing, so that the user sees everything that the approval covers. Control
// characters are escaped.
func printReach(r protocol.PluginReach) {
	for _, argv := range r.Commands {
		printLine("runs", quoted(argv))
	}
	for _, x := range r.Executables {
		printLine("program", x.Path+" "+string(x.Digest))
	}
	for _, f := range r.Files {
		printLine("uses file", f.Path+" "+cmp.Or(string(f.Digest), "(does not exist)"))
	}
	for _, text := range r.Uncovered {
		printLine("not covered", text)
	}
	for _, address := range r.Addresses {
		printLine("connects to", address)
	}
	for _, name := range r.Environment {
		printLine("reads", "$"+name)
	}
	if r.Configures {
		printLine("configures", "sessions; it can change any setting, but can make approval only stricter")
	}
}

// printLine prints a row of printRead. The names of the rows are at most eleven
// characters long.
func printLine(what, text string) {
	fmt.Fprintf(console.Stdout, "%-11s  %s\n", what, console.Printable(text))
}

// quoted joins a command and quotes arguments with spaces, so that the reader can
// see where each argument ends.
func quoted(argv []string) string {
	all := make([]string, len(argv))
	for i, arg := range argv {
		if all[i] = arg; arg == "" || strings.ContainsFunc(arg, func(r rune) bool { return unicode.IsSpace(r) || r == '"' }) {
			all[i] = strconv.Quote(arg)
		}
	}
	return strings.Join(all, " ")
}

// contributions returns a table of the contributions of a plugin, with a header.
func contributions(all []protocol.PluginContribution) [][]string {
	rows := [][]string{{"CONTRIBUTES", "NAME", "DETAIL"}}
	for _, c := range all {
		rows = append(rows, []string{c.Kind, console.OneLine(c.Name, 60), console.OneLine(c.Detail, 80)})
	}
	return rows
}

// capabilities returns a row for each capability that a plugin may request.
func capabilities[S ~string](all []S) (rows [][]string) {
	for _, name := range all {
		rows = append(rows, []string{"may request", console.OneLine(string(name), 60), ""})
	}
	return rows
}

// pluginShowCommand implements lash plugin show, which works for trusted and
// untrusted plugins and changes nothing.
type pluginShowCommand struct {
	Name string `arg:"" help:"Plugin; lash plugin list lists the names."`
	ofWorkspace
	console.InJSON
}

// Help is shown by --help.
func (pluginShowCommand) Help() string {
	return `Also shows its digest and the capabilities that it may request from lashd.

Example: lash plugin show linter`
}

// Run prints the plugin as plugin trust shows it, without asking for approval.
func (c pluginShowCommand) Run(ctx context.Context, e *daemon.Environment) error {
	cwd, err := c.dir()
	if err != nil {
		return err
	}
	var r protocol.PluginReadResult
	if err := e.Ask(ctx, "plugin/read", protocol.PluginReadParams{Name: c.Name, Cwd: cwd}, &r); err != nil {
		return err
	}
	if c.JSON {
		return console.PrintJSON(r)
	}
	return printRead(r)
}

// decide calls a method that changes a plugin, and prints the new status of the
// plugin and its problems. doing says what the method does.
func decide(ctx context.Context, e *daemon.Environment, doing, method string, params any) error {
	var r protocol.PluginResult
	if err := e.AskDoing(ctx, doing, "Ctrl-C stops waiting; lash plugin shows what came of it", method, params, &r); err != nil {
		return err
	}
	printProblems(r.Plugin)
	fmt.Fprintf(console.Stdout, "%s is %s\n", console.Printable(r.Plugin.Name), r.Plugin.Status)
	if r.Plugin.Status == protocol.PluginUntrusted && method == "plugin/setEnabled" {
		advise(e, r.Plugin)
	}
	return nil
}

// pluginUntrustCommand implements lash plugin untrust.
type pluginUntrustCommand struct {
	Name string `arg:"" help:"Plugin; lash plugin list lists the names."`
	ofWorkspace
}

// Help is shown by --help.
func (pluginUntrustCommand) Help() string {
	return `Running turns keep using the plugin; later turns do not.

Example: lash plugin untrust linter`
}

// Run revokes the approval. The files of the plugin stay, and plugin trust
// approves it again.
func (c pluginUntrustCommand) Run(ctx context.Context, e *daemon.Environment) error {
	cwd, err := c.dir()
	if err != nil {
		return err
	}
	return decide(ctx, e, "removing the plugin from sessions", "plugin/untrust", protocol.PluginUntrustParams{Name: c.Name, Cwd: cwd})
}

// pluginSwitch are the arguments of plugin enable and plugin disable. The switch
// is separate from trust: enabling a plugin does not approve it.
type pluginSwitch struct {
	Name string `arg:"" help:"Plugin; lash plugin list lists the names."`
	ofWorkspace
}

// turn enables or disables the plugin.
func (c pluginSwitch) turn(ctx context.Context, e *daemon.Environment, on bool) error {
	cwd, err := c.dir()
	if err != nil {
		return err
	}
	return decide(ctx, e, map[bool]string{true: "starting the plugin", false: "removing the plugin from sessions"}[on], "plugin/setEnabled", protocol.PluginEnableParams{Name: c.Name, Cwd: cwd, Enabled: on})
}

// pluginEnableCommand implements lash plugin enable.
type pluginEnableCommand struct{ pluginSwitch }

// Help is shown by --help.
func (pluginEnableCommand) Help() string {
	return "Example: lash plugin enable linter"
}

// Run enables the plugin and prints its status, which is untrusted if it was never
// approved.
func (c pluginEnableCommand) Run(ctx context.Context, e *daemon.Environment) error {
	return c.turn(ctx, e, true)
}

// pluginDisableCommand implements lash plugin disable.
type pluginDisableCommand struct{ pluginSwitch }

// Help is shown by --help.
func (pluginDisableCommand) Help() string {
	return `The plugin stays disabled until you enable it. Its state is kept.

Example: lash plugin disable linter`
}

// Run disables the plugin, for all sessions of the workspace or of the user.
func (c pluginDisableCommand) Run(ctx context.Context, e *daemon.Environment) error {
	return c.turn(ctx, e, false)
}
