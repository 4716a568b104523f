package plugin

import (
	"slices"

	"lashd/rpc/protocol"
)

// strength orders decisions over a call from laxest to strictest. A stricter decision always wins.
type strength int

const (
	nothing strength = iota
	allowed
	asking
	denied
	stopped
)

// terminal is a decision over a call, made by one directive.
type terminal struct {
	strength strength
	kind     DirectiveKind
	plugin   string
	output   *protocol.ToolOutput
	approval *Approval
}

// terminal converts a directive to a decision. A directive that decides nothing has the strength nothing.
func (f *fold) terminal(o Owned) terminal {
	t := terminal{kind: o.Kind, plugin: o.Plugin}
	switch o.Kind {
	case AbortTurn:
		out := protocol.Fail(protocol.FailPermission, o.Code, o.Message, protocol.FromPlugin)
		t.strength, t.output = stopped, &out
	case RequireApproval:
		t.strength, t.approval = asking, o.Approval
	case ShortCircuitTool:
		t.strength, t.output = denied, o.Output
		if o.Output.Status == protocol.OutputSuccess {
			t.strength = allowed
		}
	}
	return t
}

// denial returns the decision to deny the call because the directive o is invalid.
func (f *fold) denial(o Owned, err error) terminal {
	out := f.failure(err.Error())
	return terminal{strength: denied, kind: o.Kind, plugin: o.Plugin, output: &out}
}

// failure returns a failed output with the code of the seam.
func (f *fold) failure(message string) protocol.ToolOutput {
	return protocol.Fail(protocol.FailInternal, f.code, message, protocol.FromPlugin)
}

// offer replaces the decision so far with t if t is stronger, and reports whether it did. The loser is recorded as a
// conflict.
func (f *fold) offer(t terminal) (accepted bool) {
	was := f.ended
	accepted = was.yields(t, f.seam)
	if accepted {
		if t.strength == stopped && was.strength >= denied {
			t.output = was.output // keep the reason that was given first
		}
		f.ended = t
		f.conflict(t, was, t.plugin)
	} else {
		f.conflict(was, t, t.plugin)
	}
	return accepted
}

// yields reports whether t replaces was. Between equals the first one stays; before a call the plugin with the smaller
// id wins, so that the order of plugins does not matter.
func (was terminal) yields(t terminal, seam Hook) bool {
	if was.strength != t.strength {
		return t.strength > was.strength
	}
	return seam == HookBeforeTool && t.plugin < was.plugin
}

// conflict records that the directive of one plugin lost against that of another.
func (f *fold) conflict(winner, loser terminal, later string) {
	if loser.strength == nothing || winner.plugin == loser.plugin {
		return
	}
	c := Conflict{f.seam, later, winner.plugin, winner.kind, loser.plugin, loser.kind}
	if !slices.Contains(f.verdict.Conflicts, c) {
		f.verdict.Conflicts = append(f.verdict.Conflicts, c)
	}
}
