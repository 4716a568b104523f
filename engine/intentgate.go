package engine

import (
	"cmp"
	"context"
	"errors"

	"lashd/engine/authority"
	"lashd/engine/param"
	"lashd/engine/task"
	"lashd/engine/task/live"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// intentGate decides about the intents of tool calls, such as starting a task, when the batch of
// the calls is committed. It runs on the actor and adds accepted intents to that commit. A refusal
// is an outcome, which the model and clients see; an error comes from the store and fails the
// commit.
type intentGate struct {
	// batch has the calls whose intents are resolved.
	batch *batch
	st    *state
	// tasks is the session's tasks as this commit changes them.
	tasks *live.Draft
	// turnOver is set if the turn is ending. All intents are refused then.
	turnOver bool
	// signals are delivered by send, once the commit has succeeded.
	signals []*protocol.SignalTaskIntent
}

// resolve returns the reply of a call, with the outcome of each of its intents.
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

// apply decides about one intent and adds it to the commit, or sets out.Refused.
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

// start adds the start of a task. Without a task id it derives one from the intent, so that a
// repeated commit starts no second task.
func (g *intentGate) start(ctx context.Context, s *toolCall, want *protocol.StartTaskIntent, out *protocol.IntentOutcome) error {
	out.TaskID = want.TaskID
	if out.TaskID == "" {
		out.TaskID = protocol.TaskID("tsk_" + out.ID[len("int_"):])
	}
	by := g.askerOf(s)
	spec := by.confine(want.Spec)
	if err := cmp.Or(g.st.eng.Tasks.check(out.TaskID, &spec), checkTaskCommand(by, &spec)); err != nil {
		refuse(out, err)
		return nil
	}
	known, err := g.exists(ctx, out.TaskID, &spec)
	switch {
	case errors.As(err, new(*TaskConflictError)):
		out.Refused = protocol.IntentConflict
		return nil
	case known || err != nil:
		return err
	}
	origin := protocol.TaskOrigin{SessionID: g.st.id, TurnID: g.batch.caller.turnID(), CallID: s.CallID, Ceiling: by.ceiling}
	if _, err := startTask(g.st.eng, g.tasks, out.TaskID, &spec, origin, nil); err != nil {
		refuse(out, err)
	}
	return nil
}

// askerOf returns the requester of a call's intents: the session, limited by the ceiling of the
// turn and, if a sandboxed plugin provides the tool or changed the call, by the sandbox.
func (g *intentGate) askerOf(s *toolCall) *requester {
	j := g.batch.hooks.judge
	boxed := s.sandboxed || s.entry != nil && j.plugins.Sandboxed(s.entry.Source())
	by := &requester{session: g.st.id, ceiling: authority.MeetAll(j.ceiling, authority.Sandboxed(boxed))}
	if s.entry == nil || !j.plugins.Ships(s.entry.Source()) {
		by.sandbox = authority.SandboxOf(j.config.Approval, j.sessionCeiling, j.ceiling)
	}
	return by
}

// exists reports whether the task was started before, in the store or in this commit. The same id
// with another spec is a TaskConflictError.
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

// live returns a task of the session as this commit leaves it. If the task has ended or does not
// exist, it sets out.Refused.
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

// signal checks a signal and keeps it for send. A task that starts in this commit accepts signals,
// too; any other task needs a running worker.
func (g *intentGate) signal(s *toolCall, t protocol.Task, want *protocol.SignalTaskIntent, out *protocol.IntentOutcome) {
	_, begins := g.tasks.Changed(t.ID)
	switch err := cmp.Or(checkSignal(&t.Spec, &protocol.TaskSignalParams{Name: want.Name, Payload: want.Payload}), g.askerOf(s).checkSignal(&t.Spec)); {
	case err != nil:
		refuse(out, err)
	case !begins && g.st.eng.workers.of(g.st.id, t.ID) == nil:
		out.Refused = protocol.IntentNotAtWork
	default:
		g.signals = append(g.signals, want)
	}
}

// addEvent adds an event that a tool emits for a task.
func (g *intentGate) addEvent(t protocol.Task, want *protocol.TaskEventIntent, out *protocol.IntentOutcome) {
	if err := param.CheckTaskEvent(&t.Spec, want.Name, want.Payload); err != nil {
		refuse(out, err)
		return
	}
	if _, ok := g.tasks.Add(t, protocol.TaskEvent{Kind: protocol.TaskTold, Name: want.Name, Payload: want.Payload}); !ok {
		out.Refused = protocol.IntentTaskEnded
	}
}

// send delivers the signals to the workers in order, after the commit, on a goroutine of its own. A
// worker may still refuse a signal, which is only logged.
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
				e.Log.Warn("a task refused the signal of a tool", "session", id, "task", want.TaskID, "signal", want.Name, "error", err)
			}
		}
	})
}

// refuse marks an intent as invalid.
func refuse(out *protocol.IntentOutcome, err error) {
	out.Refused, out.Message = protocol.IntentInvalid, err.Error()
}
