package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/sourcegraph/jsonrpc2"

	"lashd/rpc/protocol"
)

// Exit codes.
const (
	exitFailed    = 1
	exitUsage     = 2
	exitDenied    = 3
	exitCancelled = 4
	exitNoDaemon  = 5
	exitPartial   = 6 // done, but something is missing
	exitNewer     = 65
	exitMissing   = 66
	exitIO        = 74
	exitHeld      = 75
)

// exitError is an error that has its own exit code. Without an error, nothing is left to say.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// report tells an error on stderr and returns its exit code.
func report(err error) int {
	if err == nil {
		return 0
	}
	code := exitFailed
	if e, ok := errors.AsType[*exitError](err); ok {
		code = e.code
		if e.err == nil {
			return code
		}
	} else if errors.Is(err, context.Canceled) {
		code, err = exitCancelled, errors.New("cancelled")
	}
	fmt.Fprintln(os.Stderr, "lashd:", printable(explain(err)))
	return code
}

// advice is what to do about errors of the daemon whose text does not say it.
var advice = map[protocol.ErrorKind]string{
	protocol.KindSessionNotFound: "lashd session lists the sessions",
	protocol.KindPluginNotFound:  "lashd plugin list lists the plugins",
	protocol.KindTriggerNotFound: "lashd trigger list lists the triggers",
	protocol.KindModelNotFound:   "lashd model lists the models",
	protocol.KindMethodNotFound:  "lashd schema lists all methods",
	protocol.KindOverloaded:      "try again in a moment",
	protocol.KindFileConflict:    "lashd session undo --force overwrites the changes",
	protocol.KindStorageFull:     "free disk space and try again",
	protocol.KindStorageBusy:     "try again when the other process has finished",
}

// wireError is an error of the daemon. Without data it tells no more than its message.
func wireError(err error) (wire *jsonrpc2.Error, data *protocol.ErrorData) {
	wire, ok := errors.AsType[*jsonrpc2.Error](err)
	if !ok || wire.Data == nil || json.Unmarshal(*wire.Data, &data) != nil {
		return wire, nil
	}
	return wire, data
}

// explain is an error in one line, with what to do about it.
func explain(err error) string {
	wire, data := wireError(err)
	switch {
	case wire == nil:
		return err.Error()
	case data == nil:
		return wire.Message
	}
	text := fmt.Sprintf("%s (%s)", plain(wire.Message, data.Pointer), data.Kind)
	if hint := advice[data.Kind]; hint != "" && data.Nearest == "" {
		text += "; " + hint
	}
	return text
}

// plain is a message with the name of a parameter in place of the JSON pointer to it.
func plain(message, pointer string) string {
	about, ok := strings.CutPrefix(message, pointer+" ")
	switch {
	case pointer == "" || !ok:
		return message
	case strings.HasPrefix(about, "unknown field "):
		return about
	}
	return "parameter " + strings.ReplaceAll(strings.TrimPrefix(pointer, "/"), "/", ".") + " " + about
}

// usageError names the help that belongs to a command line that could not be understood.
func usageError(err error) error {
	command := "lashd"
	if e, ok := errors.AsType[*kong.ParseError](err); ok && e.Context.Selected() != nil {
		command = e.Context.Selected().FullPath()
	}
	return &exitError{exitUsage, fmt.Errorf("%s; see %s --help", plainUsage(err), command)}
}

var (
	flagHint = regexp.MustCompile(` \(short flag\); perhaps try .*\?$`)
	goNumber = strings.NewReplacer("expected uint value", "expected a number, 0 or more,", "expected a valid 64 bit uint", "expected a number, 0 or more,")
)

// plainUsage is an error of the command line without what the library guesses and without types of Go.
func plainUsage(err error) string {
	return goNumber.Replace(flagHint.ReplaceAllString(err.Error(), ""))
}
