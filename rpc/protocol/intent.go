package protocol

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Limits on the intents of one tool call.
const (
	MaxIntents      = 32
	MaxIntentsAKind = 16
	MaxIntentBytes  = 64 << 10 // all intents together, as JSON
)

// ToolIntent is an effect that lashd carries out after a tool call succeeds. Exactly one field is set.
type ToolIntent struct {
	StartTask     *StartTaskIntent   `json:"startTask,omitempty"`
	SignalTask    *SignalTaskIntent  `json:"signalTask,omitempty"`
	CancelTask    *CancelTaskIntent  `json:"cancelTask,omitempty"`
	EmitTaskEvent *TaskEventIntent   `json:"emitTaskEvent,omitempty"`
	EmitTrigger   *EmitTriggerIntent `json:"emitTrigger,omitempty"`
}

// StartTaskIntent starts a task of the session.
type StartTaskIntent struct {
	TaskID TaskID   `json:"taskId,omitempty"` // absent: derived from the call
	Spec   TaskSpec `json:"spec"`
}

// SignalTaskIntent sends a live task a signal that the task declares.
type SignalTaskIntent struct {
	TaskID  TaskID          `json:"taskId"`
	Name    string          `json:"name"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// CancelTaskIntent requests that a live task ends.
type CancelTaskIntent struct {
	TaskID TaskID `json:"taskId"`
	Reason string `json:"reason,omitempty"`
}

// TaskEventIntent adds an event that a live task declares to that task.
type TaskEventIntent struct {
	TaskID  TaskID          `json:"taskId"`
	Name    string          `json:"name"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// EmitTriggerIntent emits an event for triggers.
type EmitTriggerIntent struct {
	Type      string          `json:"type"`
	SourceKey string          `json:"sourceKey,omitempty"`
	Payload   json.RawMessage `json:"payload,omitempty"`
}

// IntentKind is the name of the field that an intent sets.
type IntentKind string

const (
	IntentStart  IntentKind = "startTask"
	IntentSignal IntentKind = "signalTask"
	IntentCancel IntentKind = "cancelTask"
	IntentTell   IntentKind = "emitTaskEvent"
	IntentEmit   IntentKind = "emitTrigger"
)

// Kind returns the kind of the intent, or "" unless exactly one field is set.
func (i *ToolIntent) Kind() (kind IntentKind) {
	for _, k := range []struct {
		set  bool
		kind IntentKind
	}{
		{i.StartTask != nil, IntentStart}, {i.SignalTask != nil, IntentSignal}, {i.CancelTask != nil, IntentCancel},
		{i.EmitTaskEvent != nil, IntentTell}, {i.EmitTrigger != nil, IntentEmit},
	} {
		switch {
		case k.set && kind != "":
			return ""
		case k.set:
			kind = k.kind
		}
	}
	return kind
}

// IntentRefusal says why lashd did not carry out an intent.
type IntentRefusal string

const (
	IntentMalformed   IntentRefusal = "malformed"     // not exactly one field is set, or the JSON is invalid
	IntentTooMany     IntentRefusal = "tooMany"       // more than 32 intents in one call
	IntentTooManyKind IntentRefusal = "tooManyOfKind" // more than 16 intents of one kind in one call
	IntentTooLarge    IntentRefusal = "tooLarge"      // the call's intents are larger than 64 KiB together
	IntentCallFailed  IntentRefusal = "callFailed"    // the tool call failed
	IntentNoTurn      IntentRefusal = "noTurn"        // the model did not make the call itself
	IntentTurnOver    IntentRefusal = "turnCancelled" // the turn was cancelled first
	IntentInvalid     IntentRefusal = "invalid"       // the intent is invalid; see message
	IntentConflict    IntentRefusal = "conflict"      // a task with that id exists and has a different spec
	IntentNoTask      IntentRefusal = "taskNotFound"  // the session has no such task
	IntentTaskEnded   IntentRefusal = "taskEnded"     // the task has ended
	IntentNotAtWork   IntentRefusal = "taskNotAtWork" // this daemon does not run the task
)

// IntentOutcome says whether lashd carried out an intent. An accepted intent is committed together with the result of its call.
type IntentOutcome struct {
	ID      string        `json:"intentId"` // derived from session, turn, call and position
	Kind    IntentKind    `json:"kind,omitempty"`
	TaskID  TaskID        `json:"taskId,omitempty"`
	Refused IntentRefusal `json:"refused,omitempty"` // absent: accepted
	Message string        `json:"message,omitempty"`
}

// Noted returns text followed by one line for each intent's outcome, as the model reads it.
func (o *ToolOutput) Noted(text string) string {
	if len(o.Intents) == 0 {
		return text
	}
	lines := []string{text}
	for _, i := range o.Intents {
		line := fmt.Sprintf("[%s", i.Kind)
		if i.TaskID != "" {
			line += " " + string(i.TaskID)
		}
		if i.Refused != "" {
			line += ", refused as " + string(i.Refused)
		}
		if i.Message != "" {
			line += ": " + i.Message
		}
		lines = append(lines, line+"]")
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
