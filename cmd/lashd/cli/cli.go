// Package cli implements lashd, the program for machines: the daemon, the front ends of editors, and offline work on the database. It
// assembles a daemon from the engine, the database, the plugin loader and the RPC server. People use lash, package cmd/lash/cli.
//
// Each subcommand is a struct whose fields are its flags (see
// github.com/alecthomas/kong), with a Run method and, for long help, a Help
// method. Results go to stdout; everything else goes to stderr.
package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	_ "time/tzdata" // time zones for schedules, in case the system has none

	"github.com/alecthomas/kong"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/engine/plugin"
	"lashd/engine/starlark/worker"
)

// description is the text above the list of commands in lashd --help.
const description = `Run LLM agents in a local daemon that survives crashes and restarts.

This program is started by editors, service managers and lash. To use lashd yourself, see lash --help.

  lashd demo     See lashd recover from a crash.

Results go to stdout; progress, logs and errors go to stderr.

Exit codes:
  0  success
  1  failure
  2  wrong usage
  4  cancelled
  5  no daemon
The help of serve and stdio lists further codes.

Environment:
  LASHD_HOME, XDG_DATA_HOME         data directory
  LASHD_SOCKET, XDG_RUNTIME_DIR     socket of the daemon
  LASHD_LOG                         log level
  ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY
                                    API keys of model providers
  OPENAI_BASE_URL                   OpenAI-compatible model server, unless set in config.toml`

// commands are all commands, in the order of the help. Fields with cmd tags are
// commands; kong calls the Run method of the chosen one.
type commands struct {
	daemon.Globals
	Serve   serveCommand   `cmd:"" help:"Run the daemon in the foreground."`
	Stdio   stdioCommand   `cmd:"" help:"Serve JSON-RPC on stdin and stdout, for editors."`
	ACP     acpCommand     `cmd:"" name:"acp" help:"Serve the Agent Client Protocol on stdin and stdout, for editors."`
	Check   checkCommand   `cmd:"" help:"Verify the database while no daemon runs."`
	Config  configCommand  `cmd:"" help:"Check config.toml."`
	Schema  schemaCommand  `cmd:"" help:"Print the schema of the protocol, plugin.json or config.toml."`
	Demo    demoCommand    `cmd:"" help:"Watch turns survive SIGKILL; needs no API key and no network."`
	Version versionCommand `cmd:"" help:"Print the version."`

	Worker workerCommand `cmd:"" hidden:""`
}

// Main runs a command and returns its exit code. The first SIGINT or SIGTERM
// cancels the command, so that it can clean up; the second one ends the process at
// once.
func Main(args []string) int { return MainWith(args, Extra{}) }

// Extra has the plugins of a custom build. A plugin with the id of a built-in one
// replaces it. They exist in the daemons that the custom build starts; a daemon
// that another build has started does not have them.
type Extra struct {
	Drivers []plugin.Factory // drivers; a session uses the one that its configuration names
	Plugins []plugin.Factory // plugins of every session
}

// ofLash says of the commands of lash that they are not those of the daemon.
func ofLash() map[string]string {
	hints := map[string]string{}
	for _, name := range []string{"chat", "run", "session", "task", "trigger", "plugin", "model", "login", "rules", "status", "stop", "logs", "backup", "doctor", "service", "upgrade"} {
		hints[name] = name + " is a command of lash: lash " + name
	}
	return hints
}

// MainWith does the same as Main, with additional plugins. Custom builds call it
// from their main. args are the arguments without the program name.
func MainWith(args []string, extra Extra) int {
	if slices.Equal(args, []string{"worker"}) {
		return worker.Main() // without the declarations of other commands, so that it starts faster
	}
	ctx, end := context.WithCancelCause(context.Background())
	defer end(nil)
	hears := console.Hear(ctx, end)
	parsed, g, err := parse(ctx, console.Spelled(args))
	if err != nil {
		return console.Report("lashd", console.UsageError("lashd", err, ofLash()))
	}
	e, err := g.Environment("lashd")
	if err == nil {
		e.Hears = hears
		err = parsed.Run(e, &server{Environment: e, extra: extra})
	}
	if err == nil {
		err = console.Stdout.Failed()
	}
	return console.Report("lashd", err, g.Detail(e, err)...)
}

// parse parses a command line. Command lines that start a daemon are parsed
// without the declarations of the other commands, which would take a fifth of the
// start time. If that fails, the full parser runs, whose errors and help mention
// all commands.
func parse(ctx context.Context, args []string) (*kong.Context, *daemon.Globals, error) {
	if slices.ContainsFunc(args, func(arg string) bool { return arg == "serve" || arg == "stdio" }) && !asksHelp(args) {
		var c struct {
			daemon.Globals
			Serve serveCommand `cmd:""`
			Stdio stdioCommand `cmd:""`
		}
		if parsed, err := console.Parser(ctx, "lashd", description, &c).Parse(args); err == nil {
			return parsed, &c.Globals, nil
		}
	}
	var c commands
	parsed, err := console.Parser(ctx, "lashd", description, &c).Parse(args)
	return parsed, &c.Globals, err
}

// Model returns the declarations of all commands, for manual pages.
func Model() *kong.Application {
	return console.Parser(context.Background(), "lashd", description, &commands{}).Model
}

// asksHelp reports whether the command line asks for help.
func asksHelp(args []string) bool {
	return slices.Contains(args, "-h") || slices.Contains(args, "--help")
}

// workerCommand is the process that runs code cells of a session. The daemon starts it; MainWith runs it.
type workerCommand struct{}

// Run is called only with flags, which a worker does not have.
func (workerCommand) Run() error {
	return errors.New("lashd worker is started by the daemon, without flags")
}

// versionCommand implements lashd version. It needs no daemon; the version of a
// running daemon is in lash doctor.
type versionCommand struct{}

// Run prints "lashd" and the version. It does not use the log or the data
// directory.
func (versionCommand) Run() error {
	fmt.Fprintln(console.Stdout, "lashd", daemon.Version)
	return nil
}
