// Package standard is the protocol plugin that lets a model call tools natively: the reply's calls are run, their
// results go back in one message, and a reply without calls is the answer.
package standard

import (
	"strings"

	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// ID is the plugin's id, and the name of its driver in a session's configuration.
const ID = "standard"

// Factory builds the standard driver.
type Factory struct{}

// ID implements plugin.Factory.
func (Factory) ID() string { return ID }

// Describe implements plugin.DescribedDriver.
func (Factory) Describe() (title, about string) {
	return "Tool calls", "The model calls one tool or several at once, and reads each result."
}

// Build implements plugin.Factory.
func (Factory) Build(plugin.BuildContext) (plugin.Plugin, error) { return instance{}, nil }

type instance struct{}

func (instance) Register(r *plugin.Registrar) error {
	r.Protocol().Driver(Driver{})
	return nil
}

// Driver implements plugin.Driver.
type Driver struct{}

// Preamble tells the model how to work in this protocol.
func (Driver) Preamble(in plugin.PreambleInput) string {
	if len(in.Tools) == 0 {
		return ""
	}
	return "Call tools to look and to act; several calls in one reply run at the same time. " +
		"A reply without tool calls ends the turn and is shown to the person."
}

// Prepare implements turn.Driver.
func (Driver) Prepare(v turn.View) []turn.Action {
	choice := provider.ToolsAuto
	if len(v.Tools) == 0 || v.Grace {
		choice = provider.ToolsNone
	}
	return []turn.Action{turn.StartModel(choice, provider.OutputSpec{})}
}

// Reply implements turn.Driver.
func (d Driver) Reply(v turn.View, reply provider.Reply) []turn.Action {
	msg := reply.Message()
	if calls := msg.Calls(); len(calls) > 0 {
		return []turn.Action{turn.Append(msg), turn.StartTools(calls)}
	}
	text := msg.Answer()
	if strings.TrimSpace(text) == "" && !afterToolResults(v.Messages) {
		issue := protocol.Issue{Kind: "provider", Code: "empty_response", Message: "the model answered with nothing"}
		return []turn.Action{turn.Report(issue),
			turn.Finish(protocol.TurnOutcome{Kind: protocol.OutcomeProviderError, Text: issue.Message})}
	}
	outcome := &protocol.TurnOutcome{Kind: protocol.OutcomeAssistantMessage, Text: text}
	end := turn.CheckpointThen(protocol.BoundaryBeforeCompletion, outcome)
	if len(msg.Parts) == 0 {
		return []turn.Action{end}
	}
	return []turn.Action{turn.Append(msg), end}
}

func afterToolResults(msgs []protocol.Message) bool {
	if len(msgs) == 0 {
		return false
	}
	parts := msgs[len(msgs)-1].Parts
	return len(parts) > 0 && parts[0].Kind == protocol.PartToolResult
}

// Results implements turn.Driver.
func (Driver) Results(_ turn.View, results []turn.ToolReply) []turn.Action {
	actions := []turn.Action{turn.Append(resultsMessage(results))}
	if i, control := turn.FirstControl(results); control != nil {
		return append(actions, turn.Finish(controlOutcome(control, results[i].Name)))
	}
	return append(actions, turn.CheckpointThen(protocol.BoundaryAfterWork, nil))
}

func resultsMessage(results []turn.ToolReply) protocol.Message {
	msg := protocol.Message{Role: protocol.RoleUser}
	for _, r := range results {
		msg.Parts = append(msg.Parts, protocol.Part{Kind: protocol.PartToolResult, Result: &protocol.ToolResult{
			CallID: r.CallID, Name: r.Name, Output: r.Output, DurationMs: r.DurationMs, Order: r.Order,
		}})
	}
	return msg
}

func controlOutcome(c *protocol.ToolControl, tool string) protocol.TurnOutcome {
	switch c.Kind {
	case protocol.ControlSwitchFrame:
		return protocol.TurnOutcome{Kind: protocol.OutcomeFrameSwitch, Frame: c.Frame}
	case protocol.ControlFail:
		return protocol.TurnOutcome{Kind: protocol.OutcomeToolError, Tool: tool, Value: c.Value}
	default:
		return protocol.TurnOutcome{Kind: protocol.OutcomeToolValue, Tool: tool, Value: c.Value}
	}
}

// Cell implements turn.Driver. This driver never starts a cell.
func (Driver) Cell(turn.View, turn.CellReply) []turn.Action {
	return []turn.Action{turn.Finish(protocol.TurnOutcome{Kind: protocol.OutcomeRuntimeError, Text: "the standard driver runs no code"})}
}

// Limit implements turn.Driver: the person sees why the turn ends.
func (Driver) Limit(turn.View) []turn.Action {
	const text = "The turn was stopped: it has used up its budget of model calls."
	return []turn.Action{
		turn.Append(protocol.Message{Role: protocol.RoleSystem, Parts: []protocol.Part{{Kind: protocol.PartError, Text: text}}}),
		turn.Finish(protocol.TurnOutcome{Kind: protocol.OutcomeMaxTurns, Text: text}),
	}
}

// Visible implements turn.Driver: prose has no protocol syntax here.
func (Driver) Visible(prose string) string { return prose }

// HandlesOutputLimit implements turn.Driver: a cut reply ends the turn as incomplete.
func (Driver) HandlesOutputLimit() bool { return false }
