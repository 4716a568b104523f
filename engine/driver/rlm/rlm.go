// Package rlm is the protocol plugin that lets a model work by writing code. A reply may contain one code cell, which an
// executor runs; what the code printed goes back to the model as the next message. Tools are functions in the code.
//
// History has each reply as the model should write it: prose, then the cell with its tags. So the model always sees
// examples of the right form.
package rlm

import (
	"encoding/json"
	"slices"

	"lashd/engine/plugin"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// ID is the plugin's id, and the name of its driver in a session's configuration.
const ID = "rlm"

// Factory builds the driver.
type Factory struct {
	// Executor builds plugins that register the code executor of sessions whose options name no other. nil: another
	// plugin registers it.
	Executor plugin.Factory
}

// ID implements plugin.Factory.
func (Factory) ID() string { return ID }

// Describe implements plugin.DescribedDriver.
func (Factory) Describe() (title, about string) {
	return "Code cells", "The model writes small programs that call the tools, and reads what they print."
}

// Build implements plugin.Factory.
func (f Factory) Build(c plugin.BuildContext) (plugin.Plugin, error) {
	o, err := parseOptions(c.Options)
	if err != nil || f.Executor == nil || !slices.Contains([]string{"", f.Executor.ID()}, o.Executor) {
		return instance{root: c.Root()}, err
	}
	c.Options = nil // they are the driver's
	x, err := f.Executor.Build(c)
	return instance{c.Root(), x}, err
}

// instance is the plugin of one session.
type instance struct {
	root     bool
	executor plugin.Plugin // registers the code executor; nil: another plugin does
}

// Register implements plugin.Plugin.
func (i instance) Register(r *plugin.Registrar) error {
	r.Protocol().Driver(Driver{Child: !i.root})
	r.Protocol().Session(plugin.ProtocolSession{ValidateTurn: validate, Materialize: materialize})
	if i.executor == nil {
		return nil
	}
	return i.executor.Register(r)
}

// Close implements plugin.Closer.
func (i instance) Close() error {
	if c, ok := i.executor.(plugin.Closer); ok {
		return c.Close()
	}
	return nil
}

// Driver implements plugin.Driver and turn.TextSplitter.
type Driver struct {
	Child bool // the session has a parent session, to which it can report an error
}

// state is what the driver remembers within a turn.
type state struct {
	Repaired string `json:"repaired,omitempty"` // fingerprint of the last reply that had to be repaired
}

// Prepare implements turn.Driver.
func (d Driver) Prepare(v turn.View) []turn.Action {
	if v.Code == nil {
		return failed("no_code_executor", "The driver "+ID+" needs a plugin that runs code, and this session has none. "+
			"Install a code executor, or create a session with the driver standard.")
	}
	o, err := optionsOf(v)
	if err != nil {
		return failed("invalid_turn_options", err.Error())
	}
	return []turn.Action{turn.StartCoding(v.Code.Language, tail(v, o)...)}
}

// failed ends the turn because the session cannot work with this driver.
func failed(code, message string) []turn.Action {
	return []turn.Action{
		turn.Report(protocol.Issue{Kind: "protocol", Code: code, Message: message}),
		turn.Finish(protocol.TurnOutcome{Kind: protocol.OutcomeRuntimeError, Text: message}),
	}
}

// Results implements turn.Driver. This driver never starts tool calls.
func (Driver) Results(turn.View, []turn.ToolReply) []turn.Action {
	return failed("unexpected_tool_results", "the driver "+ID+" calls no tools itself")
}

// Limit implements turn.Driver: the model gets one more reply, for its answer.
func (Driver) Limit(turn.View) []turn.Action { return []turn.Action{turn.GraceFinal()} }

// HandlesOutputLimit implements turn.Driver: a cut reply is repaired.
func (Driver) HandlesOutputLimit() bool { return true }

// Splitter implements turn.TextSplitter.
func (Driver) Splitter(language string) turn.Splitter { return newSplitter(language) }

// Visible implements turn.Driver. Replies of this driver have their code in parts of its own; this removes cells from
// other text.
func (Driver) Visible(prose string) string { return withoutCells(prose) }

// remember returns the action that stores the fingerprint of a reply that had to be repaired.
func remember(fingerprint string) turn.Action {
	text, _ := json.Marshal(state{Repaired: fingerprint}) // it is text: this cannot fail
	return turn.SetState(text)
}

// repairedBefore reports whether the reply is the one that was repaired last in this turn.
func repairedBefore(v turn.View, fingerprint string) bool {
	var s state
	return json.Unmarshal(v.State, &s) == nil && s.Repaired == fingerprint
}
