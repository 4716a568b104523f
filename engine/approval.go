package engine

import (
	"slices"

	"lashd/engine/approval"
	"lashd/engine/authority"
	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// judge decides what calls may do, of a turn or of a client. What it is made of does not change while calls are made, but for ceiling, which
// changes only where the goroutine of the turn waits.
type judge struct {
	config         *protocol.Config // of the turn
	cwd            string
	sessionCeiling *protocol.Ceiling // that the session is held to; nil: none
	ceiling        *protocol.Ceiling // of those whose inputs the turn has taken in; nil: none
	plugins        *plugin.Session
	base           *tool.Registry // the tools of the plugins, whatever a client puts in their place
}

// policies are all that a call is judged by.
func (j *judge) policies() []approval.Policy {
	all := []approval.Policy{{Policy: protocol.Policy{Approval: j.config.Approval, Cwd: j.cwd}, Own: true}}
	for _, c := range []struct {
		*protocol.Ceiling
		late bool
	}{{j.sessionCeiling, false}, {j.ceiling, true}} {
		if c.Ceiling == nil {
			continue
		}
		for _, p := range c.Policies {
			all = append(all, approval.Policy{Policy: p, Late: c.late})
		}
	}
	return all
}

// ceilings are what calls are held to beside the configuration.
func (j *judge) ceilings() protocol.Ceiling {
	if c := authority.MeetAll(j.sessionCeiling, j.ceiling); c != nil {
		return *c
	}
	return protocol.Ceiling{}
}

// callToJudge is a call as it is judged: by the policies of all who have asked for it. Paths are looked at now, and not again.
func (j *judge) callToJudge(s *toolCall) *approval.Request {
	c := j.ceilings()
	q := &approval.Request{
		Call: approval.SubjectsOf(j.cwd, s.entry, s.Args), Kind: j.kindOf(s.entry), Policies: j.policies(), Ceiling: c,
		Outside: !insideRoots(&c, j.cwd), Escapes: (c.Sandboxed || s.sandboxed) && !j.staysSandboxed(s.entry),
	}
	if there := j.replaced(s.entry); there != nil {
		q.Instead = approval.SubjectsOf(j.cwd, there, s.Args)
	}
	if s.approval != nil {
		q.Wanted = &approval.Wanted{Default: s.approval.Default}
	}
	return q
}

// judgeUnasked is the verdict where nobody has answered anything before.
func (j *judge) judgeUnasked(s *toolCall) approval.Verdict {
	s.judged = j.callToJudge(s)
	return s.judged.Judge(approval.Answers{})
}

// kindOf is the kind that a tool is judged by. A plugin says of its own tools what they are: a person has approved it, and runs it. What a
// client, or an MCP server of a client, says of its tools makes nothing laxer.
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

// replaced is the tool of a plugin, or of an MCP server, whose name or id a client has taken; nil: none.
func (j *judge) replaced(e *tool.Entry) *tool.Entry {
	if there := j.base.Same(e.Manifest); there != nil && there.Source() != e.Source() {
		return there
	}
	return nil
}

// staysSandboxed tells whether a tool starts no program outside a sandbox: one that ships with lashd and only reads, or one of a plugin that is
// in a sandbox itself.
func (j *judge) staysSandboxed(e *tool.Entry) bool {
	return j.plugins.Sandboxed(e.Source()) || j.plugins.Ships(e.Source()) && approval.Reads(e.Manifest.Kind)
}

// mayRunCells tells why no code cells may run; empty: they may. Nobody is asked about cells, so an asker with another driver, which
// runs none of them, causes none.
func (j *judge) mayRunCells() string {
	c := j.ceilings()
	other := slices.ContainsFunc(c.Policies, func(p protocol.Policy) bool { return p.Driver != j.config.Driver })
	switch {
	case other:
		return "The code was not run: the session that requested this work does not run code."
	case c.NoTools:
		return "The code was not run: the session that requested this work has no tools."
	case c.ReadOnly:
		return "The code was not run: this work was requested in plan mode. Put the step into the plan; only a person can end plan mode."
	case c.Sandboxed && !j.plugins.ExecutorSandboxed():
		return "The code was not run: a sandboxed plugin requested this work, and code runs outside the sandbox."
	case !insideRoots(&c, j.cwd):
		return "The code was not run: this workspace is outside the workspace of the session that requested the work."
	}
	return ""
}
