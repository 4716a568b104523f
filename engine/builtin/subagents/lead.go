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

// lead are the tools of a session that has agents.
type lead struct {
	options         Options
	depth, maxDepth int           // of the session itself
	desk            chan struct{} // holds one while agents are looked at and then changed
}

func newLead(o Options) *lead {
	return &lead{options: o, maxDepth: MaxDepth, desk: make(chan struct{}, 1)}
}

// request is a call of one of the tools.
type request struct {
	*lead
	tool.Invocation
	host plugin.Capabilities
}

// key names the call for ever.
func (q *request) key() string { return string(q.TurnID) + "/" + string(q.CallID) }

// refusal is why a call changes nothing, for the model.
type refusal struct{ code, text string }

func (e *refusal) Error() string { return e.text }

func refuse(code, format string, args ...any) error {
	return &refusal{code, fmt.Sprintf(format, args...)}
}

// Execute implements tool.Provider.
func (l *lead) Execute(ctx context.Context, call tool.Invocation) (tool.Result, error) {
	q := &request{lead: l, Invocation: call, host: plugin.ForTool(call)}
	if q.host.Tasks == nil || q.host.State == nil {
		return tool.Result{}, errors.New("there are no tasks here")
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

// alone has f look at the agents and change them, without another call between.
func (q *request) alone(ctx context.Context, f func(all map[string]*agent) error) error {
	select {
	case q.desk <- struct{}{}:
		defer func() { <-q.desk }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	all, err := agents(ctx, q.host.Tasks, q.SessionID)
	if err != nil {
		return err
	}
	return f(all)
}

// args are those of a call, which fit the tool's schema.
func args[T any](q *request) (*T, error) {
	var v T
	return &v, json.Unmarshal(q.Args, &v)
}
