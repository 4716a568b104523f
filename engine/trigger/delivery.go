package trigger

import (
	"fmt"
	"strings"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

// maxPayloadText is the number of bytes of a payload that the model sees.
const maxPayloadText = 16 << 10

// DeliveryText returns the text of a delivery as the model sees it: the trigger's text, then the
// event with its payload.
func DeliveryText(r persistence.Reserved) string {
	payload := string(r.Occurrence.Payload)
	if len(payload) > maxPayloadText {
		payload = strings.ToValidUTF8(payload[:maxPayloadText], "") + "... (truncated)"
	}
	return fmt.Sprintf("%s\n\n%s: %s", r.Action.Text, r.Occurrence.Type, payload)
}

// NewSession returns the params that create the session of a trigger.
func NewSession(s *protocol.TriggerSession, id protocol.SessionID, title string) *protocol.SessionNewParams {
	return &protocol.SessionNewParams{
		SessionID: id, Cwd: s.Cwd, Title: title, Driver: s.Driver, Model: s.Model, Effort: s.Effort, Prompt: s.Prompt, Budget: s.Budget, Approval: s.Approval, Options: s.Options,
	}
}
