package subagents

import (
	"context"
	"maps"
	"slices"

	"lashd/rpc/protocol"
)

// namesOf returns the sorted names of agents.
func namesOf(all map[string]*agent) []string { return slices.Sorted(maps.Keys(all)) }

// statusOf returns the present status of an agent, with a remark for the model.
// It reads the tasks again. A name without an agent is a refusal.
func (q *request) statusOf(ctx context.Context, name, remark string) (Status, error) {
	all, err := agents(ctx, q.host.Tasks, q.SessionID)
	if err != nil {
		return Status{}, err
	}
	if all[name] == nil {
		return Status{}, unknown(name, all)
	}
	s := all[name].status()
	s.Note = remark
	return s, nil
}

// listAgents is list_agents. It includes closed agents.
// The list is sorted by name, and empty without agents.
func listAgents(ctx context.Context, q *request) (any, error) {
	all, err := agents(ctx, q.host.Tasks, q.SessionID)
	if err != nil {
		return nil, err
	}
	list := make([]Status, 0, len(all))
	for _, name := range namesOf(all) {
		list = append(list, all[name].status())
	}
	return map[string][]Status{"agents": list}, nil
}

// waitArgs are the arguments of wait_agents.
type waitArgs struct {
	Names []string `json:"names"`
	// Until is taskCompleted (default) or terminal, Rule all (default) or any.
	Until string `json:"until"`
	Rule  string `json:"rule"`
	// Timeout is in seconds. 0: no limit.
	Timeout int64 `json:"timeoutSeconds"`
}

// Waited is the result of wait_agents. Each agent is in one of the three maps.
type Waited struct {
	// Completed has agents whose newest task has ended, unless they are closed.
	Completed map[string]Status `json:"completed"`
	Pending   map[string]Status `json:"pending"`
	Closed    map[string]Status `json:"closed"`
}

// wait is wait_agents. It waits for the newest task of each agent. A timeout is not an
// error: the result shows which agents are pending.
// If ctx is done, the wait ends with an error.
func wait(ctx context.Context, q *request) (any, error) {
	w, err := args[waitArgs](q)
	if err != nil {
		return nil, err
	}
	chosen, err := q.chosen(ctx, w.Names)
	if err != nil {
		return nil, err
	}
	p := &protocol.TaskWaitParams{Rule: protocol.WaitAll, TimeoutMs: w.Timeout * 1000}
	if w.Rule == "any" {
		p.Rule = protocol.WaitFirst
	}
	for _, name := range namesOf(chosen) {
		if a := chosen[name]; a.newest() != nil && w.counts(a) {
			p.TaskIDs = append(p.TaskIDs, a.newest().ID)
		}
	}
	if len(p.TaskIDs) > 0 {
		if _, err := q.host.Tasks.AwaitTasks(ctx, p); err != nil {
			return nil, err
		}
	}
	return q.waited(ctx, w, namesOf(chosen))
}

// counts reports whether the end of an agent's current task may satisfy the wait. With
// until=terminal and rule=any only agents count that will be closed.
func (w *waitArgs) counts(a *agent) bool {
	return w.Until != "terminal" || w.Rule != "any" || a.closed || noteOf(a.newest()).Last
}

// chosen returns the agents with these names, or without names all that are not closed.
// Names are normalized first. An unknown name is a refusal that lists the existing agents.
func (q *request) chosen(ctx context.Context, names []string) (map[string]*agent, error) {
	all, err := agents(ctx, q.host.Tasks, q.SessionID)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		maps.DeleteFunc(all, func(_ string, a *agent) bool { return a.closed })
		return all, nil
	}
	chosen := map[string]*agent{}
	for _, name := range names {
		if all[normal(name)] == nil {
			return nil, unknown(name, all)
		}
		chosen[normal(name)] = all[normal(name)]
	}
	return chosen, nil
}

// waited returns the result of a wait with the present status of each agent.
// The names were chosen before the wait. Agents whose tasks were pruned since are left out.
func (q *request) waited(ctx context.Context, w *waitArgs, names []string) (*Waited, error) {
	all, err := agents(ctx, q.host.Tasks, q.SessionID)
	if err != nil {
		return nil, err
	}
	r := &Waited{map[string]Status{}, map[string]Status{}, map[string]Status{}}
	for _, name := range names {
		if all[name] == nil {
			continue // its tasks were pruned during the wait
		}
		switch s := all[name].status(); {
		case s.State == "closed":
			r.Closed[name] = s
		case s.Result != nil && w.Until != "terminal":
			r.Completed[name] = s
		default:
			r.Pending[name] = s
		}
	}
	return r, nil
}
