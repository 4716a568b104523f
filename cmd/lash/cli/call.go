package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/rpc/protocol"
)

// callCommand implements lash call, which reaches every method of the protocol
// from a shell.
type callCommand struct {
	Method string `arg:"" help:"Method, such as session/list."`
	Params string `arg:"" optional:"" default:"{}" help:"Parameters as a JSON object; - reads them from stdin."`
}

// Help is shown by --help.
func (callCommand) Help() string {
	return `Prints the result as JSON, on one line unless stdout is a terminal. lashd schema METHOD shows the parameters of a
method.

Example: lash call session/read '{"sessionId":"ses_...","limit":10}'`
}

// Run calls the method with the parameters as given. The daemon validates them, so
// a newer daemon can have methods that this build does not know.
func (c callCommand) Run(ctx context.Context, e *daemon.Environment) error {
	params, err := c.params()
	if err != nil {
		return console.Exit(console.ExitUsage, err)
	}
	var result json.RawMessage
	if err := e.Ask(ctx, c.Method, params, &result); err != nil {
		return c.explained(err)
	}
	return console.PrintJSON(result)
}

// explained adds a reference to the schema of the method if its parameters were
// rejected. It leaves out the reference if the message already suggests a name.
func (c callCommand) explained(err error) error {
	if _, data := console.WireError(err); data == nil || data.Kind != protocol.KindInvalidParams || data.Nearest != "" {
		return err
	}
	return fmt.Errorf("%s; lashd schema %s describes the parameters", console.Explain(err), c.Method)
}

// params returns the parameters as a JSON object, from the command line or from
// stdin. It checks only that they are an object.
func (c callCommand) params() (json.RawMessage, error) {
	text := []byte(c.Params)
	if c.Params == "-" {
		var err error
		if text, err = io.ReadAll(os.Stdin); err != nil {
			return nil, err
		}
	}
	var object map[string]json.RawMessage
	err := json.Unmarshal(text, &object)
	if wrong, ok := errors.AsType[*json.SyntaxError](err); ok {
		return nil, fmt.Errorf("the parameters are not valid JSON: %w at byte %d of %s", err, wrong.Offset, bytes.TrimSpace(text))
	}
	if err != nil || object == nil {
		return nil, fmt.Errorf("the parameters must be a JSON object, such as '{\"sessionId\":\"...\"}', not %s", bytes.TrimSpace(text))
	}
	return text, nil
}
