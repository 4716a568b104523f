package turn

import (
	"encoding/json"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// Driver decides the steps of a turn: how it talks to its model. Its methods are pure functions of their arguments, so
// that a turn can be replayed. A driver keeps state between calls with SetState.
type Driver interface {
	// Prepare begins an iteration. It usually starts a model call.
	Prepare(View) []Action
	// Reply handles a model reply that ended normally.
	Reply(View, provider.Reply) []Action
	// Results handles the results of a batch of tool calls, in the order of the calls.
	Results(View, []ToolReply) []Action
	// Cell handles the result of a code cell.
	Cell(View, CellReply) []Action
	// Limit is called when the iteration budget is used up. The driver ends the turn or asks for one GraceFinal
	// iteration; otherwise the machine ends the turn.
	Limit(View) []Action
	// Visible returns prose as a person should see it, without markup of the protocol.
	Visible(prose string) string
	// HandlesOutputLimit reports whether Reply also handles replies that the output limit cut off.
	HandlesOutputLimit() bool
}

// TextSplitter is a Driver whose replies contain code in their text. lashd splits the text while it arrives, so that
// people see prose and code as different items, and stops reading a reply after its code.
type TextSplitter interface {
	// Splitter returns the state for one reply to a model call with ModelCall.Language.
	Splitter(language string) Splitter
}

// Splitter separates the text of one reply. The pieces that it returns depend on the text only, not on where the deltas
// are cut. It may hold text back until it knows to which kind it belongs.
type Splitter interface {
	// Write takes the next delta and returns what is known of the text so far, in order.
	Write(delta string) []Piece
	// Break is called where something else follows, such as reasoning, and at the end of the reply. It returns the text
	// that was held back.
	Break() []Piece
	// Done reports whether the rest of the reply is not needed.
	Done() bool
}

// Piece is consecutive text of one kind.
type Piece struct {
	Kind  protocol.PartKind // PartProse or PartCode
	Text  string            // as it becomes part of the reply
	Shown string            // as people see it, without the tags of code
}

// View is the state of a turn that a driver decides by. It is shared and must not be modified.
type View struct {
	Iteration int                // from 1
	Grace     bool               // this is the extra iteration of GraceFinal
	Messages  []protocol.Message // of this turn
	Tools     []protocol.ToolManifest
	Code      *CodeEnvironment      // nil: the session runs no code
	State     json.RawMessage       // of the driver; nil at first
	Options   *protocol.TurnOptions // of the turn; nil: none
	Schema    json.RawMessage       // of the value that the turn must end with; nil: it ends with text
}

// Action is one step that a driver asks for; the functions below create them. The machine carries them out in order and
// ignores those after a Finish. Afterwards it must wait for exactly one effect: none or two fail the turn. A second
// model call in one iteration fails the turn, too; use Advance first.
type Action struct{ do func(*Machine) }

// StartModel makes a model call with the messages of the turn. The result arrives in Reply.
func StartModel(choice provider.ToolChoice, output provider.OutputSpec) Action {
	return Action{func(m *Machine) { m.startModel(choice, output) }}
}

// StartCoding makes a model call without tools, whose reply may contain a code cell of the language. The messages of
// tail come at the end of the prompt and are not stored. The result arrives in Reply.
func StartCoding(language string, tail ...protocol.Message) Action {
	return Action{func(m *Machine) { m.startCoding(language, tail) }}
}

// StartTools runs a batch of tool calls. The results arrive in Results.
func StartTools(calls []protocol.ToolCall) Action {
	return Action{func(m *Machine) { m.startTools(calls) }}
}

// StartCode runs a code cell. The result arrives in Cell.
func StartCode(cell Cell) Action {
	return Action{func(m *Machine) { m.startCode(cell) }}
}

// Append adds a message to the conversation.
func Append(msg protocol.Message) Action {
	return Action{func(m *Machine) { m.appendMessage(msg, "") }}
}

// CheckpointThen passes a checkpoint. If nothing is delivered there, the turn ends with finish; if finish is nil, it
// continues with the next iteration.
func CheckpointThen(kind protocol.Boundary, finish *protocol.TurnOutcome) Action {
	return Action{func(m *Machine) { m.checkpoint(kind, finish) }}
}

// Advance continues with the next iteration, or calls Limit if the budget is used up.
func Advance() Action { return Action{(*Machine).advance} }

// GraceFinal continues with one last iteration beyond the budget. A second one ends the turn.
func GraceFinal() Action { return Action{(*Machine).graceFinal} }

// Finish ends the turn. Calls without a result get one.
func Finish(outcome protocol.TurnOutcome) Action {
	return Action{func(m *Machine) { m.finish(outcome) }}
}

// SetState replaces the driver's state.
func SetState(state json.RawMessage) Action {
	return Action{func(m *Machine) { m.setState(state) }}
}

// Emit sends an event of the driver to observers.
func Emit(news protocol.PluginNode) Action {
	return Action{func(m *Machine) { m.tell(news) }}
}

// Report records an issue of the turn. The turn continues.
func Report(issue protocol.Issue) Action {
	return Action{func(m *Machine) { m.issue(issue) }}
}

// NoProgress counts an unsuccessful attempt, such as a reply that must be repaired. Too many in a row end the turn.
func NoProgress() Action { return Action{func(m *Machine) { m.progress(false) }} }

// apply carries out actions until the turn is finished.
func (m *Machine) apply(actions []Action) {
	for _, a := range actions {
		if m.Finished() {
			return
		}
		a.do(m)
	}
}

// FirstControl returns the control of the first successful call, with the index of its result. Later controls and
// unknown ones are ignored. Without any it returns nil.
func FirstControl(results []ToolReply) (int, *protocol.ToolControl) {
	for i, r := range results {
		if r.Control != nil && r.Output.Status == protocol.OutputSuccess && validControl(r.Control) {
			return i, r.Control
		}
	}
	return 0, nil
}

// validControl reports whether a control has a known kind and is complete.
func validControl(c *protocol.ToolControl) bool {
	switch c.Kind {
	case protocol.ControlFinish, protocol.ControlFail:
		return true
	case protocol.ControlSwitchFrame:
		return c.Frame.Meant()
	}
	return false
}
