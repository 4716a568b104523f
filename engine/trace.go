package engine

import (
	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/trace"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// traced describes the session for the trace record of its start.
func (st *state) traced() trace.Session {
	cfg := st.row.Config
	return trace.Session{
		Driver: cfg.Driver, Model: cfg.Model.ID, Provider: cfg.Model.Provider, Head: st.row.Head,
		Kind: string(st.row.Relation.Kind), Turns: len(st.queue.Turns()), Budget: cfg.Budget,
	}
}

// turnTrace writes trace records of a turn or a direct call. With a nil out, tracing is off and
// every method does nothing. It is safe for use by several calls at once, except for methods that
// read the machine.
type turnTrace struct {
	out     *trace.File
	session protocol.SessionID
	turn    protocol.TurnID
	journal *journal // of the turn; nil: a direct call
}

// add writes a record with the turn's current iteration. It reads the machine, so only the turn's
// goroutine may call it.
func (t turnTrace) add(kind trace.Kind, body any) {
	if t.out == nil {
		return
	}
	rec := t.record()
	if t.journal != nil && t.journal.machine != nil {
		rec.Iteration = t.journal.machine.Iteration()
	}
	t.out.Add(kind, rec, body)
}

// record returns the ids that all records of the turn share.
func (t turnTrace) record() trace.Record {
	rec := trace.Record{SessionID: t.session, TurnID: t.turn}
	if t.journal != nil {
		rec.Frame = t.journal.begin.Frame
	}
	return rec
}

// request records a model call: fingerprints of its prompt, split into system text, tools, history
// before the turn (past) and messages of the turn. With them a reader of the trace can see which
// part changed between calls and so missed the provider's cache. The text itself is never recorded.
func (t turnTrace) request(effect turn.Effect, req *provider.Request, past []*protocol.Message) {
	if t.out == nil {
		return
	}
	p := &t.journal.prints
	t.add(trace.PromptBuilt, trace.Prompt{
		System: p.System(req.System), Tools: p.Tools(req.Tools), History: p.History(past), Turn: p.Messages(effect.Model.Messages),
		Bytes: len(req.System), ToolCount: len(req.Tools), Messages: len(req.Messages),
	})
	t.add(trace.ModelStarted, trace.Effect{ID: effect.ID, Kind: effect.Kind})
}

// reply records the end of a model call, with its error if it failed.
func (t turnTrace) reply(effect turn.Effect, answer *turn.ModelReply, failed error) {
	if t.out == nil {
		return
	}
	body := trace.ModelCall{Record: answer.Record, Parts: len(answer.Reply.Parts)}
	kind := trace.ModelCompleted
	if failed != nil {
		kind, body.Error = trace.ModelFailed, failed.Error()
	}
	t.add(kind, body)
}

// call records a step of a tool call. All callers use it, so that calls of models, code and clients
// look alike. Arguments appear only as size and digest. A nil reply means that the call has no
// result yet.
func (t turnTrace) call(kind trace.Kind, s *toolCall, reply *turn.ToolReply) {
	if t.out == nil {
		return
	}
	body := trace.ToolCall{Name: s.Name, Parent: s.Parent, Attempt: s.attempt, ArgBytes: len(s.Args), ArgsHash: protocol.DigestOf(s.Args)}
	if v := s.decided.Verdict; v.Mode != "" {
		body.Verdict, body.Why = v.Mode, &v.Why
	}
	if reply != nil {
		body.Status, body.Bytes, body.Duration = reply.Output.Status, len(reply.Output.Text), reply.DurationMs
		if reply.Output.Failure != nil {
			body.Code = reply.Output.Failure.Code
		}
		if reply.Control != nil {
			body.Control = reply.Control.Kind
		}
	}
	rec := t.record() // not add: several calls run at once, and the machine is not safe for that
	rec.CallID = s.CallID
	t.out.Add(kind, rec, body)
}

// cell records that a code cell begins, if reply is nil, or its result. Source and results appear only as sizes.
func (t turnTrace) cell(c *cell, call *plugin.CodeCall, reply *turn.CellReply) {
	if t.out == nil {
		return
	}
	kind, body := trace.CellStarted, trace.Cell{Language: call.Language, Bytes: len(call.Source), Repeated: c.repeated}
	if reply != nil {
		kind, body.Failed, body.Duration = trace.CellCompleted, reply.Error != "", reply.DurationMs
		body.Calls, body.Changed = len(reply.Calls), len(reply.Changed)
	}
	rec := t.record() // not add: calls of the cell may still write
	rec.CallID = c.outer.CallID
	t.out.Add(kind, rec, body)
}

// diff records that a replayed effect differs from the journaled one.
func (t turnTrace) diff(e *JournalError) {
	t.add(trace.EffectDiff, trace.Diff{Effect: e.Effect, Kind: e.Kind, Diff: e.Diff})
}

// end records the outcome and the usage of a turn that was stored.
func (t turnTrace) end(rep *protocol.TurnReport) {
	if t.out == nil {
		return
	}
	end := trace.TurnEnd{
		State: rep.State, Outcome: rep.Outcome.Kind, Calls: len(rep.Calls), ToolCalls: len(rep.ToolCalls),
		DurationMs: rep.DurationMs, Revision: rep.HeadRevision,
	}
	for _, i := range rep.Issues {
		end.Issues = append(end.Issues, i.Code)
	}
	t.add(trace.TokenUsage, trace.Usage{Turn: rep.Usage, Calls: len(rep.Calls)})
	t.add(trace.TurnCompleted, end)
}
