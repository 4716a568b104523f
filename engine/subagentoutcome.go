package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"lashd/rpc/protocol"
)

// Codes of an outcome.
const (
	outputMismatch = "outputMismatch"
	submittedError = "submittedError"
)

// outcome is what a turn of the child means for the task.
func (d *subagentRun) outcome(r *protocol.TurnReport) *protocol.TaskOutcome {
	o := r.Outcome
	failed := &protocol.TaskOutcome{Kind: protocol.TaskError, Code: string(o.Kind), Value: o.Value, Message: cmp.Or(o.Text, issuesOf(r))}
	switch {
	case o.Kind == protocol.OutcomeCancelled:
		by := cmp.Or(o.Cancel.Origin, o.Cancel.RequestID)
		return &protocol.TaskOutcome{Kind: protocol.TaskStopped, By: by, Message: o.Cancel.Reason}
	case o.Kind == protocol.OutcomeSubmittedError, o.Kind == protocol.OutcomeToolError:
		failed.Code = submittedError
		return failed
	case !o.Finished():
		return failed
	}
	value, err := d.value(o)
	if err != nil {
		return &protocol.TaskOutcome{Kind: protocol.TaskError, Code: outputMismatch, Message: err.Error(), Value: value}
	}
	return &protocol.TaskOutcome{Kind: protocol.TaskDone, Value: value}
}

// value is what the turn came to: what it says, or else its text, as JSON if that has to fit a schema.
func (d *subagentRun) value(o *protocol.TurnOutcome) (json.RawMessage, error) {
	text := strings.TrimSpace(o.Text)
	value := o.Value
	if len(value) == 0 {
		value = json.RawMessage(encode(text))
	}
	if len(d.Output) == 0 {
		return value, nil
	}
	if len(o.Value) == 0 && json.Valid([]byte(unfenced(text))) {
		value = json.RawMessage(unfenced(text))
	}
	return value, checkPayload("", d.Output, value)
}

// unfenced is text without the fence that models like to put around JSON.
func unfenced(text string) string {
	if _, body, ok := strings.Cut(text, "\n"); ok && strings.HasPrefix(text, "```") && strings.HasSuffix(body, "```") {
		return strings.TrimSpace(strings.TrimSuffix(body, "```"))
	}
	return text
}

func issuesOf(r *protocol.TurnReport) string {
	texts := make([]string, len(r.Issues))
	for i, issue := range r.Issues {
		texts[i] = issue.Message
	}
	return strings.Join(texts, "; ")
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
