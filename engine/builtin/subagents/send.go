package subagents

import (
	"cmp"
	"context"
	"strings"

	"lashd/engine/plugin"
)

// sendArgs are the arguments of send_agent.
type sendArgs struct {
	Name string `json:"name"`
	Task string `json:"task"`
	// Last closes the agent after this task.
	Last bool `json:"last"`
}

// send is send_agent. A repeated call finds the task that it has started.
// It does not wait for the task. A closed agent, and one that will be closed after its last task,
// gets no further tasks.
func send(ctx context.Context, q *request) (any, error) {
	s, err := args[sendArgs](q)
	if err != nil {
		return nil, err
	}
	name := normal(s.Name)
	err = q.alone(ctx, func(all map[string]*agent) error {
		if calledBefore(all, q.key()) != "" {
			return nil
		}
		a := all[name]
		switch {
		case a == nil || len(a.works) == 0:
			return unknown(s.Name, all)
		case a.closed || noteOf(a.newest()).Last:
			return refuse("agent_closed", "The agent %s is closed or will be closed after its last task. Start a new agent with spawn_agent.", name)
		}
		return q.follow(ctx, a, s)
	})
	if err != nil {
		return nil, err
	}
	return q.statusOf(ctx, name, "")
}

// follow queues another task of an agent after its newest one. The new task runs a turn in
// the same child session, so the agent remembers its earlier work.
// If the newest task still runs, the new one waits for its end. The caller is inside alone.
func (q *request) follow(ctx context.Context, a *agent, s *sendArgs) error {
	newest := a.newest() // has the settings of the child; after pruning the child session itself exists
	spec := q.spec(a.path, s.Task, note{Call: q.key(), Last: s.Last})
	spec.Subagent.SessionID, spec.Subagent.New, spec.Subagent.Output = a.session, newest.Spec.Subagent.New, newest.Spec.Subagent.Output
	if !newest.State.Final() {
		spec.Subagent.After = newest.ID
	}
	_, err := q.host.Tasks.StartTask(ctx, &plugin.TaskStart{TaskID: taskID(a.name, number(newest.ID)+1), Spec: *spec})
	return err
}

// unknown returns the refusal of a name that no agent has. It lists the existing names.
func unknown(name string, all map[string]*agent) error {
	return refuse("no_such_agent", "There is no agent %q. Existing agents: %s.", name, cmp.Or(strings.Join(namesOf(all), ", "), "none"))
}
