package approval

import (
	"slices"

	"lashd/engine/commandrule"
	"lashd/rpc/protocol"
)

// Deciding returns the simple commands of a command line because of which lashd asks or denies: those for which the verdict over
// each alone has the same mode, with its reason. There are none if the call is allowed, if it runs no command, or only one, or if
// lashd cannot tell the commands of the line apart.
func (q *Request) Deciding(v Verdict, answers Answers) (all []protocol.DecidingCommand) {
	at := slices.IndexFunc(q.Call.all, func(about parsedSubject) bool { return about.Command != "" })
	if at < 0 || v.Mode == protocol.ApproveAllow {
		return nil
	}
	commands := q.Call.all[at].line.Commands()
	if len(commands) < 2 {
		return nil
	}
	for _, text := range commands {
		alone, call := *q, *q.Call
		call.all = slices.Clone(call.all)
		call.all[at].Command, call.all[at].line = text, commandrule.Parse(text)
		alone.Call = &call
		if got := alone.Judge(answers); got.Mode == v.Mode {
			all = append(all, protocol.DecidingCommand{Command: text, Reason: got.Why})
		}
	}
	return all
}
