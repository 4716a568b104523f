package turn

import (
	"encoding/json"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// Driver decides how a turn talks to its model. Its methods are pure functions of their arguments: what a driver
// wants to remember it hands back with SetState.
type Driver interface {
	// Prepare begins an iteration; it usually starts a model call.
	Prepare(View) []Action
	// Reply takes a model reply that ended well.
	Reply(View, provider.Reply) []Action
	// Results takes the results of a batch, in the order of its calls.
	Results(View, []ToolReply) []Action
	// Cell takes what a code cell came to.
	Cell(View, CellReply) []Action
	// Limit is asked once the turn budget is used up: end the turn, or ask for one GraceFinal iteration. A turn for
	// which it does neither ends.
	Limit(View) []Action
	// Visible is prose as a person should see it.
	Visible(prose string) string
	// HandlesOutputLimit tells whether Reply wants replies that the output limit cut.
	HandlesOutputLimit() bool
}

// View is what a driver may look at. It does not change it.
type View struct {
	Iteration int
	Grace     bool
	Messages  []protocol.Message // of this turn
	Tools     []protocol.ToolManifest
	State     json.RawMessage       // what the driver remembered; nil at first
	Options   *protocol.TurnOptions // of the turn; nil: none
}

// Action is one thing that a driver wants done; the functions below make them. Actions are done in order, and those
// after a Finish are ignored. After them the machine must have something to wait for, and only one: two, or none, fail
// the turn, and so does a second model call in one iteration, which Advance makes the next iteration's first.
type Action struct{ do func(*Machine) }

// StartModel makes a model call with the turn's messages.
func StartModel(choice provider.ToolChoice, output provider.OutputSpec) Action {
	return Action{func(m *Machine) { m.startModel(choice, output) }}
}

// StartTools runs a batch of tool calls.
func StartTools(calls []protocol.ToolCall) Action {
	return Action{func(m *Machine) { m.startTools(calls) }}
}

// StartCode runs a code cell.
func StartCode(cell Cell) Action {
	return Action{func(m *Machine) { m.startCode(cell) }}
}

// Append adds a message to the conversation.
func Append(msg protocol.Message) Action {
	return Action{func(m *Machine) { m.appendMessage(msg, "") }}
}

// CheckpointThen passes a checkpoint. If nothing is delivered there, the turn ends with finish, or, if that is nil,
// goes on with the next iteration.
func CheckpointThen(kind protocol.Boundary, finish *protocol.TurnOutcome) Action {
	return Action{func(m *Machine) { m.checkpoint(kind, finish) }}
}

// Advance goes on with the next iteration, if the budget allows.
func Advance() Action { return Action{(*Machine).advance} }

// GraceFinal goes on with one last iteration beyond the budget. A second one ends the turn.
func GraceFinal() Action { return Action{(*Machine).graceFinal} }

// Finish ends the turn.
func Finish(outcome protocol.TurnOutcome) Action {
	return Action{func(m *Machine) { m.finish(outcome) }}
}

// SetState replaces what the driver remembers.
func SetState(state json.RawMessage) Action {
	return Action{func(m *Machine) { m.setState(state) }}
}

// Emit tells observers something of the driver's own.
func Emit(news protocol.PluginNode) Action {
	return Action{func(m *Machine) { m.tell(news) }}
}

// Report records an issue of the turn.
func Report(issue protocol.Issue) Action {
	return Action{func(m *Machine) { m.issue(issue) }}
}

// NoProgress counts an attempt that came to nothing, such as a reply that must be repaired.
func NoProgress() Action { return Action{func(m *Machine) { m.progress(false) }} }

func (m *Machine) apply(actions []Action) {
	for _, a := range actions {
		if m.Finished() {
			return
		}
		a.do(m)
	}
}

// FirstControl is the control of the first successful call in the order of the calls; the others are ignored, and so
// is what is no control.
func FirstControl(results []ToolReply) (int, *protocol.ToolControl) {
	for i, r := range results {
		if r.Control != nil && r.Output.Status == protocol.OutputSuccess && meant(r.Control) {
			return i, r.Control
		}
	}
	return 0, nil
}

func meant(c *protocol.ToolControl) bool {
	switch c.Kind {
	case protocol.ControlFinish, protocol.ControlFail:
		return true
	case protocol.ControlSwitchFrame:
		return c.Frame.Meant()
	}
	return false
}
