package rlm

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/engine/turn"
	"lashd/internal/strictjson"
	"lashd/rpc/protocol"
)

// optionsVersion is the schema version of the turn options of this driver.
const optionsVersion = 1

// options are the turn options of this driver, and the options of the plugin in a session's settings. Absent members
// mean the default.
type options struct {
	Termination   *termination `json:"termination,omitempty"`
	Answer        answerFormat `json:"answer,omitempty"`
	ContextAdvice int64        `json:"contextAdvice,omitempty"` // tokens; 0: defaultAdvice
	Executor      string       `json:"executor,omitempty"`      // id of the plugin that runs the code; "": that of the driver
}

// termination says how a turn ends.
type termination struct {
	Kind   terminationKind `json:"kind"`
	Schema json.RawMessage `json:"schema,omitempty"` // JSON Schema of the value of finish; absent: any value
}

type terminationKind string

const (
	natural terminationKind = "natural" // a reply without a cell ends the turn; finish ends it, too
	byValue terminationKind = "finish"  // only finish in a cell ends the turn
)

// answerFormat is the form of the text of a final value.
type answerFormat string

const (
	answerMarkdown answerFormat = "markdown" // for people
	answerValue    answerFormat = "value"    // for the parent session: the value as JSON
)

// optionsOf returns the options of a turn. A turn with a schema must end with a value that matches it.
func optionsOf(v turn.View) (options, error) {
	o, err := decodeOptions(v.Options)
	if err == nil && len(v.Schema) > 0 {
		o.Termination = &termination{Kind: byValue, Schema: v.Schema}
	}
	return o, err
}

// decodeOptions reads turn options; nil are the defaults.
func decodeOptions(o *protocol.TurnOptions) (options, error) {
	if o == nil {
		return options{}, nil
	}
	if o.SchemaVersion != optionsVersion {
		return options{}, &plugin.OptionsError{Version: o.SchemaVersion, Want: optionsVersion}
	}
	return parseOptions(o.Payload)
}

// parseOptions reads options strictly: a misspelt member must not turn a required value into an optional one.
func parseOptions(payload json.RawMessage) (o options, err error) {
	if len(payload) > 0 && string(payload) != "null" {
		if err := strictjson.Decode(payload, &o); err != nil {
			return options{}, &plugin.OptionsError{Err: err}
		}
	}
	if err := o.check(); err != nil {
		return options{}, &plugin.OptionsError{Err: err}
	}
	return o, nil
}

// check returns an error for values that the driver cannot work with.
func (o options) check() error {
	switch o.Answer {
	case "", answerMarkdown, answerValue:
	default:
		return fmt.Errorf("answer is %q, but must be markdown or value", o.Answer)
	}
	if o.ContextAdvice < 0 {
		return fmt.Errorf("contextAdvice is %d, but must be a number of tokens", o.ContextAdvice)
	}
	t := o.Termination
	if t == nil {
		return nil
	}
	switch {
	case t.Kind != natural && t.Kind != byValue:
		return fmt.Errorf("termination.kind is %q, but must be natural or finish", t.Kind)
	case t.Kind == natural && len(t.Schema) > 0:
		return fmt.Errorf("termination.schema needs termination.kind finish")
	}
	if err := tool.CheckSchema(t.Schema); err != nil {
		return fmt.Errorf("termination.schema: %w", err)
	}
	return nil
}

// mustFinish reports whether only finish in a cell ends the turn.
func (o options) mustFinish() bool { return o.Termination != nil && o.Termination.Kind == byValue }

// schema returns the schema of the value of finish; nil: any value.
func (o options) schema() json.RawMessage {
	if o.Termination == nil {
		return nil
	}
	return o.Termination.Schema
}

// schemaText is the sentence for the model about the schema; empty without one.
func (o options) schemaText() string {
	if len(o.schema()) == 0 {
		return ""
	}
	return " The value must match this JSON Schema: " + string(o.schema())
}

// validate implements plugin.ProtocolSession.ValidateTurn.
func validate(_ context.Context, o *protocol.TurnOptions) error {
	_, err := decodeOptions(o)
	return err
}

// materialize implements plugin.ProtocolSession.Materialize. It starts from the recorded options, lays those of the
// session's settings over them, and sets the form of the answer: Markdown for a session of a person, the value for a
// session of another one.
func materialize(_ context.Context, m *plugin.Materialization) (*plugin.Materialized, error) {
	own, err := parseOptions(m.Options)
	if err != nil {
		return nil, err
	}
	recorded, err := decodeOptions(m.Recorded)
	if err != nil {
		return nil, err
	}
	format := answerValue
	if m.Root {
		format = answerMarkdown
	}
	if own.Termination == nil {
		own.Termination = recorded.Termination
	}
	own.Answer, own.ContextAdvice = cmp.Or(own.Answer, format), cmp.Or(own.ContextAdvice, recorded.ContextAdvice)
	payload, err := json.Marshal(own)
	return &plugin.Materialized{Options: protocol.TurnOptions{SchemaVersion: optionsVersion, Payload: payload}, AllFrames: true}, err
}
