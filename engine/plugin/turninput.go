package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// TurnInput declares data that a plugin accepts with a turn, in addition to the input for the model.
type TurnInput struct {
	Schema   json.RawMessage // JSON Schema; empty: any JSON
	Required bool            // turns without it are rejected
}

// turnInput is a declared turn input with its compiled schema.
type turnInput struct {
	TurnInput
	schema func(json.RawMessage) error
}

// turnInputs are the declared turn inputs, by plugin id.
type turnInputs struct{ inputs map[string]turnInput }

var errInputTwice = errors.New("declares its turn input twice")

// Input declares the turn input of the plugin. lashd checks it before it accepts a turn, and stores it with the turn.
func (g TurnGroup) Input(in TurnInput) {
	c := g.r.in()
	if _, twice := c.inputs[g.r.owner]; twice {
		g.r.fail(errInputTwice)
		return
	}
	if c.inputs == nil {
		c.inputs = map[string]turnInput{}
	}
	in = own(in)
	c.inputs[g.r.owner] = turnInput{in, tool.Checker(in.Schema)}
}

// InputError means that a turn input is invalid, missing, or for a plugin that accepts none.
type InputError struct{ Plugin, Reason string }

func (e *InputError) Error() string { return fmt.Sprintf("input of plugin %s %s", e.Plugin, e.Reason) }

// CheckInputs checks the turn inputs of a request. It returns the first InputError, in the order of plugin ids.
func (t *turnInputs) CheckInputs(in protocol.PluginInputs) error {
	for _, id := range slices.Sorted(maps.Keys(in)) {
		if _, ok := t.inputs[id]; !ok {
			return &InputError{id, "is not accepted: no plugin with this id declares a turn input"}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(t.inputs)) {
		if err := t.inputs[id].check(id, in[id]); err != nil {
			return err
		}
	}
	return nil
}

// check checks the value for one plugin.
func (t turnInput) check(id string, value json.RawMessage) error {
	if len(value) == 0 {
		if t.Required {
			return &InputError{id, "is required"}
		}
		return nil
	}
	if err := t.schema(value); err != nil {
		return &InputError{id, "does not match its schema: " + err.Error()}
	}
	return nil
}

// TurnInputs lists the declared turn inputs, sorted by plugin id.
func (t *turnInputs) TurnInputs() []protocol.TurnInputInfo {
	list := []protocol.TurnInputInfo{}
	for _, id := range slices.Sorted(maps.Keys(t.inputs)) {
		list = append(list, protocol.TurnInputInfo{Plugin: id, Schema: own(t.inputs[id].Schema), Required: t.inputs[id].Required})
	}
	return list
}
