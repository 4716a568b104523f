package engine

import (
	"lashd/engine/approval"
	"lashd/engine/authority"
	"lashd/engine/plugin"
	"lashd/engine/rulebook"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// judge decides whether tool calls of a turn, or direct calls of a client, may run. It brings
// together everything that limits a call: the session's settings and ceiling, the ceilings of the
// sessions and plugins that caused the work, and the registry that shows which tool a client
// replaced.
//
// All fields stay fixed while calls run. Only ceiling changes: a checkpoint can add the ceilings of
// new inputs, and then the goroutine of the turn waits.
type judge struct {
	// config is the configuration of the turn, or of the session for a direct call.
	config *protocol.Config
	// cwd is the session's workspace. Relative paths in arguments start here.
	cwd string
	// sessionCeiling is the ceiling that the session itself has; nil if it has none.
	sessionCeiling *protocol.Ceiling
	// ceiling combines the ceilings of the inputs that the turn has read; nil if they have none.
	ceiling *protocol.Ceiling
	// rules has the rules of the user and of workspaces.
	rules   *rulebook.Book
	plugins *plugin.Session
	// base has the tools of the plugins, including those that a client replaced.
	base *tool.Registry
}

// ceilings returns the strictest combination of both ceilings; the zero value limits nothing.
func (j *judge) ceilings() protocol.Ceiling {
	if c := authority.MeetAll(j.sessionCeiling, j.ceiling); c != nil {
		return *c
	}
	return protocol.Ceiling{}
}

// callToJudge builds the approval request for a call. It resolves the paths in the arguments once,
// so that the verdict, the prompt and the stored places agree even if a link changes later.
func (j *judge) callToJudge(s *toolCall) *approval.Request {
	c := j.ceilings()
	q := &approval.Request{
		Call: approval.SubjectsOf(j.cwd, s.entry, s.Args), Kind: j.kindOf(s.entry), Policies: j.rules.Policies(protocol.Policy{Approval: j.config.Approval, Cwd: j.cwd}, j.sessionCeiling, j.ceiling), Ceiling: c,
		Outside: !insideRoots(&c, j.cwd), Escapes: (c.Sandboxed || s.sandboxed) && !j.staysSandboxed(s.entry),
		Ships: j.plugins.Ships(s.entry.Source()),
	}
	q.Programs = s.entry.ProgramsJudged(s.Args, q.Kind, q.Ships, !j.plugins.Has(s.entry.Source()))
	if there := j.replaced(s.entry); there != nil {
		q.Instead, q.Programs = approval.SubjectsOf(j.cwd, there, s.Args), there.ProgramsOfClient(s.Args)
	}
	if s.approval != nil {
		q.Wanted = &approval.Wanted{Default: s.approval.Default, By: s.approval.by, Reason: s.approval.Reason}
	}
	return q
}

// judgeUnasked returns the verdict on a call without any standing answers, and stores the request
// in the call.
func (j *judge) judgeUnasked(s *toolCall) approval.Verdict {
	s.judged = j.callToJudge(s)
	return s.judged.Judge(approval.Answers{})
}

// kindOf returns the kind that a tool is judged as. lashd believes what a plugin declares about its
// own tools, since a person trusted that plugin. It does not believe a client, or an MCP server of
// a client, when that would make approval less strict: such a tool counts as "other", unless it
// replaces a plugin's tool, which then gives the kind.
func (j *judge) kindOf(e *tool.Entry) protocol.ToolKind {
	kind := e.Manifest.Kind
	if !approval.Reads(kind) || j.plugins.Has(e.Source()) {
		return kind
	}
	if there := j.replaced(e); there != nil && j.plugins.Has(there.Source()) {
		return there.Manifest.Kind
	}
	return protocol.ToolKindOther
}

// replaced returns the tool of a plugin or MCP server whose name or id a client's tool took over;
// nil if there is none.
func (j *judge) replaced(e *tool.Entry) *tool.Entry {
	if there := j.base.Same(e.Manifest); there != nil && there.Source() != e.Source() {
		return there
	}
	return nil
}

// staysSandboxed reports whether a tool starts no program outside a sandbox. That holds for the
// tools of a sandboxed plugin, and for built-in tools that only read.
func (j *judge) staysSandboxed(e *tool.Entry) bool {
	return j.plugins.Sandboxed(e.Source()) || j.plugins.Ships(e.Source()) && approval.Reads(e.Manifest.Kind)
}

// mayRunCells returns why no code cells may run, as a sentence for the model; empty if they may. Code that can only
// call tools may always run, because each call is judged.
func (j *judge) mayRunCells() string {
	if c := j.ceilings(); !j.plugins.ExecutorConfined() {
		return authority.CellRefusal(c, j.config.Driver, j.plugins.ExecutorSandboxed(), insideRoots(&c, j.cwd))
	}
	return ""
}
