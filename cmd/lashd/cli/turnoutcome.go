package cli

import (
	"errors"
	"fmt"
	"strings"

	"lashd/cmd/lashd/chat"
	"lashd/rpc/protocol"
)

// outcomeError is how a turn's end is told: nil if it came to its answer without a denial.
func outcomeError(r *protocol.TurnReport) error {
	if r.Outcome == nil {
		return &exitError{exitFailed, errors.New("the turn is still running")}
	}
	switch {
	case r.State == protocol.TurnCancelled:
		return &exitError{exitCancelled, fmt.Errorf("the turn was cancelled; to continue: lashd run --session %s", r.SessionID)}
	case r.State != protocol.TurnCompleted:
		return &exitError{exitFailed, endedAs(r.Outcome, r.Issues)}
	}
	for _, call := range r.ToolCalls {
		f := call.Output.Failure
		switch {
		case !denies(f):
		case f.Source == protocol.FromPlugin:
			return &exitError{exitDenied, fmt.Errorf("a plugin denied a %s call: %s", call.Name, f.Message)}
		default:
			return &exitError{exitDenied, fmt.Errorf("a %s call was denied; --allow allows every call that needs approval", call.Name)}
		}
	}
	return nil
}

func endedAs(o *protocol.TurnOutcome, found []protocol.Issue) error {
	return errors.New(chat.Failed("the turn failed", o, issues(found)))
}

// denies tells whether a call failed because a rule, a person or a plugin did not allow it. A tool may lack a right of its own.
func denies(f *protocol.ToolFailure) bool {
	return f != nil && (f.Code == "denied" || f.Class == protocol.FailPermission && f.Source != protocol.FromTool)
}

func issues(all []protocol.Issue) string {
	var texts []string
	for _, issue := range all {
		texts = append(texts, issue.Message)
	}
	return strings.Join(texts, "; ")
}
