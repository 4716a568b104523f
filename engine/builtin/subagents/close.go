package subagents

import (
	"context"
	"slices"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// closeAgent is close_agent. It first records that the agent is closed, so that a crash
// cannot undo it, and then stops its work.
// The result is the agent's status after its tasks have ended. Closing a closed agent again
// succeeds.
func closeAgent(ctx context.Context, q *request) (any, error) {
	c, err := args[struct {
		Name string `json:"name"`
	}](q)
	if err != nil {
		return nil, err
	}
	name := normal(c.Name)
	err = q.alone(ctx, func(all map[string]*agent) error {
		a := all[name]
		if a == nil {
			return unknown(c.Name, all)
		}
		if err := q.mark(ctx, a); err != nil {
			return err
		}
		return q.stop(ctx, a)
	})
	if err != nil {
		return nil, err
	}
	return q.statusOf(ctx, name, "")
}

// mark records that an agent is closed, as an external task that is completed at once. It
// uses a fixed id, so it can be repeated.
func (q *request) mark(ctx context.Context, a *agent) error {
	spec := q.spec(a.path, "", note{Closes: true})
	spec.Recovery, spec.Ended, spec.ParentEnd = protocol.RecoverExternal, nil, ""
	spec.Subagent = &protocol.TaskChild{SessionID: a.session, Agent: a.path}
	r, err := q.host.Tasks.StartTask(ctx, &plugin.TaskStart{TaskID: protocol.TaskID("agent_" + a.name + "_closed"), Spec: *spec})
	if err != nil {
		return err
	}
	_, err = q.host.Tasks.CompleteTask(ctx, &protocol.TaskCompleteParams{
		TaskParams: protocol.TaskParams{TaskID: r.Task.ID}, Outcome: protocol.TaskOutcome{Kind: protocol.TaskDone},
	})
	return err
}

// stop cancels the tasks of an agent and of the agents below it, and waits until its tasks
// have ended. It cancels queued tasks first, so that they do not start.
// An agent that is already idle has no tasks to cancel; the agents below it may still have some.
func (q *request) stop(ctx context.Context, a *agent) error {
	live := a.live()
	for _, id := range slices.Backward(live) {
		if err := q.cancel(ctx, protocol.TaskParams{TaskID: id}); err != nil {
			return err
		}
	}
	if len(live) > 0 {
		if _, err := q.host.Tasks.AwaitTasks(ctx, &protocol.TaskWaitParams{TaskIDs: live}); err != nil {
			return err
		}
	}
	return q.stopBelow(ctx, a.session)
}

// cancel cancels a task. It is no error if the task ends at the same time.
// The reason is shown in the record of the task.
func (q *request) cancel(ctx context.Context, p protocol.TaskParams) error {
	_, err := q.host.Tasks.CancelTask(ctx, &protocol.TaskCancelParams{TaskParams: p, Reason: "the agent was closed"})
	if err == nil {
		return nil
	}
	if r, e := q.host.Tasks.ReadTask(ctx, &protocol.TaskReadParams{TaskParams: p}); e == nil && r.Task.State.Final() {
		return nil
	}
	return err
}

// stopBelow cancels the remaining tasks in an agent's session, innermost agents first. It
// does nothing if that session no longer exists or does not work for this one.
func (q *request) stopBelow(ctx context.Context, session protocol.SessionID) error {
	if there, err := q.host.State.WorksForOwn(ctx, session); err != nil || !there {
		return err
	}
	below, err := agents(ctx, q.host.Tasks, session)
	if err != nil {
		return err
	}
	for _, name := range namesOf(below) {
		if err := q.stopBelow(ctx, below[name].session); err != nil {
			return err
		}
	}
	_, err = q.host.Tasks.CancelTasks(ctx, &protocol.TaskCancelAllParams{SessionID: session, Reason: "the agent was closed"})
	return err
}
