package subagents

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// spawnArgs are the arguments of spawn_agent.
type spawnArgs struct {
	Task       string          `json:"task"`
	Name       string          `json:"name"`
	Capability Capability      `json:"capability"`
	Type       string          `json:"type"`
	Seed       seed            `json:"seed"`
	Output     json.RawMessage `json:"outputSchema"`
	// Wait makes the call return after the task has ended. The task is then cancelled if
	// the turn ends first.
	Wait bool `json:"wait"`
	// Last closes the agent after its first task.
	Last bool `json:"last"`
}

// seed is the initial context of an agent: a number of recent turns, and data.
type seed struct {
	Turns  int             `json:"turns"`
	Values json.RawMessage `json:"values"`
}

// spawn is spawn_agent. The name is chosen and the task stored without another call in
// between. A repeated call, for example after a crash, finds the agent that it has started.
// With Wait it returns after the first task has ended.
func spawn(ctx context.Context, q *request) (any, error) {
	a, err := args[spawnArgs](q)
	if err != nil {
		return nil, err
	}
	var name, remark string
	err = q.alone(ctx, func(all map[string]*agent) error {
		if name = calledBefore(all, q.key()); name != "" {
			return nil
		}
		name, remark = free(a.Name, all)
		return q.begin(ctx, name, a)
	})
	if err != nil {
		return nil, err
	}
	if a.Wait {
		if _, err := q.host.Tasks.AwaitTasks(ctx, &protocol.TaskWaitParams{TaskIDs: []protocol.TaskID{taskID(name, 1)}}); err != nil {
			return nil, err
		}
	}
	return q.statusOf(ctx, name, remark)
}

// calledBefore returns the name of the agent to which a call has already given a task, or
// "".
// key identifies the call of the tool; each task stores the key of the call that created it.
func calledBefore(all map[string]*agent, key string) string {
	for _, a := range all {
		for _, t := range a.works {
			if noteOf(&t).Call == key {
				return a.name
			}
		}
	}
	return ""
}

// free returns an unused name, and a remark if it is not the requested one.
// A name that is taken, or has no valid characters, gets a number from 2 on.
func free(wanted string, all map[string]*agent) (name, remark string) {
	base := cmp.Or(normal(wanted), "agent")
	name = base
	for i := 2; all[name] != nil; i++ {
		name = base + "_" + strconv.Itoa(i)
	}
	if wanted != "" && name != wanted {
		remark = fmt.Sprintf("The agent is named %s, because %q is not a valid name or is already used.", name, wanted)
	}
	return name, remark
}

// begin starts the first task of an agent, which also creates its session.
// The ids of the session and the turn are derived from the call, so a repetition after a crash
// starts nothing twice. The caller is inside alone.
func (q *request) begin(ctx context.Context, name string, a *spawnArgs) error {
	view, err := q.host.State.View(ctx, "")
	if err != nil {
		return err
	}
	path := q.path(name)
	child, err := q.child(ctx, view, path, a)
	if err != nil {
		return err
	}
	task := a.Task
	if len(a.Seed.Values) > 0 {
		task += "\n\nGiven data:\n" + string(a.Seed.Values)
	}
	spec := q.spec(path, task, note{Call: q.key(), Last: a.Last})
	spec.Subagent.SessionID, spec.Subagent.New, spec.Subagent.Output = protocol.DeriveSessionID(ID, string(q.SessionID), q.key()), child, a.Output
	if a.Wait {
		spec.ParentEnd = protocol.ParentEndCancel
	}
	_, err = q.host.Tasks.StartTask(ctx, &plugin.TaskStart{TaskID: taskID(name, 1), Spec: *spec})
	return err
}

// path returns the path of an agent of this session.
func (q *request) path(name string) string { return cmp.Or(q.options.Path, "/root") + "/" + name }

// spec returns the spec of a task. Tasks that an agent starts end with its turn, because no
// later turn would read their results. Tasks of a session of a person continue and wake it.
// task is the text for the agent. The caller fills in the session that runs it.
func (q *request) spec(path, task string, n note) *protocol.TaskSpec {
	payload, err := json.Marshal(n)
	if err != nil {
		panic("encode our own type: " + err.Error())
	}
	spec := &protocol.TaskSpec{
		Kind: protocol.TaskSubagent, Label: label(path), Recovery: protocol.RecoverRerun, Plugin: ID, Payload: payload,
		Ended: &protocol.TaskWake{Merge: ID},
		Subagent: &protocol.TaskChild{
			TurnID: protocol.DeriveTurnID(ID, string(q.SessionID), q.key()), Agent: path,
			Input: []protocol.InputPart{{Type: protocol.InputText, Text: task}},
		},
	}
	if q.depth > 0 {
		spec.ParentEnd = protocol.ParentEndCancel
	}
	return spec
}

// label shortens a path to a valid task label.
func label(path string) string {
	if len(path) > 200 {
		return "..." + path[len(path)-190:]
	}
	return path
}
