package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"lashd/engine/authority"
	"lashd/engine/param"
	"lashd/engine/task"
	"lashd/engine/task/live"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// intentGate is where what calls want is let through or refused. A refusal is an outcome, which the model and clients are told; an
// error is one of the store.
type intentGate struct {
	batch    *batch
	st       *state
	tasks    *live.Draft
	turnOver bool // the turn is: nothing is let through
	signals  []*protocol.SignalTaskIntent
}

// resolve is the reply of a call with what became of its intents.
func (g *intentGate) resolve(ctx context.Context, s *toolCall) (turn.ToolReply, error) {
	reply := *s.reply
	var outcomes []protocol.IntentOutcome
	for _, in := range s.intents {
		out := in.IntentOutcome
		if out.Refused == "" && g.turnOver {
			out.Refused = protocol.IntentTurnOver
		}
		if out.Refused == "" {
			if err := g.apply(ctx, s, in.Want, &out); err != nil {
				return reply, err
			}
		}
		outcomes = append(outcomes, out)
	}
	setOutcomes(&reply, outcomes)
	return reply, nil
}

func (g *intentGate) apply(ctx context.Context, s *toolCall, want *protocol.ToolIntent, out *protocol.IntentOutcome) error {
	switch out.Kind {
	case protocol.IntentStart:
		return g.start(ctx, s, want.StartTask, out)
	case protocol.IntentSignal:
		out.TaskID = want.SignalTask.TaskID
		t, err := g.live(ctx, out)
		if err == nil && out.Refused == "" {
			g.signal(s, t, want.SignalTask, out)
		}
		return err
	case protocol.IntentCancel:
		out.TaskID = want.CancelTask.TaskID
		t, err := g.live(ctx, out)
		if err == nil && out.Refused == "" {
			g.tasks.Cancel(t, "internal:tool", want.CancelTask.Reason)
		}
		return err
	case protocol.IntentTell:
		out.TaskID = want.EmitTaskEvent.TaskID
		t, err := g.live(ctx, out)
		if err == nil && out.Refused == "" {
			g.addEvent(t, want.EmitTaskEvent, out)
		}
		return err
	}
	return nil // an occurrence is checked already, and emitted after the commit
}

func (g *intentGate) start(ctx context.Context, s *toolCall, want *protocol.StartTaskIntent, out *protocol.IntentOutcome) error {
	out.TaskID = want.TaskID
	if out.TaskID == "" {
		out.TaskID = protocol.TaskID("tsk_" + out.ID[len("int_"):])
	}
	by := g.askerOf(s)
	if err := cmp.Or(g.st.eng.Tasks.check(out.TaskID, &want.Spec), checkTaskCommand(by, &want.Spec)); err != nil {
		refuse(out, err)
		return nil
	}
	known, err := g.exists(ctx, out.TaskID, &want.Spec)
	switch {
	case errors.As(err, new(*TaskConflictError)):
		out.Refused = protocol.IntentConflict
		return nil
	case known || err != nil:
		return err
	}
	origin := protocol.TaskOrigin{SessionID: g.st.id, TurnID: g.batch.caller.turnID(), CallID: s.CallID, Ceiling: by.ceiling}
	if _, err := startTask(g.st.eng, g.tasks, out.TaskID, &want.Spec, origin, nil); err != nil {
		refuse(out, err)
	}
	return nil
}

// askerOf is who asks for what a call wants: its session, and the plugin whose tool it is.
func (g *intentGate) askerOf(s *toolCall) *requester {
	j := g.batch.hooks.judge
	boxed := s.sandboxed || s.entry != nil && j.plugins.Sandboxed(s.entry.Source())
	return &requester{session: g.st.id, ceiling: authority.MeetAll(j.ceiling, authority.Sandboxed(boxed))}
}

// exists tells whether a task was started before, also by this commit.
func (g *intentGate) exists(ctx context.Context, id protocol.TaskID, spec *protocol.TaskSpec) (bool, error) {
	if t, ok := g.tasks.Changed(id); ok {
		if task.Fingerprint(&t.Spec) != task.Fingerprint(spec) {
			return false, &TaskConflictError{id}
		}
		return true, nil
	}
	t, err := g.st.tasks.known(ctx, id, spec)
	return t != nil, err
}

// live is a task of the session as the commit leaves it, unless it is over.
func (g *intentGate) live(ctx context.Context, out *protocol.IntentOutcome) (protocol.Task, error) {
	t, ok := g.tasks.Find(out.TaskID)
	if ok && !t.State.Final() {
		return t, nil
	}
	if ok {
		out.Refused = protocol.IntentTaskEnded
		return t, nil
	}
	ended, err := g.st.eng.store.Task(ctx, g.st.id, out.TaskID)
	switch {
	case isMissing(err):
		out.Refused = protocol.IntentNoTask
		return t, nil
	case err == nil:
		out.Refused = protocol.IntentTaskEnded
	}
	return ended, err
}

func (g *intentGate) signal(s *toolCall, t protocol.Task, want *protocol.SignalTaskIntent, out *protocol.IntentOutcome) {
	_, begins := g.tasks.Changed(t.ID)
	switch err := cmp.Or(checkSignal(&t.Spec, &protocol.TaskSignalParams{Name: want.Name, Payload: want.Payload}), checkTaskCommand(g.askerOf(s), &t.Spec)); {
	case err != nil:
		refuse(out, err)
	case !begins && g.st.eng.workers.of(g.st.id, t.ID) == nil:
		out.Refused = protocol.IntentNotAtWork
	default:
		g.signals = append(g.signals, want)
	}
}

func (g *intentGate) addEvent(t protocol.Task, want *protocol.TaskEventIntent, out *protocol.IntentOutcome) {
	if err := checkTaskEvent(&t.Spec, want.Name, want.Payload); err != nil {
		refuse(out, err)
		return
	}
	if _, ok := g.tasks.Add(t, protocol.TaskEvent{Kind: protocol.TaskTold, Name: want.Name, Payload: want.Payload}); !ok {
		out.Refused = protocol.IntentTaskEnded
	}
}

// send gives signals to the tasks, in order. Whether a task still takes one is its own matter.
func (g *intentGate) send() {
	if len(g.signals) == 0 {
		return
	}
	e, id, ctx := g.st.eng, g.st.id, g.st.ctx
	e.group.GoCall(func() {
		for _, want := range g.signals {
			w := e.workers.of(id, want.TaskID)
			if w == nil {
				continue
			}
			if err := w.signal(ctx, "internal:tool", want.Name, want.Payload); err != nil {
				e.Log.Warn("a signal of a tool is not taken", "session", id, "task", want.TaskID, "signal", want.Name, "error", err)
			}
		}
	})
}

// refuse notes why an intent is refused that makes no sense.
func refuse(out *protocol.IntentOutcome, err error) {
	out.Refused, out.Message = protocol.IntentInvalid, err.Error()
}

// checkTaskEvent refuses an event that a task does not declare.
func checkTaskEvent(spec *protocol.TaskSpec, name string, payload json.RawMessage) error {
	if len(payload) > task.MaxPayload {
		return param.Bad("/payload", "has %d bytes, at most %d", len(payload), task.MaxPayload)
	}
	for _, declared := range spec.Events {
		if declared.Name == name {
			return param.CheckPayload("/payload", declared.Schema, payload)
		}
	}
	return param.Bad("/name", "is no event that the task declares")
}
