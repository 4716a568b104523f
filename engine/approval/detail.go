package approval

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// Question returns the decision that asks a person about the call, without ids, times, and the changes of files. A call that must be
// asked about each time offers no lasting choices.
func (q *Request) Question(call protocol.ToolCall, v Verdict) protocol.Decision {
	d := protocol.Decision{
		Kind: protocol.DecisionApproval, ArgsHash: protocol.DigestOf(call.Args), Default: defaultAnswer(v), Varying: q.Call.entry.Terms().Varying,
		Prompt: fmt.Sprintf("Allow the tool %s to run with %s?", call.Name, termtext.Brief(call.Args)), Places: q.Call.Places(), Detail: q.detail(v),
		Choices: []protocol.DecisionChoice{protocol.ChooseAllowOnce, protocol.ChooseAllowSession, protocol.ChooseAllowAlways, protocol.ChooseReject},
	}
	d.Detail.Title = protocol.TitleOf(call)
	if len(d.Varying) > 0 {
		d.Prompt += fmt.Sprintf(" If you allow it for the session or always, later calls may have other values for %s.", strings.Join(d.Varying, " and "))
	}
	if hosts := q.Hosts(); len(hosts) > 0 {
		d.Prompt += fmt.Sprintf(" The command could reach %s.", termtext.Brief(encode(hosts)))
	}
	if w := q.Wanted; w != nil { // in the prompt and in the detail, since a client shows one of them
		asks := fmt.Sprintf(" The plugin %s asks: %s", w.By, w.Reason)
		d.Prompt += asks
		d.Detail.Why.Text = strings.TrimSpace(strings.TrimPrefix(d.Detail.Why.Text, pluginAsks) + asks)
	}
	if q.Protected() {
		d.Prompt += " It changes a file that can run code later, so lashd asks each time."
	}
	if v.Once {
		d.Choices = []protocol.DecisionChoice{protocol.ChooseAllowOnce, protocol.ChooseReject}
	}
	return d
}

// detail shows a person what the call will do. It lacks the changes of files, which only the tool knows.
func (q *Request) detail(v Verdict) *protocol.ApprovalDetail {
	d := &protocol.ApprovalDetail{Command: q.Call.command(), Why: v.Why, Widths: q.Widths(v), Hosts: q.Hosts()}
	if d.Command != nil {
		d.Command.Outside = q.Sandbox() == ""
	}
	return d
}

// command returns the command that the call runs; nil if it runs none. Tools run one command per call.
func (s *Subjects) command() *protocol.CommandDetail {
	for _, about := range s.all {
		if about.Command == "" {
			continue
		}
		dir := cmp.Or(about.Dir, s.cwd)
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(s.cwd, dir)
		}
		if n := len(about.at); n > 0 {
			dir = about.at[n-1]
		}
		return &protocol.CommandDetail{Command: about.Command, Dir: dir}
	}
	return nil
}
