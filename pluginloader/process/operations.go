package process

import (
	"context"
	"encoding/json"
	"time"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// operation is one that the plugin offers.
type operation struct {
	*instance
	info protocol.OperationInfo
}

// operationCall is what a plugin is told of an operation. Target is the session that it is for, which may be none.
type operationCall struct {
	of
	until
	Name   string             `json:"name"`
	Target protocol.SessionID `json:"target,omitempty"`
	Args   json.RawMessage    `json:"args"`
	Scope  string             `json:"scope,omitempty"`
}

// patience is how long a task that is cancelled has to say what it came to.
const patience = 2 * time.Second

func (o *operation) call(c *plugin.OperationCall) (*grant, func(*seat, until) any) {
	return &grant{host: c.Host}, func(s *seat, u until) any {
		return operationCall{o.of(s), u, o.info.Name, c.SessionID, c.Args, c.Scope}
	}
}

func (o *operation) query(ctx context.Context, c *plugin.OperationCall) (json.RawMessage, error) {
	g, params := o.call(c)
	answer, err := ask[struct {
		Output json.RawMessage `json:"output,omitempty"`
	}](ctx, o.instance, "operation/query", o.factory.config.Deadlines.Query, g, params)
	if err != nil {
		return nil, err
	}
	return answer.Output, nil
}

func (o *operation) change(limit, linger time.Duration) plugin.CommandFunc {
	return func(ctx context.Context, c *plugin.OperationCall) (*plugin.OperationResult, error) {
		g, params := o.call(c)
		method := "operation/" + string(o.info.Kind)
		return asked[plugin.OperationResult](ctx, o.instance, method, limit, linger, g, params)
	}
}
