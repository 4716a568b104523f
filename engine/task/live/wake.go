package live

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"lashd/engine/queue"
	"lashd/rpc/protocol"
)

// wakeOf is what an event of a task says to its session. It wakes that for no more than who started the task may have done there.
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

// WakeSource is the source of the wake that the newest event of a task causes.
func WakeSource(t *protocol.Task) string {
	return fmt.Sprintf("task:%s:event:%d:wake", t.ID, t.Ordinal)
}

// describe is what the model is told of an event, if the task does not say it itself.
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
	return fmt.Sprintf("%s is over: %s", about, outcome)
}

// maxResultTold is how many bytes of a result a wake tells. All of it is in the task.
const maxResultTold = 8 << 10

// describeSubagent is what the model is told of the end of a subagent.
func describeSubagent(t protocol.Task, o *protocol.TaskOutcome) string {
	about := cmp.Or(t.Spec.Subagent.Agent, string(t.ID))
	said := string(o.Value)
	var text string
	if len(o.Value) > 0 && json.Unmarshal(o.Value, &text) == nil {
		said = text
	}
	if said = cmp.Or(o.Message, said); len(said) > maxResultTold {
		said = strings.ToValidUTF8(said[:maxResultTold], "") + "\n[cut off: wait_agents gives all of it]"
	}
	return strings.TrimSpace(fmt.Sprintf("The subagent %s has ended (%s). %s", about, cmp.Or(o.Code, string(o.Kind)), said))
}
