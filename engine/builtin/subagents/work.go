package subagents

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

type spawnArgs struct {
	Task       string          `json:"task"`
	Name       string          `json:"name"`
	Capability Capability      `json:"capability"`
	Seed       seed            `json:"seed"`
	Output     json.RawMessage `json:"outputSchema"`
	Wait       bool            `json:"wait"`
	Last       bool            `json:"last"`
}

// seed is what an agent begins with.
type seed struct {
	Turns  int             `json:"turns"`
	Values json.RawMessage `json:"values"`
}

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

// calledBefore is the agent that a call has given work before; empty: it has not.
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

// free is a name that no agent has had, and a remark if it is not the one that is wanted.
func free(wanted string, all map[string]*agent) (name, remark string) {
	base := cmp.Or(normal(wanted), "agent")
	name = base
	for i := 2; all[name] != nil; i++ {
		name = base + "_" + strconv.Itoa(i)
	}
	if wanted != "" && name != wanted {
		remark = fmt.Sprintf("The agent is named %s, as %q is no name or is taken.", name, wanted)
	}
	return name, remark
}

// begin starts the first task of an agent.
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
		task += "\n\nWhat you are given:\n" + string(a.Seed.Values)
	}
	spec := q.spec(path, task, note{Call: q.key(), Last: a.Last})
	spec.Subagent.SessionID, spec.Subagent.New, spec.Subagent.Output = protocol.DeriveSessionID(ID, string(q.SessionID), q.key()), child, a.Output
	if a.Wait {
		spec.ParentEnd = protocol.ParentEndCancel
	}
	_, err = q.host.Tasks.StartTask(ctx, &plugin.TaskStart{TaskID: taskID(name, 1), Spec: *spec})
	return err
}

func (q *request) path(name string) string { return cmp.Or(q.options.Path, "/root") + "/" + name }

// spec is a piece of work. What an agent has begun ends with its turn, as nobody would be told; a session that a person watches is.
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

func label(path string) string {
	if len(path) > 200 {
		return "..." + path[len(path)-190:]
	}
	return path
}

// child is how the session of an agent is made.
func (q *request) child(ctx context.Context, view *plugin.View, path string, a *spawnArgs) (*protocol.SessionNewParams, error) {
	p := plugin.NewChild(protocol.SessionStart{})
	p.Title, p.UsageLabel = label(path), "subagent"
	options, err := json.Marshal(Options{Path: path, Output: a.Output, Hidden: q.options.Hidden})
	if err != nil {
		return nil, err
	}
	p.Options = maps.Clone(view.Session.Config.Options)
	if p.Options == nil {
		p.Options = protocol.PluginOptions{}
	}
	p.Options[ID] = options
	capability := cmp.Or(a.Capability, Explore)
	p.Authority = protocol.Authority{Hidden: q.options.Hidden, Subagent: &protocol.Subagent{
		Parent: q.SessionID, Capability: string(capability), Depth: q.depth + 1, MaxDepth: q.maxDepth,
	}}
	if capability == Explore {
		if p.Authority.Tools, err = q.harmless(ctx); err != nil {
			return nil, err
		}
	}
	if a.Seed.Turns > 0 {
		p.Nodes = said(view.Messages(), a.Seed.Turns)
	}
	return p, nil
}

// harmless are the tools that only read and search.
func (q *request) harmless(ctx context.Context) ([]string, error) {
	records, err := q.host.State.Catalog(ctx, "")
	if err != nil {
		return nil, err
	}
	names := []string{submitError, submitResult}
	for _, t := range records {
		if t.Member && (t.Kind == protocol.ToolKindRead || t.Kind == protocol.ToolKindSearch) {
			names = append(names, t.Name)
		}
	}
	return names, nil
}

// said is what people and the model have said in the newest turns, without calls.
func said(messages []protocol.Message, turns int) []protocol.NodeBody {
	from := len(messages)
	for i := len(messages) - 1; i >= 0 && turns > 0; i-- {
		if m := messages[i]; m.Role == protocol.RoleUser && m.Text(protocol.PartText) != "" {
			from = i
			turns--
		}
	}
	var nodes []protocol.NodeBody
	for _, m := range messages[from:] {
		kind, text := protocol.PartText, m.Text(protocol.PartText)
		if m.Role == protocol.RoleAssistant {
			kind, text = protocol.PartProse, m.Answer()
		}
		if strings.TrimSpace(text) == "" || m.Role != protocol.RoleUser && m.Role != protocol.RoleAssistant {
			continue
		}
		nodes = append(nodes, protocol.NodeBody{Message: &protocol.Message{Role: m.Role, Parts: []protocol.Part{{Kind: kind, Text: text}}}})
	}
	return nodes
}

type sendArgs struct {
	Name string `json:"name"`
	Task string `json:"task"`
	Last bool   `json:"last"`
}

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
			return refuse("agent_closed", "The agent %s is closed, or will be after its last task; spawn another one.", name)
		}
		return q.follow(ctx, a, s)
	})
	if err != nil {
		return nil, err
	}
	return q.statusOf(ctx, name, "")
}

// follow queues another task of an agent.
func (q *request) follow(ctx context.Context, a *agent, s *sendArgs) error {
	first, newest := a.works[0].Spec.Subagent, a.newest()
	spec := q.spec(a.path, s.Task, note{Call: q.key(), Last: s.Last})
	spec.Subagent.SessionID, spec.Subagent.New, spec.Subagent.Output = a.session, first.New, first.Output
	if !newest.State.Final() {
		spec.Subagent.After = newest.ID
	}
	_, err := q.host.Tasks.StartTask(ctx, &plugin.TaskStart{TaskID: taskID(a.name, number(newest.ID)+1), Spec: *spec})
	return err
}

func unknown(name string, all map[string]*agent) error {
	return refuse("no_such_agent", "There is no agent %q. There are: %s.", name, cmp.Or(strings.Join(namesOf(all), ", "), "none"))
}
