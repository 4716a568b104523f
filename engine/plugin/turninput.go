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

// TurnInput is what a plugin takes with a turn, beside what the model is told.
type TurnInput struct {
	Schema   json.RawMessage // none: any JSON
	Required bool            // without it no turn is accepted
}

// turnInput is one that a plugin has declared.
type turnInput struct {
	TurnInput
	schema func(json.RawMessage) error
}

// turnInputs are those that plugins have declared, by plugin.
type turnInputs struct{ inputs map[string]turnInput }

var errInputTwice = errors.New("declares its turn input twice")

// Input declares what the plugin takes with a turn. It is checked before a turn is accepted, and stored with it.
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

// InputError is an input for a plugin that a turn cannot begin with, or the lack of one.
type InputError struct{ Plugin, Reason string }

func (e *InputError) Error() string { return fmt.Sprintf("input of plugin %s %s", e.Plugin, e.Reason) }

// CheckInputs refuses what a turn cannot begin with: the first InputError in the order of plugin ids.
func (t *turnInputs) CheckInputs(in protocol.PluginInputs) error {
	for _, id := range slices.Sorted(maps.Keys(in)) {
		if _, ok := t.inputs[id]; !ok {
			return &InputError{id, "is for a plugin that takes none"}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(t.inputs)) {
		if err := t.inputs[id].check(id, in[id]); err != nil {
			return err
		}
	}
	return nil
}

func (t turnInput) check(id string, value json.RawMessage) error {
	if len(value) == 0 {
		if t.Required {
			return &InputError{id, "is required"}
		}
		return nil
	}
	if err := t.schema(value); err != nil {
		return &InputError{id, "does not fit: " + err.Error()}
	}
	return nil
}

// TurnInputs are what plugins take with a turn, in the order of their ids.
func (t *turnInputs) TurnInputs() []protocol.TurnInputInfo {
	list := []protocol.TurnInputInfo{}
	for _, id := range slices.Sorted(maps.Keys(t.inputs)) {
		list = append(list, protocol.TurnInputInfo{Plugin: id, Schema: own(t.inputs[id].Schema), Required: t.inputs[id].Required})
	}
	return list
}
