package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"lashd/cmd/internal/console"
	"lashd/engine/structured"
	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// readSchema reads the file of --schema; nil without the flag. It fails before the daemon is asked if the file holds no JSON Schema.
func readSchema(path string) (json.RawMessage, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the schema: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, protocol.MaxSchema+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read the schema: %w", err)
	}
	if len(data) == 0 {
		return nil, fmt.Errorf("the schema in %s is empty", path)
	}
	schema, err := structured.Schema(data)
	if err != nil {
		return nil, fmt.Errorf("the schema in %s %w", path, err)
	}
	return schema, nil
}

// printValue prints the value of a turn on one line. It fails if the turn completed without one, because a tool ended it. It prints
// nothing for a turn that did not complete, and with --json, because the last event has the value.
func (t *turnRun) printValue(r *protocol.TurnReport) error {
	switch {
	case t.schema == nil || r.State != protocol.TurnCompleted:
		return nil
	case r.Outcome.Kind != protocol.OutcomeFinalValue:
		return console.Exit(console.ExitFailed, fmt.Errorf("the turn ended without a value of the schema (%s)", r.Outcome.Kind))
	case !t.command.JSON:
		t.view.print(console.Printable(termtext.Unescaped(r.Outcome.Value)) + "\n")
	}
	return nil
}
