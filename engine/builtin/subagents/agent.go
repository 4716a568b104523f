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

// agent is what the tasks of a session say of one of its agents.
type agent struct {
	name, path string
	session    protocol.SessionID
	works      []protocol.Task // pieces of its work, the oldest first
	closed     bool
}

// note is what a task says of itself for this plugin.
type note struct {
	Call   string `json:"call"`             // that wanted it
	Last   bool   `json:"last,omitempty"`   // once it is over, the agent is closed
	Closes bool   `json:"closes,omitempty"` // it is no work: the agent is closed from now on
}

func noteOf(t *protocol.Task) (n note) {
	if json.Unmarshal(t.Spec.Payload, &n) != nil {
		return note{} // of somebody else
	}
	return n
}

// number is the place of a task among those of its agent.
func number(id protocol.TaskID) int {
	_, n, _ := cutLast(string(id), "_")
	i, err := strconv.Atoi(n)
	if err != nil {
		return 0
	}
	return i
}

func taskID(name string, n int) protocol.TaskID {
	return protocol.TaskID("agent_" + name + "_" + strconv.Itoa(n))
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// agents are those of a session, by name.
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

// nameOf is that of the agent of a session whose work a task is; empty: of none. Tasks that other sessions have started are visible
// here, but they are those of other agents.
func nameOf(session protocol.SessionID, t *protocol.Task) string {
	if t.Spec.Subagent == nil || t.Origin.SessionID != session {
		return ""
	}
	_, name, _ := cutLast(t.Spec.Subagent.Agent, "/")
	return name
}

// with is an agent with one more of its tasks; nil: it has none yet.
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

func (a *agent) newest() *protocol.Task {
	if len(a.works) == 0 {
		return nil
	}
	return &a.works[len(a.works)-1]
}

// live are the pieces of work that are not over.
func (a *agent) live() (ids []protocol.TaskID) {
	for _, t := range a.works {
		if !t.State.Final() {
			ids = append(ids, t.ID)
		}
	}
	return ids
}

// Status is what the model is told of an agent.
type Status struct {
	Name       string             `json:"name"`
	Path       string             `json:"path"`
	SessionID  protocol.SessionID `json:"sessionId"`
	Capability string             `json:"capability,omitempty"`
	State      string             `json:"state"`                // pending, running, waiting, idle or closed
	Waiting    string             `json:"waitingFor,omitempty"` // where it is waiting
	Queued     int                `json:"queued,omitempty"`     // pieces of work that wait for the one before
	Result     *Result            `json:"result,omitempty"`     // of the newest piece of work, once that is over
	Note       string             `json:"note,omitempty"`
}

// Result is what a piece of work came to.
type Result struct {
	Status  protocol.TaskState `json:"status"` // completed, failed, cancelled or abandoned
	Value   json.RawMessage    `json:"value,omitempty"`
	Code    string             `json:"code,omitempty"`
	Message string             `json:"message,omitempty"`
}

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

// normal is a name as agents have it, which is what was asked for as far as it can be.
func normal(name string) string {
	clean := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return '_'
	}, strings.ToLower(strings.TrimSpace(name)))
	return strings.Trim(clean[:min(len(clean), 40)], "_")
}
