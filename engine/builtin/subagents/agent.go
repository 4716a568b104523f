package subagents

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// agent is an agent of a session, reconstructed from the session's tasks on each call.
//
// Its first task creates the child session; later tasks run turns in the same session, one
// after the other. Closing an agent adds a task that only records the fact. The tasks have
// ids of the form agent_NAME_NUMBER, so that numbers give their order.
type agent struct {
	// name is unique in the session. path has the names of the agents above, such as
	// /root/a/b.
	name, path string
	session    protocol.SessionID
	// works are its tasks, oldest first.
	works []protocol.Task
	// closed means that the agent accepts no more tasks.
	closed bool
}

// note is the payload of a task of this plugin.
type note struct {
	// Call identifies the tool call that started the task.
	Call string `json:"call"`
	// Last means that the agent is closed after the task.
	Last bool `json:"last,omitempty"`
	// Closes means that the task is no work: it only records that the agent is closed.
	Closes bool `json:"closes,omitempty"`
}

// noteOf returns the note of a task, or an empty one for tasks of others.
func noteOf(t *protocol.Task) (n note) {
	if json.Unmarshal(t.Spec.Payload, &n) != nil {
		return note{} // a task of another plugin
	}
	return n
}

// number returns the number of a task among those of its agent, or 0.
func number(id protocol.TaskID) int {
	_, n, _ := cutLast(string(id), "_")
	i, err := strconv.Atoi(n)
	if err != nil {
		return 0
	}
	return i
}

// taskID returns the id of task n of an agent. n counts from 1.
func taskID(name string, n int) protocol.TaskID {
	return protocol.TaskID("agent_" + name + "_" + strconv.Itoa(n))
}

// cutLast is strings.Cut at the last separator.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// agents returns the agents of a session by name. It reads all of the session's tasks,
// because they are the only state.
func agents(ctx context.Context, tasks plugin.TaskReadService, session protocol.SessionID) (map[string]*agent, error) {
	all := map[string]*agent{}
	q := &protocol.TaskListParams{SessionID: session, Kind: protocol.TaskSubagent, Limit: 1000}
	for more := true; more; {
		r, err := tasks.ListTasks(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, t := range r.Data {
			if name := nameOf(session, &t); name != "" {
				all[name] = all[name].with(name, t)
			}
		}
		q.Cursor, more = r.NextCursor, r.More
	}
	for _, a := range all {
		slices.SortFunc(a.works, func(x, y protocol.Task) int { return cmp.Compare(number(x.ID), number(y.ID)) })
		if last := a.newest(); last != nil && last.State.Final() && noteOf(last).Last {
			a.closed = true
		}
	}
	return all, nil
}

// nameOf returns the name of the agent to which a task belongs, or "". Tasks that other
// sessions started are visible here, but belong to other agents.
func nameOf(session protocol.SessionID, t *protocol.Task) string {
	if t.Spec.Subagent == nil || t.Origin.SessionID != session {
		return ""
	}
	_, name, _ := cutLast(t.Spec.Subagent.Agent, "/")
	return name
}

// with adds a task to an agent. A nil agent is created first.
func (a *agent) with(name string, t protocol.Task) *agent {
	if a == nil {
		a = &agent{name: name, path: t.Spec.Subagent.Agent, session: t.Spec.Subagent.SessionID}
	}
	if noteOf(&t).Closes {
		a.closed = true
		return a
	}
	a.works = append(a.works, t)
	return a
}

// newest returns the newest task, or nil if the agent has only been closed.
func (a *agent) newest() *protocol.Task {
	if len(a.works) == 0 {
		return nil
	}
	return &a.works[len(a.works)-1]
}

// live returns the tasks that have not ended, oldest first.
func (a *agent) live() (ids []protocol.TaskID) {
	for _, t := range a.works {
		if !t.State.Final() {
			ids = append(ids, t.ID)
		}
	}
	return ids
}

// Status describes an agent to the model.
type Status struct {
	Name       string             `json:"name"`
	Path       string             `json:"path"`
	SessionID  protocol.SessionID `json:"sessionId"`
	Capability string             `json:"capability,omitempty"`
	// State is pending, running, waiting, idle or closed.
	State string `json:"state"`
	// Waiting says what a waiting agent waits for.
	Waiting string `json:"waitingFor,omitempty"`
	// Queued is the number of tasks after the current one.
	Queued int `json:"queued,omitempty"`
	// Result is the result of the newest task, once it has ended.
	Result *Result `json:"result,omitempty"`
	// Note is a remark about this call, such as a changed name.
	Note string `json:"note,omitempty"`
}

// Result is the result of a task.
type Result struct {
	// Status is completed, failed, cancelled or abandoned.
	Status  protocol.TaskState `json:"status"`
	Value   json.RawMessage    `json:"value,omitempty"`
	Code    string             `json:"code,omitempty"`
	Message string             `json:"message,omitempty"`
}

// status describes the agent from its tasks. An agent with several live tasks is in the
// state of the first of them; the others are queued.
func (a *agent) status() Status {
	s := Status{Name: a.name, Path: a.path, SessionID: a.session, State: "idle"}
	last := a.newest()
	if last != nil && last.Spec.Subagent.New != nil && last.Spec.Subagent.New.Authority.Subagent != nil {
		s.Capability = last.Spec.Subagent.New.Authority.Subagent.Capability
	}
	live := a.live()
	if len(live) > 0 {
		i := slices.IndexFunc(a.works, func(t protocol.Task) bool { return t.ID == live[0] })
		at := a.works[i]
		s.State, s.Waiting, s.Queued = string(at.State), at.Waiting, len(live)-1
		if at.State == protocol.TaskIdle {
			s.State = "waiting"
		}
	}
	if last != nil && last.State.Final() {
		s.Result = resultOf(last)
	}
	if a.closed {
		s.State = "closed"
	}
	return s
}

func resultOf(t *protocol.Task) *Result {
	r := &Result{Status: t.State}
	if o := t.Outcome; o != nil {
		r.Value, r.Code, r.Message = o.Value, o.Code, o.Message
	}
	return r
}

// normal converts a requested name to a valid one: lower-case letters, digits and
// underscores, at most 40 bytes. The result may be empty.
func normal(name string) string {
	clean := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return '_'
	}, strings.ToLower(strings.TrimSpace(name)))
	return strings.Trim(clean[:min(len(clean), 40)], "_")
}
