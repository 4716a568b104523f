package console

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/alecthomas/kong"
)

// Parser returns a parser of the command line of a program. Invalid declarations
// are a bug of the program and panic.
func Parser(ctx context.Context, program, description string, commands any) *kong.Kong {
	parser, err := kong.New(commands, kong.Name(program), kong.Description(description), kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Help(printHelp), kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 120}))
	if err != nil {
		panic("invalid command declarations: " + err.Error())
	}
	parser.Model.HelpFlag.Help = "Show help."
	return parser
}

// Spelled translates --version, -v and "help COMMAND" to the spelling that kong
// understands.
func Spelled(args []string) []string {
	switch {
	case len(args) == 1 && (args[0] == "--version" || args[0] == "-v"):
		return []string{"version"}
	case len(args) > 0 && args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	}
	return args
}

// Hear calls end at the first SIGINT or SIGTERM; after that, a second signal ends
// the process. The returned channel is closed once the signal handler is
// installed. Installing it takes half a millisecond, so that runs beside the start
// of the command; a daemon waits for the channel before it serves.
func Hear(ctx context.Context, end context.CancelCauseFunc) <-chan struct{} {
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
