package process

import (
	"context"
	"encoding/json"
	"time"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// operation is an operation of the plugin in one session.
type operation struct {
	*instance
	info protocol.OperationInfo
}

// operationCall holds the parameters of an operation. Target is the session that it acts on; empty:
// none.
type operationCall struct {
	of
	until
	Name   string             `json:"name"`
	Target protocol.SessionID `json:"target,omitempty"`
	Args   json.RawMessage    `json:"args"`
	Scope  string             `json:"scope,omitempty"`
}

// patience is how long a cancelled task or operation may still report its result.
const patience = 2 * time.Second

// call returns the grant and the parameters for a call of the operation. The grant is what the
// engine allows this operation, with or without a session.
func (o *operation) call(c *plugin.OperationCall) (*grant, func(*seat, until) any) {
	return &grant{host: c.Host}, func(s *seat, u until) any {
		return operationCall{o.of(s), u, o.info.Name, c.SessionID, c.Args, c.Scope}
	}
}

// query implements a query operation.
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

// change implements a command or a task operation. linger is how long a cancelled call may still
// report its result.
func (o *operation) change(limit, linger time.Duration) plugin.CommandFunc {
	return func(ctx context.Context, c *plugin.OperationCall) (*plugin.OperationResult, error) {
		g, params := o.call(c)
		method := "operation/" + string(o.info.Kind)
		return asked[plugin.OperationResult](ctx, o.instance, method, limit, linger, g, params)
	}
}
