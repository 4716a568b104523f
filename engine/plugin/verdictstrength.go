package plugin

import (
	"slices"

	"lashd/rpc/protocol"
)

type strength int

const (
	nothing strength = iota
	allowed
	asking
	denied
	stopped
)

// terminal decides over a call.
type terminal struct {
	strength strength
	kind     DirectiveKind
	plugin   string
	output   *protocol.ToolOutput
	approval *Approval
}

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

func (f *fold) denial(o Owned, err error) terminal {
	out := f.failure(err.Error())
	return terminal{strength: denied, kind: o.Kind, plugin: o.Plugin, output: &out}
}

func (f *fold) failure(message string) protocol.ToolOutput {
	return protocol.Fail(protocol.FailInternal, f.code, message, protocol.FromPlugin)
}

// offer puts t in place of what has been decided if it is stronger, and tells whether it did.
func (f *fold) offer(t terminal) (accepted bool) {
	was := f.ended
	accepted = was.yields(t, f.seam)
	if accepted {
		if t.strength == stopped && was.strength >= denied {
			t.output = was.output // the reason that was given first is the one to tell
		}
		f.ended = t
		f.conflict(t, was, t.plugin)
	} else {
		f.conflict(was, t, t.plugin)
	}
	return accepted
}

// yields tells whether t takes the place of was. Of equals the first one stays, but before a call that of the smaller id.
func (was terminal) yields(t terminal, seam Hook) bool {
	if was.strength != t.strength {
		return t.strength > was.strength
	}
	return seam == HookBeforeTool && t.plugin < was.plugin
}

func (f *fold) conflict(winner, loser terminal, later string) {
	if loser.strength == nothing || winner.plugin == loser.plugin {
		return
	}
	c := Conflict{f.seam, later, winner.plugin, winner.kind, loser.plugin, loser.kind}
	if !slices.Contains(f.verdict.Conflicts, c) {
		f.verdict.Conflicts = append(f.verdict.Conflicts, c)
	}
}
