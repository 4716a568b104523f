// Package approval decides whether a tool call may run, is denied, or needs the answer of a person. It compares the call with the policies
// of everyone who caused it, and with the standing answers of a person. It looks where paths lead, and does no other I/O.
package approval

import (
	"cmp"
	"slices"

	"lashd/engine/authority"
	"lashd/rpc/protocol"
)

// Verdict is what becomes of a call.
type Verdict struct {
	Mode     protocol.ApprovalMode
	Beyond   bool                  // the session's own configuration does not say so: an asker's policy, or a sandbox, does
	Planning bool                  // denied as something asks for it in plan mode
	Once     bool                  // an answer holds for this call only
	Silence  protocol.ApprovalMode // what no answer in time means
}

// Policy is a policy that a call is judged by, and what may answer its questions.
type Policy struct {
	protocol.Policy
	Own  bool // it is the session's own configuration
	Late bool // of an asker that came later than the session: answers given in the session are not for that one
}

// Request is a call that is to be judged.
type Request struct {
	Call     *Subjects         // what the call is about
	Instead  *Subjects         // what it is about for the tool whose place its tool has taken; nil: there is none
	Kind     protocol.ToolKind // that its tool is judged as
	Policies []Policy          // all that count; the first is the session's own
	Ceiling  protocol.Ceiling  // of those who asked for the call
	Outside  bool              // the workspace is outside the roots of the ceiling
	Escapes  bool              // who makes the call is in a sandbox, and its tool would run outside of one
	Wanted   *Wanted           // a plugin wants a person to be asked; nil: none does
}

// Wanted is what a plugin says of the question that it wants. An empty default leaves it to the session's own policy.
type Wanted struct{ Default protocol.ApprovalMode }

// Protected tells whether the call may change a file that can run code later.
func (q *Request) Protected() bool {
	return q.Call.changesProtected(q.Kind) || q.Instead != nil && q.Instead.changesProtected(q.Instead.kind())
}

// Judge judges the call where a person has given answers: by the strictest of all policies, then by what an asker in a sandbox may cause,
// then by what a plugin wants to be asked.
func (q *Request) Judge(answers Answers) Verdict {
	if q.Outside || !authority.Calls(q.Ceiling, q.Call.entry.Manifest.Name) {
		return Verdict{Mode: protocol.ApproveDeny, Beyond: true}
	}
	if q.Ceiling.ReadOnly && !Reads(q.Kind) {
		return Verdict{Mode: protocol.ApproveDeny, Planning: true}
	}
	v := Verdict{Mode: protocol.ApproveAllow, Silence: protocol.ApproveAllow}
	for _, p := range q.Policies {
		v = v.and(p, q.says(p, answers.to(p)))
	}
	if q.Escapes {
		v = v.and(Policy{Late: true}, protocol.ApproveAsk)
	}
	if q.Wanted != nil {
		v = q.wanted(v, answers)
	}
	if q.Protected() && v.Mode != protocol.ApproveDeny {
		v.Mode, v.Once, v.Silence = protocol.ApproveAsk, true, protocol.ApproveDeny
	}
	return v
}

// wanted is a verdict with what a plugin wants to be asked, unless a person has answered that before.
func (q *Request) wanted(v Verdict, answers Answers) Verdict {
	own := q.Policies[0]
	asked := Policy{Policy: protocol.Policy{Cwd: own.Cwd}}
	if v.Mode == protocol.ApproveAllow && !slices.Contains(answers.to(asked), q.Call.answer()) {
		v.Mode, v.Silence = protocol.ApproveAsk, cmp.Or(q.Wanted.Default, own.Approval.Default)
	} else if q.Wanted.Default != "" && q.Wanted.Default != protocol.ApproveAllow {
		v.Silence = protocol.ApproveDeny
	}
	return v
}

// and is a verdict with what one more policy says.
func (v Verdict) and(p Policy, says protocol.ApprovalMode) Verdict {
	if says == protocol.ApproveAllow {
		return v
	}
	v.Beyond = !p.Own && (v.Beyond || says != v.Mode)
	v.Mode = authority.Strictest(v.Mode, says)
	v.Once = v.Once || p.Late
	if p.Approval.Default != protocol.ApproveAllow {
		v.Silence = protocol.ApproveDeny
	}
	return v
}

// says is what one policy says of the call. A tool that has the place of another one is judged as that one, too.
func (q *Request) says(p Policy, answers []Answer) protocol.ApprovalMode {
	j := judging{policy: p.Policy, answers: answers}
	own := j.of(q.Call, q.Kind)
	if q.Instead == nil {
		return own
	}
	return authority.Strictest(own, j.of(q.Instead, q.Instead.kind()), j.unclear(q.Call, q.Instead))
}

// Reads tells whether tools of a kind only read.
func Reads(kind protocol.ToolKind) bool {
	return kind == protocol.ToolKindRead || kind == protocol.ToolKindSearch || kind == protocol.ToolKindThink
}
