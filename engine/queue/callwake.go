package queue

import (
	"fmt"
	"strings"

	"lashd/rpc/protocol"
)

// maxTold limits the output of a client's call that the model reads, in bytes. The end is kept.
const maxTold = 16 << 10

// CallWake returns the wake that tells the model of a call that a client made itself. The model reads it at its next step. A call
// wakes once, even if its request is repeated. It returns nil unless the client asked for it.
func CallWake(asked bool, call protocol.ToolCall, out *protocol.ToolOutput) *Wake {
	if !asked {
		return nil
	}
	text := out.Text
	if len(text) > maxTold {
		text = "[The beginning is omitted.]\n" + strings.ToValidUTF8(text[len(text)-maxTold:], "")
	}
	return &Wake{
		Source: "call:" + string(call.CallID), Delivery: protocol.DeliverEarliest,
		Cause: protocol.TurnCause{
			ID: "call:" + string(call.CallID), Type: "client/call", Origin: call.Name,
			Text: fmt.Sprintf("A person ran this tool with %s. The status is %s. The output:\n%s", call.Args, out.Status, text),
		},
	}
}
