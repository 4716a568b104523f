package plugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"lashd/internal/strictjson"
	"lashd/rpc/protocol"
)

// OptionsError means that options do not have the shape, or the version, that their plugin reads.
type OptionsError struct {
	Version, Want int // of turn options; 0: it is not about that
	Err           error
}

func (e *OptionsError) Error() string {
	if e.Want != 0 {
		return fmt.Sprintf("the turn options are of version %d, and %d is needed", e.Version, e.Want)
	}
	return "the options cannot be read: " + e.Err.Error()
}

func (e *OptionsError) Unwrap() error { return e.Err }

// DecodeOptions reads a plugin's options of the session; nil: there are none.
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

// DecodeTurnOptions reads turn options of a version; nil: there are none.
func DecodeTurnOptions[T any](o *protocol.TurnOptions, version int) (*T, error) {
	if o == nil {
		return nil, nil
	}
	if o.SchemaVersion != version {
		return nil, &OptionsError{Version: o.SchemaVersion, Want: version}
	}
	return DecodeOptions[T](o.Payload)
}

// MergeTurnOptions puts the options of a turn over those of its session. Of two objects the members of the turn's count,
// and those that it lacks are the session's; anything else of a turn counts as it is. Both are of one version.
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
