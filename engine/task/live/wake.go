package live

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"lashd/engine/queue"
	"lashd/rpc/protocol"
)

// wakeOf returns the wake that an event causes. Its ceiling is that of the task's creator,
// so the turn may do no more than the creator could.
func (ts *Tasks) wakeOf(t protocol.Task, e protocol.TaskEvent, how *protocol.TaskWake) queue.Wake {
	kind := "task/" + string(t.State)
	if e.Kind == protocol.TaskTold {
		kind = "task/" + e.Name
	}
	return queue.Wake{
		Source: WakeSource(&t), Merge: how.Merge, Delivery: how.Delivery, Ceiling: ts.host.WakeCeiling(&t),
		Cause: protocol.TurnCause{ID: fmt.Sprintf("%s:%d", t.ID, e.Ordinal), Type: kind, Origin: string(t.ID), Text: cmp.Or(how.Text, describe(t, e))},
	}
}

// WakeSource returns the source of the wake for the newest event of a task. A source wakes
// a session once.
func WakeSource(t *protocol.Task) string {
	return fmt.Sprintf("task:%s:event:%d:wake", t.ID, t.Ordinal)
}

// describe returns the text for the model, if the task's spec has none.
func describe(t protocol.Task, e protocol.TaskEvent) string {
	about := cmp.Or(t.Spec.Label, string(t.Spec.Kind))
	if e.Kind == protocol.TaskWasEnded && t.Spec.Subagent != nil {
		return describeSubagent(t, e.Outcome)
	}
	if e.Kind == protocol.TaskTold {
		return about + ": " + string(e.Payload)
	}
	outcome, err := json.Marshal(e.Outcome)
	if err != nil {
		panic("encode our own type: " + err.Error())
	}
	return fmt.Sprintf("%s has ended: %s", about, outcome)
}

// maxWakeResult is the number of bytes of a result in a wake. The task has all of it.
const maxWakeResult = 8 << 10

// describeSubagent returns the text for the model at the end of a subagent, with its
// result.
func describeSubagent(t protocol.Task, o *protocol.TaskOutcome) string {
	about := cmp.Or(t.Spec.Subagent.Agent, string(t.ID))
	result := string(o.Value)
	var text string
	if len(o.Value) > 0 && json.Unmarshal(o.Value, &text) == nil {
		result = text
	}
	if result = cmp.Or(o.Message, result); len(result) > maxWakeResult {
		result = strings.ToValidUTF8(result[:maxWakeResult], "") + "\n[truncated; call wait_agents for the full result]"
	}
	return strings.TrimSpace(fmt.Sprintf("The subagent %s has ended (%s). %s", about, cmp.Or(o.Code, string(o.Kind)), result))
}
