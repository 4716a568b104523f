package protocol

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Limits of what one call may want.
const (
	MaxIntents      = 32
	MaxIntentsAKind = 16
	MaxIntentBytes  = 64 << 10 // of all of them, as JSON
)

// ToolIntent is something that a call wants to be done once it has succeeded. Exactly one of its fields is set.
type ToolIntent struct {
	StartTask     *StartTaskIntent   `json:"startTask,omitempty"`
	SignalTask    *SignalTaskIntent  `json:"signalTask,omitempty"`
	CancelTask    *CancelTaskIntent  `json:"cancelTask,omitempty"`
	EmitTaskEvent *TaskEventIntent   `json:"emitTaskEvent,omitempty"`
	EmitTrigger   *EmitTriggerIntent `json:"emitTrigger,omitempty"`
}

// StartTaskIntent starts a task of the session.
type StartTaskIntent struct {
	TaskID TaskID   `json:"taskId,omitempty"` // absent: one that follows from the call
	Spec   TaskSpec `json:"spec"`
}

// SignalTaskIntent sends a live task something that it declares to take.
type SignalTaskIntent struct {
	TaskID  TaskID          `json:"taskId"`
	Name    string          `json:"name"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// CancelTaskIntent asks a live task to end.
type CancelTaskIntent struct {
	TaskID TaskID `json:"taskId"`
	Reason string `json:"reason,omitempty"`
}

// TaskEventIntent has a live task tell of an event that it declares.
type TaskEventIntent struct {
	TaskID  TaskID          `json:"taskId"`
	Name    string          `json:"name"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// EmitTriggerIntent says that something happened that triggers may wait for.
type EmitTriggerIntent struct {
	Type      string          `json:"type"`
	SourceKey string          `json:"sourceKey,omitempty"`
	Payload   json.RawMessage `json:"payload,omitempty"`
}

// IntentKind names what an intent wants, as its field does.
type IntentKind string

const (
	IntentStart  IntentKind = "startTask"
	IntentSignal IntentKind = "signalTask"
	IntentCancel IntentKind = "cancelTask"
	IntentTell   IntentKind = "emitTaskEvent"
	IntentEmit   IntentKind = "emitTrigger"
)

// Kind is what the intent wants; empty: not exactly one thing.
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

// IntentRefusal is why an intent was not carried out.
type IntentRefusal string

const (
	IntentMalformed   IntentRefusal = "malformed"     // it is not exactly one thing, or no JSON
	IntentTooMany     IntentRefusal = "tooMany"       // the call wants more than 32
	IntentTooManyKind IntentRefusal = "tooManyOfKind" // more than 16 of one kind
	IntentTooLarge    IntentRefusal = "tooLarge"      // together more than 64 KiB
	IntentCallFailed  IntentRefusal = "callFailed"    // only a call that succeeds may want something
	IntentNoTurn      IntentRefusal = "noTurn"        // the call is not one of the model's own
	IntentTurnOver    IntentRefusal = "turnCancelled" // the turn was cancelled before
	IntentInvalid     IntentRefusal = "invalid"       // it makes no sense: message
	IntentConflict    IntentRefusal = "conflict"      // a task of that id was started to do something else
	IntentNoTask      IntentRefusal = "taskNotFound"  // the session has no such task
	IntentTaskEnded   IntentRefusal = "taskEnded"     // the task is over
	IntentNotAtWork   IntentRefusal = "taskNotAtWork" // nobody here works at the task
)

// IntentOutcome is what became of an intent. What was not refused is durable with the result of its call.
type IntentOutcome struct {
	ID      string        `json:"intentId"` // follows from session, turn, call and place
	Kind    IntentKind    `json:"kind,omitempty"`
	TaskID  TaskID        `json:"taskId,omitempty"`
	Refused IntentRefusal `json:"refused,omitempty"` // absent: it was not
	Message string        `json:"message,omitempty"`
}

// Noted is text as the model reads it together with what became of the intents.
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
