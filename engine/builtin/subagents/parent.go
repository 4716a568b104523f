package subagents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// lead provides the tools of a session that may have agents. Agents are read from the store
// for each call, so lead has no state besides the lock.
type lead struct {
	options Options
	// depth is the depth of the session itself, maxDepth the limit for agents.
	depth, maxDepth int
	// types are the kinds of agents that plugins describe.
	types []Type
	// knows reports whether there is a model with a name; nil: there is none.
	knows func(model string) bool
	// changing is a mutex that can be waited for with a context. It is held while agents are
	// read and then changed.
	changing chan struct{}
}

// newLead returns the tools of a session of a person.
func newLead(o Options) *lead {
	return &lead{options: o, maxDepth: MaxDepth, changing: make(chan struct{}, 1)}
}

// request is a call of one of the tools.
type request struct {
	*lead
	tool.Invocation
	// host gives access to tasks and sessions.
	host plugin.Capabilities
}

// key identifies the call, also when it is repeated after a restart.
func (q *request) key() string { return string(q.TurnID) + "/" + string(q.CallID) }

// refusal is the error of a call that changes nothing. The model reads its text.
type refusal struct{ code, text string }

func (e *refusal) Error() string { return e.text }

// refuse returns a refusal.
func refuse(code, format string, args ...any) error {
	return &refusal{code, fmt.Sprintf(format, args...)}
}

// Execute implements tool.Provider. A refusal becomes a failed result for the model; other
// errors are failures of the engine.
func (l *lead) Execute(ctx context.Context, call tool.Invocation) (tool.Result, error) {
	q := &request{lead: l, Invocation: call, host: plugin.ForTool(call)}
	if q.host.Tasks == nil || q.host.State == nil {
		return tool.Result{}, errors.New("the task service is not available")
	}
	v, err := definitions()[call.Name].do(ctx, q)
	if r, ok := errors.AsType[*refusal](err); ok {
		return tool.Result{Output: protocol.Fail(protocol.FailInvalidRequest, r.code, r.text, protocol.FromTool)}, nil
	}
	if err != nil {
		return tool.Result{}, err
	}
	value, err := json.Marshal(v)
	return tool.Result{Output: protocol.ToolOutput{Status: protocol.OutputSuccess, Value: value}}, err
}

// alone calls f with the current agents. No other call of the session changes agents during
// f.
func (q *request) alone(ctx context.Context, f func(all map[string]*agent) error) error {
	select {
	case q.changing <- struct{}{}:
		defer func() { <-q.changing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	all, err := agents(ctx, q.host.Tasks, q.SessionID)
	if err != nil {
		return err
	}
	return f(all)
}

// args decodes the arguments of a call, which match the schema of the tool.
func args[T any](q *request) (*T, error) {
	var v T
	return &v, json.Unmarshal(q.Args, &v)
}
