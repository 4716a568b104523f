package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"lashd/engine/structured"
	"lashd/rpc/protocol"
)

// readSchema reads the file of --output-schema; nil without the flag. It fails before the daemon is asked if the file holds no JSON Schema.
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
