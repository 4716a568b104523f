// Package cli is the command line of lashd: flags, configuration, and the wiring of a daemon.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/sourcegraph/jsonrpc2"
)

// Version is what lashd says it is.
const Version = "0.1.0"

// Exit codes.
const (
	exitFailed    = 1
	exitUsage     = 2
	exitDenied    = 3
	exitCancelled = 4
	exitNoDaemon  = 5
	exitNewer     = 65
	exitIO        = 74
	exitHeld      = 75
)

// exitError is an error that has its own exit code.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

type commands struct {
	Home   string `help:"Data directory. Default: $$XDG_DATA_HOME/lashd, or ~/.local/share/lashd." env:"LASHD_HOME" placeholder:"DIR"`
	Socket string `help:"Unix socket of the daemon. Default: in the runtime directory." env:"LASHD_SOCKET" placeholder:"PATH"`
	Log    string `help:"Least level that is logged: debug, info, warn or error." env:"LASHD_LOG" default:"info" enum:"debug,info,warn,error"`

	Serve   serveCommand   `cmd:"" help:"Run the daemon in the foreground."`
	Stdio   stdioCommand   `cmd:"" help:"Speak JSON-RPC on stdin and stdout; starts the daemon if there is none."`
	Run     runCommand     `cmd:"" help:"Run one turn and print the answer."`
	Call    callCommand    `cmd:"" help:"Call a method of the daemon and print the result."`
	Tail    tailCommand    `cmd:"" help:"Print a session's events, one a line."`
	Session sessionCommand `cmd:"" help:"List sessions."`
	Tool    toolCommand    `cmd:"" help:"List the tools of a session."`
	Doctor  doctorCommand  `cmd:"" help:"Check the database and tell what is wrong."`
	Schema  schemaCommand  `cmd:"" help:"Print the protocol as an OpenRPC document."`
	Demo    demoCommand    `cmd:"" help:"Show a durable turn that survives SIGKILL; needs no key and no network."`
	Version versionCommand `cmd:"" help:"Print the version."`
}

// Main runs a command and returns the exit code.
func Main(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var c commands
	parser, err := kong.New(&c, kong.Name("lashd"), kong.Description("A local daemon that runs LLM agents durably."),
		kong.UsageOnError(), kong.BindTo(ctx, (*context.Context)(nil)))
	if err != nil {
		panic("the commands' own declarations are wrong: " + err.Error())
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "lashd: %v\n", err)
		return exitUsage
	}
	e, err := c.environment()
	if err == nil {
		err = parsed.Run(e)
	}
	return report(err)
}

func report(err error) int {
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		if e.err != nil {
			fmt.Fprintf(os.Stderr, "lashd: %v\n", e.err)
		}
		return e.code
	}
	if e, ok := errors.AsType[*jsonrpc2.Error](err); ok {
		fmt.Fprintf(os.Stderr, "lashd: %s (%d)\n", e.Message, e.Code)
		return exitFailed
	}
	fmt.Fprintf(os.Stderr, "lashd: %v\n", err)
	return exitFailed
}

type versionCommand struct{}

func (versionCommand) Run() error {
	fmt.Println("lashd", Version)
	return nil
}
