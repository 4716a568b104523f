// Package cli is the command line of lashd: flags, configuration, and the wiring of a daemon.
package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	_ "time/tzdata" // schedules name time zones, and not every machine has them

	"github.com/alecthomas/kong"

	"lashd/engine/plugin"
)

// Version is what lashd says it is; a build may set another.
var Version = "0.1.0"

const description = `A local daemon that runs LLM agents durably. Commands that need the daemon start it, except tail and doctor.

Try it: lashd demo. Then: lashd chat, or lashd run 'what does this project do?'

Results go to stdout; progress, logs and errors to stderr. Lists and states
are tables on a terminal and JSON elsewhere; --json or --no-json says which.
Ids of sessions, turns and tasks can be given by any unique beginning.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 a tool call was denied, 4 cancelled, 5 no daemon. backup also: 6 something
damaged is not in the copy. serve and stdio also: 65 the database is of a newer lashd, 74 the database cannot be written, 75
another lashd holds the data directory.

Environment: LASHD_HOME (data directory), LASHD_SOCKET, LASHD_LOG (log level), XDG_DATA_HOME, XDG_RUNTIME_DIR; for models,
unless config.toml of the data directory says otherwise: OPENAI_API_KEY and OPENAI_BASE_URL.`

// globals are the flags of all commands.
type globals struct {
	Home   string `help:"Data directory. Default: $$XDG_DATA_HOME/lashd, or ~/.local/share/lashd." env:"LASHD_HOME" placeholder:"DIR"`
	Socket string `help:"Unix socket of the daemon. Default: run/lashd.sock in a data directory that is named, else lashd/lashd.sock in $$XDG_RUNTIME_DIR." env:"LASHD_SOCKET" placeholder:"PATH"`
	Log    string `help:"Least level that is logged: debug, info, warn or error." env:"LASHD_LOG" default:"info" enum:"debug,info,warn,error"`
}

type commands struct {
	globals
	Serve   serveCommand   `cmd:"" help:"Run the daemon in the foreground."`
	Stdio   stdioCommand   `cmd:"" help:"Speak JSON-RPC on stdin and stdout, for editors."`
	ACP     acpCommand     `cmd:"" name:"acp" help:"Speak the Agent Client Protocol on stdin and stdout, for editors."`
	Run     runCommand     `cmd:"" help:"Run one turn and print the answer."`
	Chat    chatCommand    `cmd:"" help:"Talk with an agent in the terminal."`
	Call    callCommand    `cmd:"" help:"Call a method of the daemon and print the result."`
	Tail    tailCommand    `cmd:"" help:"Print a session's events as JSON, one a line, as they come."`
	Session sessionCommand `cmd:"" help:"List, show and delete sessions; show and undo what they did to files."`
	Tool    toolCommand    `cmd:"" help:"List the tools of a session."`
	Model   modelCommand   `cmd:"" help:"List the models that sessions can use."`
	Plugin  pluginCommand  `cmd:"" help:"List, read, approve, switch, write and try plugins."`
	Trigger triggerCommand `cmd:"" help:"Say what is to be done when something happens: at a time, when files change, when somebody says so."`
	Task    taskCommand    `cmd:"" help:"List, read, wait for, write to and cancel work that outlives turns."`
	Doctor  doctorCommand  `cmd:"" help:"Check the data directory and tell what is wrong and what to do."`
	Backup  backupCommand  `cmd:"" help:"Copy all that is stored, while turns go on."`
	Config  configCommand  `cmd:"" help:"Tell what is wrong with config.toml."`
	Schema  schemaCommand  `cmd:"" help:"Print the protocol as an OpenRPC document, or the schema of plugin.json or config.toml."`
	Demo    demoCommand    `cmd:"" help:"Show durable turns that survive SIGKILL; needs no key and no network."`
	Version versionCommand `cmd:"" help:"Print the version."`

	Completion completionCommand `cmd:"" help:"Print a script that has a shell complete commands of lashd."`
	Complete   completeCommand   `cmd:"" hidden:""`
}

// Main runs a command and returns the exit code. The first SIGINT or SIGTERM asks the command to end; the second one ends it.
func Main(args []string) int { return MainWith(args, Extra{}) }

// Extra is what a lashd has beside what ships inside. What has the id of something inside takes its place.
type Extra struct {
	Drivers []plugin.Factory // protocol plugins; a session has the one that its driver names
	Plugins []plugin.Factory // every session has all of them
}

// MainWith is Main of a lashd that has more plugins.
func MainWith(args []string, extra Extra) int {
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

// spelled are args as kong reads them, of people who ask for the version or for help as other programs are asked.
func spelled(args []string) []string {
	switch {
	case len(args) == 1 && (args[0] == "--version" || args[0] == "-v"):
		return []string{"version"}
	case len(args) > 0 && args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	}
	return args
}

// hear has the first signal end a command, and the second one the process. The channel that it gives is closed once signals are
// heard, which takes half a millisecond.
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

// parse reads a command line. What starts a daemon is read without the other commands, of whose declarations the reading would be
// a fifth of the start.
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

func asksHelp(args []string) bool {
	return slices.Contains(args, "-h") || slices.Contains(args, "--help")
}

func parserOf(ctx context.Context, commands any) *kong.Kong {
	parser, err := kong.New(commands, kong.Name("lashd"), kong.Description(description), kong.BindTo(ctx, (*context.Context)(nil)),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 120}))
	if err != nil {
		panic("the commands' own declarations are wrong: " + err.Error())
	}
	return parser
}

type versionCommand struct{}

func (versionCommand) Run() error {
	fmt.Fprintln(stdout, "lashd", Version)
	return nil
}
