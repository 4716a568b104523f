package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/sourcegraph/jsonrpc2"

	"lashd/rpc/protocol"
)

// Exit codes. The help of each command lists its own.
const (
	// The general codes come first; those from 65 on follow sysexits.h.
	ExitFailed    = 1
	ExitUsage     = 2
	ExitDenied    = 3
	ExitCancelled = 4
	ExitNoDaemon  = 5
	ExitPartial   = 6  // done, but the result is incomplete
	ExitNewer     = 65 // the database was written by a newer lashd
	ExitMissing   = 66 // the database is missing
	ExitIO        = 74 // the database cannot be written
	ExitHeld      = 75 // another lashd uses the data directory
)

// ExitError is an error with an exit code. If err is nil, nothing is printed: the
// command has printed the reason. Other errors exit with ExitFailed, or
// ExitCancelled after a signal.
type ExitError struct {
	Code int
	err  error
}

// Exit returns an error with an exit code. A nil err prints nothing.
func Exit(code int, err error) error { return &ExitError{code, err} }

// Error and Unwrap implement error.
func (e *ExitError) Error() string { return e.err.Error() }
func (e *ExitError) Unwrap() error { return e.err }

// Report prints an error on stderr, after the name of the program, and returns its exit code. It is the only place
// that prints errors. The error is one line; the lines of detail follow it.
func Report(program string, err error, detail ...string) int {
	if err == nil {
		return 0
	}
	code := ExitFailed
	if e, ok := errors.AsType[*ExitError](err); ok {
		code = e.Code
		if e.err == nil {
			return code
		}
	} else if errors.Is(err, context.Canceled) {
		code, err = ExitCancelled, errors.New("cancelled")
	}
	Stderr(program + ": " + Explain(err))
	for _, line := range detail {
		Stderr("  " + line)
	}
	return code
}

// Detail returns what --verbose adds to an error: the causes in it, and for an error of the daemon its kind and what it says about a
// repetition.
func Detail(err error) (lines []string) {
	last := ""
	for e := err; e != nil; e = errors.Unwrap(e) {
		if exit, ok := e.(*ExitError); ok && exit.err == nil {
			return nil
		}
		if text := e.Error(); text != last && e != err {
			lines = append(lines, fmt.Sprintf("cause: %s (%T)", text, e))
		}
		last = e.Error()
	}
	wire, data := WireError(err)
	if data != nil {
		lines = append(lines, fmt.Sprintf("kind: %s (code %d); retry: %s; outcome: %s", data.Kind, wire.Code, data.Retry, data.Outcome))
	}
	return lines
}

// advice says what to do about errors of the daemon, by kind. It is added to
// errors whose text does not suggest a name.
var advice = map[protocol.ErrorKind]string{
	protocol.KindSessionNotFound: "lash session lists the sessions",
	protocol.KindPluginNotFound:  "lash plugin list lists the plugins",
	protocol.KindTriggerNotFound: "lash trigger list lists the triggers",
	protocol.KindModelNotFound:   "lash model lists the models",
	protocol.KindMethodNotFound:  "lashd schema lists all methods",
	protocol.KindOverloaded:      "try again in a moment",
	protocol.KindFileConflict:    "to overwrite the changes, repeat it with --force, or use /undo force in a chat",
	protocol.KindPointNotFound:   "lash session points lists the file points",
	protocol.KindStorageFull:     "free disk space and try again",
	protocol.KindStorageBusy:     "try again when the other process has finished",
}

// WireError returns the JSON-RPC error in err and its data. Both are nil if err is
// not an error of the daemon; data is nil if the error has none that can be read.
func WireError(err error) (wire *jsonrpc2.Error, data *protocol.ErrorData) {
	wire, ok := errors.AsType[*jsonrpc2.Error](err)
	if !ok || wire.Data == nil || json.Unmarshal(*wire.Data, &data) != nil {
		return wire, nil
	}
	return wire, data
}

// Explain returns the text of an error on one line. For an error of the daemon
// that is its message, and advice if there is any.
func Explain(err error) string {
	wire, data := WireError(err)
	switch {
	case wire == nil:
		return err.Error()
	case data == nil:
		return wire.Message
	}
	text := plain(wire.Message, data.Pointer)
	if hint := advice[data.Kind]; hint != "" && data.Nearest == "" {
		text += "; " + hint
	}
	return text
}

// plain returns a message with the name of a parameter instead of the JSON pointer
// to it: "/input/0/text is empty" becomes "parameter input.0.text is empty".
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

// ForFlags returns an error of the daemon with the flag that set a parameter instead of the name of the parameter. flags are the flags, or
// other words for what was entered, by the JSON pointers of parameters. Other errors stay.
func ForFlags(err error, flags map[string]string) error {
	wire, data := WireError(err)
	if data == nil || flags[data.Pointer] == "" {
		return err
	}
	about, _ := strings.CutPrefix(wire.Message, data.Pointer)
	about = strings.TrimPrefix(strings.TrimPrefix(about, ":"), " ")
	named := *data
	named.Pointer = ""
	text, encoded := json.Marshal(named)
	if encoded != nil {
		panic("encode our own type: " + encoded.Error())
	}
	raw := json.RawMessage(text)
	return &jsonrpc2.Error{Code: wire.Code, Message: flags[data.Pointer] + ": " + strings.TrimPrefix(about, "is wrong: "), Data: &raw}
}

// UsageError wraps an error of the command line parser and refers to the help of
// the command. hints are sentences about words that a person may take for
// commands of the program.
func UsageError(program string, err error, hints map[string]string) error {
	command := program
	if e, ok := errors.AsType[*kong.ParseError](err); ok {
		if unknown := unknownCommand(e, hints); unknown != nil {
			return Exit(ExitUsage, unknown)
		}
		command = commandOf(e.Context).FullPath()
	}
	text := plainUsage(err)
	if strings.HasSuffix(text, "?") {
		return Exit(ExitUsage, fmt.Errorf("%s See %s --help", text, command))
	}
	return Exit(ExitUsage, fmt.Errorf("%s; see %s --help", text, command))
}

var (
	// flagHint matches kong's suggestion after an unknown short flag, which is
	// usually wrong. noValue matches its complaint about a flag at the end of the
	// line, and expected that about an argument. goNumber replaces Go types in its
	// messages.
	noValue  = regexp.MustCompile(`expected \w+ value but got "EOL" \(<EOL>\)$`)
	expected = regexp.MustCompile(`^expected "(<.*)"$`)
	flagHint = regexp.MustCompile(` \(short flag\); perhaps try .*\?$`)
	goNumber = strings.NewReplacer("expected uint value", "expected a number, 0 or more,", "expected a valid 64 bit uint", "expected a number, 0 or more,")
)

// plainUsage returns the text of a parser error, without kong's wrong suggestions
// and without Go types. It puts parentheses around alternatives in a list of
// missing flags.
func plainUsage(err error) string {
	text := goNumber.Replace(flagHint.ReplaceAllString(err.Error(), ""))
	text = noValue.ReplaceAllString(text, "the value is missing")
	text = strings.Replace(text, `must be one of "",`, "must be one of ", 1)
	if missing := expected.FindStringSubmatch(text); missing != nil {
		return "missing: " + missing[1]
	}
	flags, ok := strings.CutPrefix(text, "missing flags: ")
	if !ok {
		return text
	}
	list := strings.Split(flags, ", ")
	for i, f := range list {
		if strings.Contains(f, " or ") && len(list) > 1 {
			list[i] = "(" + f + ")"
		}
	}
	return "missing flags: " + strings.Join(list, ", ")
}
