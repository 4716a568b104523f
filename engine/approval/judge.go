// Package approval decides whether a tool call may run, is denied, or needs the answer of a person. It compares the call with
// the policies of everyone who caused it, and with a person's standing answers. Its only I/O is resolving paths, and asking once
// whether this machine can confine commands.
package approval

import (
	"cmp"
	"fmt"
	"os"
	"slices"

	"lashd/engine/authority"
	"lashd/engine/sandbox"
	"lashd/engine/tool"
	"lashd/internal/pathresolve"
	"lashd/rpc/protocol"
)

// Verdict is the decision over a call.
type Verdict struct {
	Mode protocol.ApprovalMode // allow, ask or deny
	// Beyond means that the session's own configuration does not require this: the policy of an asker or a sandbox
	// does.
	Beyond   bool
	Planning bool                  // denied because the call was caused in plan mode and may change something
	Once     bool                  // an answer applies to this call only
	Silence  protocol.ApprovalMode // the decision if no client answers before the deadline
	Why      protocol.ApprovalReason
}

// Policy is one of the policies that a call must satisfy.
type Policy struct {
	protocol.Policy
	Own bool // the session's own configuration
	// Late marks the policy of an asker that came after the session was created. Answers given in the session do not
	// apply to it.
	Late bool
	// Rules are the compiled rules of the policy and of the levels above it. Nil: those of its approval configuration.
	Rules []*Rules
}

// Request is a tool call to judge. Build one per call; it is not modified.
type Request struct {
	Call *Subjects // what the call acts on
	// Instead describes the call for the tool that this tool replaces: rules about that one apply as well. Nil: it
	// replaces none.
	Instead  *Subjects
	Kind     protocol.ToolKind // the kind to judge the tool by
	Policies []Policy          // all that apply; the first is the session's own
	Ceiling  protocol.Ceiling  // of everyone who caused the call
	Outside  bool              // the workspace is outside of the ceiling's roots
	Escapes  bool              // a sandboxed caller would run the tool outside of its sandbox
	Programs tool.Programs     // where the programs run that the call starts
	Ships    bool              // the tool ships with lashd
	Wanted   *Wanted           // a plugin requires an approval; nil: none does
}

// Sandbox returns the mode in which the programs of the call belong: the narrowest of all policies. It is empty if they run outside a
// sandbox. A tool that does not know of sandboxes gets the mode, too, because lashd may run its program, such as an MCP server.
func (q *Request) Sandbox() protocol.SandboxMode {
	mode := protocol.SandboxFullAccess
	for _, p := range q.Policies {
		mode = authority.Narrowest(p.Approval.Sandbox, mode)
	}
	if q.Programs == tool.ProgramsOutside || !mode.Confines() {
		return ""
	}
	return mode
}

// Wanted is the approval that a plugin requires. With an empty Default the session's own policy decides what silence
// means.
type Wanted struct {
	Default    protocol.ApprovalMode
	By, Reason string // the plugin, and why it requires that
}

// Protected reports whether the call may change a protected file: one that can run code later. See protectedPaths.
func (q *Request) Protected() bool {
	return q.Call.changesProtected(q.Kind) || q.Instead != nil && q.Instead.changesProtected(q.Instead.kind())
}

// Judge decides over the call. The ceiling comes first and only denies. Then the strictest policy counts, lessened by
// standing answers. A sandboxed caller and a plugin's wish can turn allow into ask. A call that may change a protected
// file is always asked about, and the answer applies once.
func (q *Request) Judge(answers Answers) Verdict {
	if q.Outside || !authority.Calls(q.Ceiling, q.Call.entry.Manifest.Name) {
		return Verdict{Mode: protocol.ApproveDeny, Beyond: true, Why: because(protocol.DecidedByCeiling, "The session or plugin that requested this work may not make the call.")}
	}
	if q.Ceiling.ReadOnly && !Reads(q.Kind) {
		return Verdict{Mode: protocol.ApproveDeny, Planning: true, Why: because(protocol.DecidedByCeiling, "Plan mode allows only tools that read, search or think.")}
	}
	v := Verdict{Mode: protocol.ApproveAllow, Silence: protocol.ApproveAllow}
	for _, p := range q.Policies {
		v = v.and(p, q.says(p, answers.to(p)))
	}
	if q.Escapes {
		v = v.and(Policy{Late: true}, finding{mode: protocol.ApproveAsk, why: because(protocol.DecidedByCeiling, "A plugin in a sandbox requested this work, and the tool would run outside that sandbox.")})
	}
	if q.Wanted != nil {
		v = q.wanted(v, answers)
	}
	if q.Protected() && v.Mode != protocol.ApproveDeny {
		v.Mode, v.Once, v.Silence = protocol.ApproveAsk, true, protocol.ApproveDeny
		v.Why = because(protocol.DecidedByProtected, "It changes a file that can run code later, so lashd asks each time.")
	}
	return v
}

// pluginAsks is why a call is asked about that only a plugin wants to be approved. The plugin's own reason replaces it.
const pluginAsks = "A plugin requires an approval."

// wanted adds a plugin's wish to a verdict. A standing answer about the same call satisfies it.
func (q *Request) wanted(v Verdict, answers Answers) Verdict {
	own := q.Policies[0]
	asked := Policy{Policy: protocol.Policy{Cwd: own.Cwd}}
	if v.Mode == protocol.ApproveAllow && !slices.ContainsFunc(answers.to(asked), q.Call.answer().covers) {
		v.Mode, v.Silence = protocol.ApproveAsk, cmp.Or(q.Wanted.Default, own.Approval.Default)
		v.Why = because(protocol.DecidedByPlugin, pluginAsks)
	} else if q.Wanted.Default != "" && q.Wanted.Default != protocol.ApproveAllow {
		v.Silence = protocol.ApproveDeny
	}
	return v
}

// and combines the verdict with the finding of one more policy. The reason is that of the strictest; among equals, of the first.
func (v Verdict) and(p Policy, found finding) Verdict {
	if v.Why.By == "" || authority.Strictest(v.Mode, found.mode) != v.Mode {
		v.Why = found.reason()
	}
	if found.mode == protocol.ApproveAllow {
		return v
	}
	v.Beyond = !p.Own && (v.Beyond || found.mode != v.Mode)
	v.Mode = authority.Strictest(v.Mode, found.mode)
	v.Once = v.Once || p.Late
	if p.Approval.Default != protocol.ApproveAllow {
		v.Silence = protocol.ApproveDeny
	}
	return v
}

// says returns what one policy demands. If the tool replaces another one, the stricter result for either
// counts.
func (q *Request) says(p Policy, answers []Answer) finding {
	j := judging{Policy: p, answers: answers, standing: standingRules(cmp.Or(p.Cwd, q.Call.cwd), answers), ships: q.Ships, inside: q.Programs == tool.ProgramsInside}
	own := j.of(q.Call, q.Kind, q.unasked(p))
	if q.leaves(p) {
		if left := j.leaving(q.Call, q.Kind); own.rule == nil && own.mode == left.mode {
			own = left // it says more
		} else {
			own = stricter(own, left)
		}
	}
	own = q.unconfined(p, own)
	if q.Instead == nil {
		return own
	}
	return stricter(stricter(own, j.of(q.Instead, q.Instead.kind(), false)), j.unclear(q.Call, q.Instead))
}

// unconfined gives a question about a command the reason that this machine has no sandbox, if it would not be asked otherwise.
func (q *Request) unconfined(p Policy, f finding) finding {
	if q.Programs != tool.ProgramsOutside || f.rule != nil || f.mode != protocol.ApproveAsk || p.Approval.Mode == protocol.ApproveAsk {
		return f
	}
	if err := sandbox.Available(); err != nil {
		f.why.Text = fmt.Sprintf("lashd asks about each command, because this machine cannot confine them (%v).", err)
	}
	return f
}

// leaves reports whether the call goes beyond the sandbox mode of a policy, so that a person has to allow it even where the
// approval mode allows everything.
func (q *Request) leaves(p Policy) bool {
	switch p.Approval.Sandbox {
	case protocol.SandboxWorkspace:
		return q.Programs == tool.ProgramsOutside
	case protocol.SandboxReadOnly:
		return !Reads(q.Kind) && q.Programs != tool.ProgramsInside
	}
	return false
}

// unasked reports whether the sandbox mode of a policy makes a question needless: the programs of the call run in the sandbox, or
// one of lashd's own tools changes files of the workspace and nothing else.
func (q *Request) unasked(p Policy) bool {
	switch mode := p.Approval.Sandbox; {
	case !mode.Confines():
		return false
	case q.Kind == protocol.ToolKindExecute:
		return q.Programs == tool.ProgramsInside
	default:
		return mode == protocol.SandboxWorkspace && q.Ships && q.Kind == protocol.ToolKindEdit && q.Call.inside(p.Cwd) && !holdsHome(p.Cwd)
	}
}

// holdsHome reports whether a workspace is or contains the home directory. It has more start-up files and programs than protectedPaths lists.
func holdsHome(workspace string) bool {
	home, err := os.UserHomeDir()
	return err == nil && pathresolve.Of("", home).MayBeIn(pathresolve.Of("", workspace))
}

// Reads reports whether tools of a kind only read.
func Reads(kind protocol.ToolKind) bool {
	return kind == protocol.ToolKindRead || kind == protocol.ToolKindSearch || kind == protocol.ToolKindThink
}
