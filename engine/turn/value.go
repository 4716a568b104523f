package turn

import (
	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// MaxRepairs is the number of further model calls that invalid replies may cause in a turn with a schema. Models that miss a
// schema three times rarely find it later.
const MaxRepairs = 2

// codeInvalidValue is the code of the issue that each invalid reply adds to the turn.
const codeInvalidValue = "invalid_value"

// repair handles a reply that is not a value of the turn's schema. The reply stays in the conversation. A message after it names the
// problem, to the model and to people, and the next iteration asks again. After MaxRepairs such messages the turn fails. The
// budget of the turn applies: an iteration beyond it ends the turn as usual.
func (m *Machine) repair(reply *provider.Reply, problem string) {
	m.issue(protocol.Issue{Kind: "provider", Code: codeInvalidValue, Message: "the reply does not match the schema: " + problem})
	if msg := reply.Message(); len(msg.Parts) > 0 {
		m.appendMessage(msg, "")
	}
	if m.s.Repairs == MaxRepairs {
		m.invalidValue(problem)
		return
	}
	m.s.Repairs++
	text := "The reply does not match the JSON Schema: " + problem + ". Reply again, with only the JSON value."
	m.appendMessage(protocol.Message{Role: protocol.RoleEvent, Parts: []protocol.Part{{Kind: protocol.PartText, Text: text}}}, "")
	m.advance()
}

// invalidValue ends a turn whose replies do not match its schema.
func (m *Machine) invalidValue(problem string) {
	m.finish(protocol.TurnOutcome{Kind: protocol.OutcomeInvalidValue, Text: "the model's replies do not match the schema: " + problem})
}

// withValue turns the outcome of a turn with a schema that ends with a reply into one with the reply's value. A driver that ends such a
// turn with a text of its own has no value; the turn then fails. Other outcomes stay as they are.
func (m *Machine) withValue(outcome protocol.TurnOutcome) protocol.TurnOutcome {
	switch {
	case m.s.Schema == nil || outcome.Kind != protocol.OutcomeAssistantMessage:
		return outcome
	case m.s.Value == nil:
		return protocol.TurnOutcome{Kind: protocol.OutcomeInvalidValue, Text: "the turn ended without a value"}
	}
	outcome.Kind, outcome.Value = protocol.OutcomeFinalValue, m.s.Value
	return outcome
}
