package engine

import (
	"cmp"
	"encoding/json"
	"strings"

	"lashd/engine/param"
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
	return value, param.CheckPayload("", d.Output, value)
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
