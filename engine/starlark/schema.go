package starlark

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"

	"lashd/rpc/protocol"

	"go.starlark.net/starlark"
)

// conforms checks a value against a JSON Schema; no schema accepts any value. A schema that cannot be used is an error.
// The daemon checks the value once more when the turn ends. This check exists so that the code fails at the line of finish, where the
// model can mend it.
func conforms(schema, value json.RawMessage) error {
	if len(bytes.TrimSpace(schema)) == 0 {
		return nil
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(schema, &s); err != nil {
		return fmt.Errorf("the schema is invalid: %w", err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return fmt.Errorf("the schema is invalid: %w", err)
	}
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return err
	}
	return resolved.Validate(v)
}

// seed returns the first message of a new frame: a text, or a value as JSON.
func (in *Interpreter) seed(v starlark.Value) (protocol.NodeBody, error) {
	text, ok := starlark.AsString(v)
	if !ok {
		data, err := toJSON(v, in.config.Limits.Value)
		if err != nil {
			return protocol.NodeBody{}, err
		}
		text = string(data)
	}
	return protocol.NodeBody{Message: &protocol.Message{
		Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: text}},
	}}, nil
}
