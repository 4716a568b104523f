// Package subagent computes the outcome of a subagent's task from the report of the turn that did its work. It has no state.
package subagent

import (
	"cmp"
	"encoding/json"
	"strings"

	"lashd/engine/param"
	"lashd/rpc/protocol"
)

// Codes of task outcomes that clients and plugins can rely on.
const (
	OutputMismatch = "outputMismatch" // the answer does not fit the schema
	submittedError = "submittedError" // the turn reported an error as its result
)

// Outcome maps the outcome of the child's turn to the outcome of the task. A cancelled turn stops
// the task in the name of the client that cancelled it. A turn that failed, or that submitted an
// error, fails the task. A finished turn completes the task, unless its value does not fit the
// output schema (OutputMismatch); no schema accepts everything.
func Outcome(r *protocol.TurnReport, output json.RawMessage) *protocol.TaskOutcome {
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
	value, err := valueOf(o, output)
	if err != nil {
		return &protocol.TaskOutcome{Kind: protocol.TaskError, Code: OutputMismatch, Message: err.Error(), Value: value}
	}
	return &protocol.TaskOutcome{Kind: protocol.TaskDone, Value: value}
}

// valueOf returns the turn's result as JSON: its submitted value, or else its text. With an output
// schema, text that is valid JSON (with or without a code fence) counts as a value. The error is
// not nil if the value does not fit the schema and says how it differs.
func valueOf(o *protocol.TurnOutcome, output json.RawMessage) (json.RawMessage, error) {
	text := strings.TrimSpace(o.Text)
	value := o.Value
	if len(value) == 0 {
		value, _ = json.Marshal(text) // a text can be encoded
	}
	if len(output) == 0 {
		return value, nil
	}
	if len(o.Value) == 0 && json.Valid([]byte(unfenced(text))) {
		value = json.RawMessage(unfenced(text))
	}
	return value, param.CheckPayload("", output, value)
}

// unfenced returns text without a Markdown code fence around it, which models often add to JSON.
func unfenced(text string) string {
	if _, body, ok := strings.Cut(text, "\n"); ok && strings.HasPrefix(text, "```") && strings.HasSuffix(body, "```") {
		return strings.TrimSpace(strings.TrimSuffix(body, "```"))
	}
	return text
}

// issuesOf joins the messages of a report's issues.
func issuesOf(r *protocol.TurnReport) string {
	texts := make([]string, len(r.Issues))
	for i, issue := range r.Issues {
		texts[i] = issue.Message
	}
	return strings.Join(texts, "; ")
}
