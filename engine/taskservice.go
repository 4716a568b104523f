package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/engine/receipt"
	"lashd/engine/task/live"
	"lashd/rpc/protocol"
)

// pluginAsks is the client id that is recorded for requests of plugins. The methods below implement
// the task services of plugins (plugin.TaskReadService and plugin.TaskService) for one hook, tool
// call or task: s says which session, turn and authority it has. They run on goroutines of the
// plugin and check every session and task that the plugin names.
const pluginAsks protocol.ClientID = "internal:plugin"

// qualifyTask fills in the session of a task that a plugin names: the plugin's own session unless
// it names another. For the task that the plugin is working on, it is the session that owns the
// task now, as the task may have been transferred. A plugin that names another session must be
// allowed to do so.
func (s *services) qualifyTask(ctx context.Context, p protocol.TaskParams) (protocol.TaskParams, error) {
	if s.work != nil && p.TaskID == s.work.id && p.SessionID == "" {
		p.SessionID = s.work.owner()
		return p, nil
	}
	var err error
	p.SessionID, err = s.resolveSession(ctx, p.SessionID)
	return p, err
}

// visibleTask returns a task that the plugin names, if its session owns or observes the task.
// Errors are those of Tasks.visible.
func (s *services) visibleTask(ctx context.Context, p protocol.TaskParams) (protocol.Task, error) {
	p, err := s.qualifyTask(ctx, p)
	if err != nil {
		return protocol.Task{}, err
	}
	return s.eng.Tasks.visible(ctx, p.SessionID, p.TaskID)
}

// ListTasks implements plugin.TaskReadService. An empty session means the plugin's own; a plugin
// cannot list all sessions.
func (s *services) ListTasks(ctx context.Context, p *protocol.TaskListParams) (*protocol.TaskListResult, error) {
	mine := *p
	var err error
	if mine.SessionID, err = s.resolveSession(ctx, p.SessionID); err != nil {
		return nil, err
	}
	return s.eng.Tasks.List(ctx, &mine)
}

// ReadTask implements plugin.TaskReadService: the task and a page of its events.
func (s *services) ReadTask(ctx context.Context, p *protocol.TaskReadParams) (*protocol.TaskReadResult, error) {
	mine := *p
	var err error
	if mine.TaskParams, err = s.qualifyTask(ctx, p.TaskParams); err != nil {
		return nil, err
	}
	return s.eng.Tasks.Read(ctx, &mine)
}

// TaskOutput implements plugin.TaskReadService: a part of the output from a byte offset.
func (s *services) TaskOutput(ctx context.Context, p *protocol.TaskOutputParams) (*protocol.TaskOutputResult, error) {
	mine := *p
	var err error
	if mine.TaskParams, err = s.qualifyTask(ctx, p.TaskParams); err != nil {
		return nil, err
	}
	return s.eng.Tasks.Output(ctx, &mine)
}

// FollowTasks implements plugin.TaskReadService. It yields each task again after every change,
// until ctx is done. The cursor is the number of a stored change, so no change is lost between two
// reads. Several changes between two reads are yielded as one, with the newest state.
func (s *services) FollowTasks(ctx context.Context, p *protocol.TaskListParams) iter.Seq2[protocol.Task, error] {
	return func(yield func(protocol.Task, error) bool) {
		q := *p
		for {
			again := s.eng.tasksChanged.Next()
			r, err := s.ListTasks(ctx, &q)
			if err != nil {
				yield(protocol.Task{}, err)
				return
			}
			for _, t := range r.Data {
				if !yield(t, nil) {
					return
				}
			}
			if q.Cursor = r.NextCursor; r.More {
				continue
			}
			select {
			case <-again:
			case <-ctx.Done():
				yield(protocol.Task{}, context.Cause(ctx))
				return
			}
		}
	}
}

// ValidateVisible implements plugin.TaskReadService. It fails with *plugin.HandleError for the
// first task that the session cannot see, or that is hidden or has ended.
func (s *services) ValidateVisible(ctx context.Context, session protocol.SessionID, ids []protocol.TaskID) error {
	session, err := s.resolveSession(ctx, session)
	if err == nil {
		_, err = s.eng.store.Session(ctx, session)
	}
	if err != nil {
		return err
	}
	for _, id := range ids {
		t, err := s.eng.Tasks.visible(ctx, session, id)
		switch {
		case isMissing(err), err == nil && (t.State.Final() || t.Spec.Hidden):
			return &plugin.HandleError{TaskID: id}
		case err != nil:
			return err
		}
	}
	return nil
}

// StartTask implements plugin.TaskService. The task gets the authority of the hook that starts it,
// and never more.
//
// Work given as a function (p.Work) must be owner-bound, because a function cannot survive the
// daemon. A reference (p.Ref) is stored as a second event, so a crash between the two leaves a task
// without it; the plugin repeats the call with the same id.
func (s *services) StartTask(ctx context.Context, p *plugin.TaskStart) (*protocol.TaskResult, error) {
	by, err := s.requester(ctx)
	if err != nil {
		return nil, err
	}
	at, err := s.inWorkspace(ctx, p.SessionID)
	spec := by.confine(p.Spec)
	if err := cmp.Or(checkTaskCommand(by, &spec), s.eng.Tasks.check(p.TaskID, &spec), err); err != nil {
		return nil, err
	}
	var run worker
	if p.Work != nil {
		if p.Spec.Recovery != protocol.RecoverOwner || p.Spec.Command != nil || p.Spec.Handler != "" {
			return nil, param.Bad("/spec/recovery", "must be ownerBound for a task with a work function, which ends with the daemon")
		}
		run = pluginWork(p.Work)
	}
	origin := protocol.TaskOrigin{SessionID: s.session, TurnID: s.turn, Plugin: p.Spec.Plugin, Ceiling: by.ceiling}
	l, err := openForHandler(ctx, s.eng, at, &p.Spec)
	if err != nil {
		return nil, err
	}
	defer l.release()
	return do(ctx, s.eng, at, func(ctx context.Context, st *state) (*protocol.TaskResult, error) {
		r, err := st.tasks.start(ctx, p.TaskID, &spec, origin, run, receipt.Request{})
		if err != nil || p.Ref == "" || r.Task.State.Final() {
			return r, err
		}
		return st.tasks.changeOne(ctx, r.Task, protocol.TaskEvent{Kind: protocol.TaskGotRef, Ref: p.Ref}, receipt.Request{})
	})
}

// inWorkspace returns the session that a plugin names, or its own for an empty id. It fails with
// *plugin.ReachError if the plugin's session may not reach the other one (see Engine.reach).
func (s *services) inWorkspace(ctx context.Context, id protocol.SessionID) (protocol.SessionID, error) {
	if id == "" || id == s.session {
		return s.session, nil
	}
	_, err := s.ceilingIn(ctx, id)
	return id, err
}

// ceilingIn returns the ceiling for requests to another session: what they may do in it at most,
// beyond that session's own limits. It fails if the requester may not reach the session.
func (s *services) ceilingIn(ctx context.Context, id protocol.SessionID) (*protocol.Ceiling, error) {
	by, err := s.requester(ctx)
	if err == nil {
		err = s.eng.reach(ctx, by, id)
	}
	if err != nil {
		return nil, err
	}
	return s.eng.turnCeiling(ctx, by, id)
}

// CompleteTask implements plugin.TaskService. Completing an ended task returns it unchanged, so
// that a plugin can repeat the call.
func (s *services) CompleteTask(ctx context.Context, p *protocol.TaskCompleteParams) (protocol.Task, error) {
	t, err := s.visibleTask(ctx, p.TaskParams)
	if err != nil || t.State.Final() {
		return t, err
	}
	mine := *p
	mine.SessionID = t.SessionID
	r, err := s.eng.Tasks.Complete(ctx, pluginAsks, &mine)
	if over, ok := errors.AsType[*TaskEndedError](err); ok {
		return over.Task, nil
	}
	if err != nil {
		return protocol.Task{}, err
	}
	return r.Task, nil
}

// TransitionTask implements plugin.TaskService: it marks a task as idle or running.
//
// An idle task of a plugin gives its slot to another task; to run again, it waits here for a free
// one. External tasks hold no slot and only change their state. Commands cannot be idle. Nothing
// happens if the task has ended or has no worker in this daemon.
func (s *services) TransitionTask(ctx context.Context, p *plugin.TaskTransition) (protocol.Task, error) {
	event := protocol.TaskEvent{Kind: protocol.TaskWasWaiting, Reason: p.Waiting}
	switch p.State {
	case protocol.TaskIdle:
	case protocol.TaskRunning:
		event = protocol.TaskEvent{Kind: protocol.TaskWasResumed}
	default:
		return protocol.Task{}, param.Bad("/state", "must be idle or running")
	}
	t, err := s.visibleTask(ctx, p.TaskParams)
	switch {
	case err != nil || t.State.Final():
		return t, err
	case t.Spec.Command != nil:
		return t, param.Bad("/taskId", "must be a plugin's work or an external task; this one is a command")
	case t.Spec.Recovery == protocol.RecoverExternal:
		return s.add(ctx, t, event)
	}
	w := s.eng.workers.of(t.SessionID, t.ID)
	switch {
	case w == nil:
		return t, nil
	case p.State == protocol.TaskIdle:
		err = w.becomeIdle(ctx, p.Waiting)
	default:
		err = w.resume(ctx)
	}
	if err != nil {
		return t, err
	}
	return s.visibleTask(ctx, protocol.TaskParams{SessionID: t.SessionID, TaskID: t.ID})
}

// add adds an event to a task if the task is still live, and returns the task either way. It fails
// with ErrTaskLeaving while the task is being transferred.
func (s *services) add(ctx context.Context, t protocol.Task, event protocol.TaskEvent) (protocol.Task, error) {
	return do(ctx, s.eng, t.SessionID, func(ctx context.Context, st *state) (protocol.Task, error) {
		now, ok := st.tasks.Find(t.ID)
		switch {
		case st.tasks.Leaving(t.ID):
			return t, fmt.Errorf("task %s: %w", t.ID, ErrTaskLeaving)
		case !ok:
			return st.eng.store.Task(ctx, st.id, t.ID)
		}
		err := st.tasks.move(ctx, func(d *live.Draft) { now, _ = d.Add(now, event) })
		return now, err
	})
}

// AwaitTasks implements plugin.TaskService. If a turn waits for tasks of its own session, the wakes
// of the ended tasks are withdrawn: the turn has learned of their end, and the model must not be
// woken for it again.
func (s *services) AwaitTasks(ctx context.Context, p *protocol.TaskWaitParams) (*protocol.TaskWaitResult, error) {
	mine := *p
	var err error
	if mine.SessionID, err = s.resolveSession(ctx, p.SessionID); err != nil {
		return nil, err
	}
	r, err := s.eng.Tasks.Wait(ctx, pluginAsks, &mine)
	if err != nil || s.turn == "" || mine.SessionID != s.session {
		return r, err
	}
	return r, s.eng.Tasks.withdrawWakes(ctx, s.session, r.Settled)
}

// SignalTask implements plugin.TaskService. A signal to a shell can run any command. So a requester
// that may not run the task's command may not send signals to it either.
func (s *services) SignalTask(ctx context.Context, p *protocol.TaskSignalParams) (protocol.Task, error) {
	mine := *p
	by, err := s.requester(ctx)
	if err == nil {
		mine.TaskParams, err = s.qualifyTask(ctx, p.TaskParams)
	}
	if err == nil {
		_, err = s.inWorkspace(ctx, mine.SessionID)
	}
	if err != nil {
		return protocol.Task{}, err
	}
	if by.checkCommands() != nil || by.sandbox.Confines() {
		t, err := s.visibleTask(ctx, mine.TaskParams)
		if err == nil {
			err = by.checkSignal(&t.Spec)
		}
		if err != nil {
			return protocol.Task{}, err
		}
	}
	r, err := s.eng.Tasks.Signal(ctx, pluginAsks, &mine)
	if err != nil {
		return protocol.Task{}, err
	}
	return r.Task, nil
}

// CancelTask implements plugin.TaskService. It returns once the request is stored; the task may
// still run.
func (s *services) CancelTask(ctx context.Context, p *protocol.TaskCancelParams) (protocol.Task, error) {
	mine := *p
	var err error
	if mine.TaskParams, err = s.qualifyTask(ctx, p.TaskParams); err != nil {
		return protocol.Task{}, err
	}
	r, err := s.eng.Tasks.Cancel(ctx, pluginAsks, &mine)
	if err != nil {
		return protocol.Task{}, err
	}
	return r.Task, nil
}

// CancelTasks implements plugin.TaskService: it cancels all visible live tasks of a session in one
// commit. Hidden tasks keep running.
func (s *services) CancelTasks(ctx context.Context, p *protocol.TaskCancelAllParams) ([]protocol.Task, error) {
	mine := *p
	var err error
	if mine.SessionID, err = s.resolveSession(ctx, p.SessionID); err != nil {
		return nil, err
	}
	r, err := s.eng.Tasks.cancelAll(ctx, pluginAsks, &mine, func(t *protocol.Task) bool { return !t.Spec.Hidden })
	if err != nil {
		return nil, err
	}
	return r.Data, nil
}

// TransferTasks implements plugin.TaskService. The plugin must be allowed to reach the target
// session.
func (s *services) TransferTasks(ctx context.Context, p *protocol.TaskTransferParams) ([]protocol.Task, error) {
	mine := *p
	var err, to error
	mine.SessionID, err = s.resolveSession(ctx, p.SessionID)
	mine.To, to = s.inWorkspace(ctx, p.To)
	if err := cmp.Or(err, to); err != nil {
		return nil, err
	}
	r, err := s.eng.Tasks.Transfer(ctx, &mine)
	if err != nil {
		return nil, err
	}
	return r.Data, nil
}
