// Package cli implements the lashd command: its subcommands and flags,
// config.toml, and the assembly of a daemon from the engine, the database, the
// plugin loader and the RPC server.
//
// Each subcommand is a struct whose fields are its flags (see
// github.com/alecthomas/kong), with a Run method and, for long help, a Help
// method. Commands talk to the daemon through a link and start the daemon if it is
// not running. Results go to stdout; everything else goes to stderr. Text of
// models, plugins and files is escaped before it reaches a terminal.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	_ "time/tzdata" // time zones for schedules, in case the system has none

	"github.com/alecthomas/kong"

	"lashd/engine/plugin"
	"lashd/engine/starlark/worker"
)

// Version is the version of this build, as lashd version prints it and the daemon
// reports it to clients. The linker may set it.
var Version = "0.1.0"

// description is the text above the list of commands in lashd --help.
const description = `Run LLM agents in a local daemon that survives crashes and restarts.

To start:
  lashd login                                Store the API key of a model provider.
  lashd demo                                 See lashd recover from a crash.
  lashd chat                                 Chat with an agent.
  lashd run 'what does this project do?'     Run one turn.

Commands start the daemon if they need it. Only tail, doctor and config never start it.

Results go to stdout; progress, logs and errors go to stderr. Lists are tables on a terminal and JSON otherwise; --json and
--no-json override this. You can shorten the id of a session, turn or task to any unique prefix.

Exit codes:
  0  success
  1  failure
  2  wrong usage
  3  a tool call was denied
  4  cancelled
  5  no daemon
The help of backup, serve and stdio lists further codes.

Environment:
  LASHD_HOME, XDG_DATA_HOME         data directory
  LASHD_SOCKET, XDG_RUNTIME_DIR     socket of the daemon
  LASHD_LOG                         log level
  ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY
                                    API keys of model providers
  OPENAI_BASE_URL                   OpenAI-compatible model server, unless set in config.toml`

// globals are the flags that all commands have. Each can also be set by an
// environment variable; the flag wins.
type globals struct {
	Home   string `help:"Data directory; default $$XDG_DATA_HOME/lashd or ~/.local/share/lashd." env:"LASHD_HOME" placeholder:"DIR"`
	Socket string `help:"Unix socket of the daemon; default run/lashd.sock in the --home directory, or $$XDG_RUNTIME_DIR/lashd/lashd.sock without --home." env:"LASHD_SOCKET" placeholder:"PATH"`
	Log    string `help:"Lowest level to log: debug, info, warn or error." env:"LASHD_LOG" default:"info" enum:"debug,info,warn,error"`
}

// commands are all commands, in the order of the help. Fields with cmd tags are
// commands; kong calls the Run method of the chosen one.
type commands struct {
	globals
	Serve   serveCommand   `cmd:"" help:"Run the daemon in the foreground."`
	Stdio   stdioCommand   `cmd:"" help:"Serve JSON-RPC on stdin and stdout, for editors."`
	ACP     acpCommand     `cmd:"" name:"acp" help:"Serve the Agent Client Protocol on stdin and stdout, for editors."`
	Run     runCommand     `cmd:"" help:"Run one turn and print the answer."`
	Chat    chatCommand    `cmd:"" help:"Chat with an agent in the terminal."`
	Call    callCommand    `cmd:"" help:"Call a method of the daemon and print the result."`
	Tail    tailCommand    `cmd:"" help:"Follow the events of a session as JSON lines."`
	Session sessionCommand `cmd:"" help:"List, show and delete sessions; show and undo their file changes."`
	Rules   rulesCommand   `cmd:"" name:"rules" help:"List, try, add and remove approval rules."`
	Tool    toolCommand    `cmd:"" help:"List the tools of a session."`
	Code    codeCommand    `cmd:"" help:"Run code in a session, or open a shell into its variables."`
	Login   loginCommand   `cmd:"" help:"Store the API key of a model provider."`
	Logout  logoutCommand  `cmd:"" help:"Delete a stored API key."`
	Model   modelCommand   `cmd:"" help:"List and test models; set the default model."`
	Plugin  pluginCommand  `cmd:"" help:"Manage, write and test plugins."`
	Trigger triggerCommand `cmd:"" help:"Manage triggers, which start work on a schedule, on file changes or on events."`
	Task    taskCommand    `cmd:"" help:"List, follow, signal and cancel background tasks."`
	Audit   auditCommand   `cmd:"" help:"List what ran outside a sandbox, who allowed it, and what was refused."`
	Doctor  doctorCommand  `cmd:"" help:"Check the installation and say how to fix problems."`
	Backup  backupCommand  `cmd:"" help:"Copy the stored data while turns keep running."`
	Config  configCommand  `cmd:"" help:"Check config.toml."`
	Schema  schemaCommand  `cmd:"" help:"Print the schema of the protocol, plugin.json or config.toml."`
	Demo    demoCommand    `cmd:"" help:"Watch turns survive SIGKILL; needs no API key and no network."`
	Version versionCommand `cmd:"" help:"Print the version."`

	Completion completionCommand `cmd:"" help:"Print a shell completion script."`
	Complete   completeCommand   `cmd:"" hidden:""`
	Worker     workerCommand     `cmd:"" hidden:""`
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

// MainWith does the same as Main, with additional plugins. Custom builds call it
// from their main. args are the arguments without the program name.
func MainWith(args []string, extra Extra) int {
	if slices.Equal(args, []string{"worker"}) {
		return worker.Main() // without the declarations of other commands, so that it starts faster
	}
	ctx, end := context.WithCancelCause(context.Background())
	defer end(nil)
	hears := hear(ctx, end)
	parsed, g, err := parse(ctx, spelled(args))
	if err != nil {
		return report(usageError(err))
	}
	e, err := g.environment()
	if err == nil {
		e.extra, e.hears = extra, hears
		err = parsed.Run(e)
	}
	if err == nil {
		err = stdout.failed()
	}
	return report(err)
}

// spelled translates --version, -v and "help COMMAND" to the spelling that kong
// understands.
func spelled(args []string) []string {
	switch {
	case len(args) == 1 && (args[0] == "--version" || args[0] == "-v"):
		return []string{"version"}
	case len(args) > 0 && args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	}
	return args
}

// hear calls end at the first SIGINT or SIGTERM; after that, a second signal ends
// the process. The returned channel is closed once the signal handler is
// installed. Installing it takes half a millisecond, so that runs beside the start
// of the command; a daemon waits for the channel before it serves.
func hear(ctx context.Context, end context.CancelCauseFunc) <-chan struct{} {
	hears := make(chan struct{})
	go func() {
		signalled, deaf := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		close(hears)
		<-signalled.Done()
		deaf()
		end(context.Cause(signalled))
	}()
	return hears
}

// parse parses a command line. Command lines that start a daemon are parsed
// without the declarations of the other commands, which would take a fifth of the
// start time. If that fails, the full parser runs, whose errors and help mention
// all commands.
func parse(ctx context.Context, args []string) (*kong.Context, *globals, error) {
	if slices.ContainsFunc(args, func(arg string) bool { return arg == "serve" || arg == "stdio" }) && !asksHelp(args) {
		var c struct {
			globals
			Serve serveCommand `cmd:""`
			Stdio stdioCommand `cmd:""`
		}
		if parsed, err := parserOf(ctx, &c).Parse(args); err == nil {
			return parsed, &c.globals, nil
		}
	}
	var c commands
	parsed, err := parserOf(ctx, &c).Parse(args)
	return parsed, &c.globals, err
}

// asksHelp reports whether the command line asks for help.
func asksHelp(args []string) bool {
	return slices.Contains(args, "-h") || slices.Contains(args, "--help")
}

// parserOf returns a parser for the declarations in commands. Invalid declarations
// are a bug of this package and panic.
func parserOf(ctx context.Context, commands any) *kong.Kong {
	parser, err := kong.New(commands, kong.Name("lashd"), kong.Description(description), kong.BindTo(ctx, (*context.Context)(nil)),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 120}))
	if err != nil {
		panic("invalid command declarations: " + err.Error())
	}
	parser.Model.HelpFlag.Help = "Show help."
	return parser
}

// workerCommand is the process that runs code cells of a session. The daemon starts it; MainWith runs it.
type workerCommand struct{}

// Run is called only with flags, which a worker does not have.
func (workerCommand) Run() error {
	return errors.New("lashd worker is started by the daemon, without flags")
}

// versionCommand implements lashd version. It needs no daemon; the version of a
// running daemon is in lashd doctor.
type versionCommand struct{}

// Run prints "lashd" and the version. It does not use the log or the data
// directory.
func (versionCommand) Run() error {
	fmt.Fprintln(stdout, "lashd", Version)
	return nil
}
