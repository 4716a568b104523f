package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"lashd/rpc/protocol"
)

// outcomeError is how a turn's end is told: nil if it came to its answer without a denial.
func outcomeError(r *protocol.TurnReport) error {
	if r.Outcome == nil {
		return &exitError{exitFailed, errors.New("the turn has not ended")}
	}
	switch {
	case r.State == protocol.TurnCancelled:
		return &exitError{exitCancelled, fmt.Errorf("the turn was cancelled; go on with --session %s", r.SessionID)}
	case r.State != protocol.TurnCompleted:
		return &exitError{exitFailed, endedAs(r.Outcome, r.Issues)}
	}
	for _, call := range r.ToolCalls {
		f := call.Output.Failure
		switch {
		case !denies(f):
		case f.Source == protocol.FromPlugin:
			return &exitError{exitDenied, fmt.Errorf("a plugin has denied a call of %s: %s", call.Name, f.Message)}
		default:
			return &exitError{exitDenied, fmt.Errorf("a call of %s was denied; --allow allows all that would be asked about", call.Name)}
		}
	}
	return nil
}

func endedAs(o *protocol.TurnOutcome, found []protocol.Issue) error {
	return fmt.Errorf("the turn ended as %s: %s", o.Kind, cmp.Or(o.Text, issues(found)))
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
