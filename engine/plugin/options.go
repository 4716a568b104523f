package plugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"lashd/internal/strictjson"
	"lashd/rpc/protocol"
)

// OptionsError means that a plugin cannot read its options: they have another shape or another schema version.
type OptionsError struct {
	// Version and Want are set if the schema version of turn options differs; both are 0 otherwise.
	Version, Want int
	Err           error
}

func (e *OptionsError) Error() string {
	if e.Want != 0 {
		return fmt.Sprintf("the turn options have schema version %d, but the plugin reads version %d", e.Version, e.Want)
	}
	return "invalid options: " + e.Err.Error()
}

func (e *OptionsError) Unwrap() error { return e.Err }

// DecodeOptions decodes a plugin's options of the session. It returns nil without any, and an OptionsError if they do
// not fit T.
func DecodeOptions[T any](options json.RawMessage) (*T, error) {
	if len(options) == 0 || bytes.Equal(options, []byte("null")) {
		return nil, nil
	}
	v := new(T)
	if err := json.Unmarshal(options, v); err != nil {
		return nil, &OptionsError{Err: errors.New(strictjson.Reason(err))}
	}
	return v, nil
}

// DecodeTurnOptions decodes turn options of the given schema version. It returns nil without any, and an OptionsError
// for another version or shape.
func DecodeTurnOptions[T any](o *protocol.TurnOptions, version int) (*T, error) {
	if o == nil {
		return nil, nil
	}
	if o.SchemaVersion != version {
		return nil, &OptionsError{Version: o.SchemaVersion, Want: version}
	}
	return DecodeOptions[T](o.Payload)
}

// MergeTurnOptions merges the options of a turn over those of its session. If both are objects, members of the turn
// override members of the session. Otherwise the turn's options replace the session's. Both must have the same schema
// version.
func MergeTurnOptions(session, turn *protocol.TurnOptions) (*protocol.TurnOptions, error) {
	switch {
	case turn == nil:
		return session, nil
	case session == nil:
		return turn, nil
	case session.SchemaVersion != turn.SchemaVersion:
		return nil, &OptionsError{Version: turn.SchemaVersion, Want: session.SchemaVersion}
	}
	var merged map[string]json.RawMessage
	if json.Unmarshal(session.Payload, &merged) != nil || json.Unmarshal(turn.Payload, &merged) != nil {
		return turn, nil
	}
	payload, err := json.Marshal(merged)
	return &protocol.TurnOptions{SchemaVersion: turn.SchemaVersion, Payload: payload}, err
}
