package engine

import (
	"cmp"
	"context"
	"slices"

	"lashd/engine/authority"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// verdict is what becomes of a call.
type verdict struct {
	mode     protocol.ApprovalMode
	beyond   bool                  // the session's own configuration does not say so: an asker's policy, or a sandbox, does
	planning bool                  // denied as something asks for it in plan mode
	once     bool                  // an answer holds for this call only
	silence  protocol.ApprovalMode // what no answer in time means
}

// weighed is a policy that a call is judged by, and what may answer its questions.
type weighed struct {
	protocol.Policy
	own  bool // it is the session's own configuration
	late bool // of an asker that came later than the session: answers given in the session are not for that one
}

// policies are all that a call is judged by.
func (r *run) policies() []weighed {
	all := []weighed{{Policy: protocol.Policy{Approval: r.begin.Config.Approval, Cwd: r.cwd}, own: true}}
	for _, c := range []struct {
		*protocol.Ceiling
		late bool
	}{{r.about.Authority.Ceiling, false}, {r.ceiling, true}} {
		if c.Ceiling == nil {
			continue
		}
		for _, p := range c.Policies {
			all = append(all, weighed{Policy: p, late: c.late})
		}
	}
	return all
}

// ceilings are what the run is held to beside its configuration.
func (r *run) ceilings() protocol.Ceiling {
	if c := authority.MeetAll(r.about.Authority.Ceiling, r.ceiling); c != nil {
		return *c
	}
	return protocol.Ceiling{}
}

// verdict judges a call: by the strictest of all policies, then by what an asker in a sandbox may cause, then by what a plugin wants to be
// asked. A person's standing answers are read only where they could make a difference.
func (r *run) verdict(s *stage) (verdict, error) {
	v := r.unanswered(s)
	if v.mode != protocol.ApproveAsk || v.once {
		return v, nil
	}
	answers, err := ask(r, func(_ context.Context, st *state) (standings, error) { return st.standings(r.policies()) })
	if err != nil {
		return v, err
	}
	return r.judged(s, answers), nil
}

// unanswered is the verdict where nobody has answered anything before.
func (r *run) unanswered(s *stage) verdict {
	s.about = newSubjects(r.cwd, s.entry, s.call.Args)
	if there := r.replaced(s.entry); there != nil {
		s.about.protected = newSubjects(r.cwd, there, s.call.Args).changesProtected(there.Manifest.Kind)
	}
	s.about.protected = s.about.protected || s.about.changesProtected(r.kindOf(s.entry))
	return r.judged(s, standings{})
}

// judged is the verdict where a person has given answers.
func (r *run) judged(s *stage, answers standings) verdict {
	c := r.ceilings()
	if !authority.Calls(c, s.entry.Manifest.Name) || !rooted(&c, r.cwd) {
		return verdict{mode: protocol.ApproveDeny, beyond: true}
	}
	if c.ReadOnly && !reads(r.kindOf(s.entry)) {
		return verdict{mode: protocol.ApproveDeny, planning: true}
	}
	v := verdict{mode: protocol.ApproveAllow, silence: protocol.ApproveAllow}
	for _, p := range r.policies() {
		v = v.and(p, r.says(p, s, answers.to(p)))
	}
	if (c.Sandboxed || s.sandboxed) && !r.contained(s.entry) {
		v = v.and(weighed{late: true}, protocol.ApproveAsk)
	}
	if v.mode == protocol.ApproveAllow && s.approval != nil && !r.lifted(s, answers) {
		v.mode, v.silence = protocol.ApproveAsk, cmp.Or(s.approval.Default, r.begin.Config.Approval.Default)
	} else if s.approval != nil && s.approval.Default != "" && s.approval.Default != protocol.ApproveAllow {
		v.silence = protocol.ApproveDeny
	}
	if s.about.protected && v.mode != protocol.ApproveDeny {
		v.mode, v.once, v.silence = protocol.ApproveAsk, true, protocol.ApproveDeny
	}
	return v
}

// and is a verdict with what one more policy says.
func (v verdict) and(p weighed, says protocol.ApprovalMode) verdict {
	if says == protocol.ApproveAllow {
		return v
	}
	v.beyond = !p.own && (v.beyond || says != v.mode)
	v.mode = authority.Strictest(v.mode, says)
	v.once = v.once || p.late
	if p.Approval.Default != protocol.ApproveAllow {
		v.silence = protocol.ApproveDeny
	}
	return v
}

// says is what one policy says of a call. A tool that has the place of another one is judged as that one, too.
func (r *run) says(p weighed, s *stage, answers []standing) protocol.ApprovalMode {
	q := judging{policy: p.Policy, answers: answers}
	own := q.of(s.about, r.kindOf(s.entry))
	entry := r.replaced(s.entry)
	if entry == nil {
		return own
	}
	there := newSubjects(r.cwd, entry, s.call.Args)
	return authority.Strictest(own, q.of(there, entry.Manifest.Kind), q.unclear(s.about, there))
}

// lifted tells whether a person has answered before what a plugin wants to be asked.
func (r *run) lifted(s *stage, answers standings) bool {
	return slices.Contains(answers.to(weighed{Policy: protocol.Policy{Cwd: r.cwd}}), s.about.standing())
}

// reads tells whether tools of a kind only read.
func reads(kind protocol.ToolKind) bool {
	return kind == protocol.ToolKindRead || kind == protocol.ToolKindSearch || kind == protocol.ToolKindThink
}

// kindOf is the kind that a tool is judged by. A plugin says of its own tools what they are: a person has approved it, and runs it. What a
// client, or an MCP server of a client, says of its tools makes nothing laxer.
func (r *run) kindOf(e *tool.Entry) protocol.ToolKind {
	kind := e.Manifest.Kind
	if !reads(kind) || r.plugins.Has(e.Source()) {
		return kind
	}
	if there := r.replaced(e); there != nil && r.plugins.Has(there.Source()) {
		return there.Manifest.Kind
	}
	return protocol.ToolKindOther
}

// replaced is the tool of a plugin, or of an MCP server, whose name or id a client has taken; nil: none.
func (r *run) replaced(e *tool.Entry) *tool.Entry {
	if there := r.base.Same(e.Manifest); there != nil && there.Source() != e.Source() {
		return there
	}
	return nil
}

// contained tells whether a tool starts no program outside a sandbox: one that ships with lashd and only reads, or one of a plugin that is
// in a sandbox itself.
func (r *run) contained(e *tool.Entry) bool {
	return r.plugins.Sandboxed(e.Source()) || r.plugins.Ships(e.Source()) && reads(e.Manifest.Kind)
}

// standings are the standing answers of a person that count in a session.
type standings struct {
	session []standing            // given in the session
	always  map[string][]standing // given for a workspace, by its directory
}

// to are the answers that hold for a policy: those given in the session, and those given for the workspace of the policy.
func (a standings) to(p weighed) []standing {
	return append(slices.Clip(a.session), a.always[p.Cwd]...)
}

// standings are the answers that count for the policies.
func (st *state) standings(policies []weighed) (a standings, err error) {
	a = standings{session: st.approved, always: map[string][]standing{}}
	for _, p := range policies {
		if a.always[p.Cwd] != nil {
			continue
		}
		if a.always[p.Cwd], err = st.always(p.Cwd); err != nil {
			return a, err
		}
	}
	return a, nil
}

// mayRunCells tells why the run may not run code cells; empty: it may. Nobody is asked about cells, so an asker with another driver, which
// runs none of them, causes none.
func (r *run) mayRunCells() string {
	c := r.ceilings()
	other := slices.ContainsFunc(c.Policies, func(p protocol.Policy) bool { return p.Driver != r.begin.Config.Driver })
	switch {
	case other:
		return "The session that asked for this runs no code, so this one may not either."
	case c.NoTools:
		return "The session that asked for this has no tools, so no code runs."
	case c.ReadOnly:
		return "This was asked for in plan mode, so no code runs. Put the step into the plan; a person ends plan mode."
	case c.Sandboxed && !r.plugins.ExecutorSandboxed():
		return "A plugin in a sandbox asked for this, and the code would run outside of a sandbox."
	case !rooted(&c, r.cwd):
		return "The workspace is outside that of the session that asked for this."
	}
	return ""
}
