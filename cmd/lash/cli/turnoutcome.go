package cli

import (
	"errors"
	"fmt"
	"strings"

	"lashd/cmd/internal/console"
	"lashd/cmd/lash/chat"
	"lashd/rpc/protocol"
)

// outcomeError returns nil if a turn finished and no call was denied, and else the
// error and the exit code that lash run reports. Denied calls are looked for only
// in a turn that finished.
func outcomeError(r *protocol.TurnReport) error {
	if r.Outcome == nil {
		return console.Exit(console.ExitFailed, errors.New("the turn is still running"))
	}
	switch {
	case r.State == protocol.TurnCancelled:
		return console.Exit(console.ExitCancelled, fmt.Errorf("the turn was cancelled; to continue: lash run --session %s", shortID(r.SessionID)))
	case r.State != protocol.TurnCompleted:
		return console.Exit(console.ExitFailed, endedAs(r.Outcome, r.Issues))
	}
	for _, call := range r.ToolCalls {
		f := call.Output.Failure
		switch {
		case !denies(f):
		case f.Source == protocol.FromPlugin:
			return console.Exit(console.ExitDenied, fmt.Errorf("a plugin denied a call of the tool %s: %s", call.Name, f.Message))
		default:
			return console.Exit(console.ExitDenied, fmt.Errorf("a call of the tool %s was denied%s; lash audit lists it, and a rule can allow such calls: lash rules add --help", call.Name, whyDenied(f.Message)))
		}
	}
	return nil
}

// whyDenied returns the reason in the message of a denied call, "" if it only says that a person denied it.
func whyDenied(message string) string {
	why := strings.TrimSuffix(strings.TrimPrefix(message, "The call was not allowed: "), ".")
	if why == "the approval request was denied" {
		return ""
	}
	return ": " + strings.TrimPrefix(why, "the approval request was denied, with this reason: ")
}

// endedAs describes a turn that failed. found has further reasons if the outcome
// has no text.
func endedAs(o *protocol.TurnOutcome, found []protocol.Issue) error {
	return errors.New(chat.Failed("the turn failed", o, issues(found)))
}

// denies reports whether a rule, a person or a plugin denied a call. A tool that
// lacks a permission itself, such as for a file, is not a denial.
func denies(f *protocol.ToolFailure) bool {
	return f != nil && (f.Code == "denied" || f.Class == protocol.FailPermission && f.Source != protocol.FromTool)
}

// issues joins the messages of issues.
func issues(all []protocol.Issue) string {
	var texts []string
	for _, issue := range all {
		texts = append(texts, issue.Message)
	}
	return strings.Join(texts, "; ")
}
