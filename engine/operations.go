package engine

import (
	"context"
	"errors"
	"slices"

	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/engine/receipt"
	"lashd/engine/trace"
	"lashd/engine/workgroup"
	"lashd/rpc/protocol"
)

// Operations is the API of the operations that plugins offer to clients. Queries run at any time; commands and
// tasks wait until no turn runs.
type Operations struct{ eng *Engine }

// List returns the operations of a session's plugins and the plugin inputs that a turn accepts. Without a session
// it returns those of a new session with default settings.
func (ops *Operations) List(ctx context.Context, p *protocol.OperationListParams) (*protocol.OperationListResult, error) {
	return withPlugins(ctx, ops.eng, p.SessionID, func(_ context.Context, s *plugin.Session) (*protocol.OperationListResult, error) {
		return &protocol.OperationListResult{Data: s.Operations(), TurnInputs: s.TurnInputs()}, nil
	})
}

// Query calls a query of a plugin. It may run at the same time as a turn and stores no receipt, so a repetition
// calls the plugin again.
func (ops *Operations) Query(ctx context.Context, p *protocol.OperationQueryParams) (*protocol.OperationQueryResult, error) {
	return withPlugins(ctx, ops.eng, p.SessionID, func(ctx context.Context, s *plugin.Session) (*protocol.OperationQueryResult, error) {
		call := &plugin.OperationCall{Args: p.Args, Host: ops.eng.hostFor(p.SessionID)}
		out, err := s.Query(ctx, p.Name, call, plugin.Target{Explicit: &p.SessionID})
		if err != nil {
			ops.eng.group.LogPanic(err)
			return nil, cancelledOr(ctx, err)
		}
		op, _ := findOperation(s, p.Name)
		return &protocol.OperationQueryResult{Plugin: op.Plugin, Output: out}, nil
	})
}

// Command runs a command of a plugin. It waits for the running turn to end, and no turn starts until it returns.
func (ops *Operations) Command(ctx context.Context, p *protocol.OperationParams) (*protocol.OperationReceipt, error) {
	return ops.operate(ctx, "operation/command", protocol.OperationCommand, p)
}

// Task runs a task of a plugin: a Command for long work. If ctx ends while the plugin works, a result that it
// still returns is stored.
func (ops *Operations) Task(ctx context.Context, p *protocol.OperationParams) (*protocol.OperationReceipt, error) {
	return ops.operate(ctx, "operation/task", protocol.OperationTask, p)
}

// Invoke runs an operation of any kind by its name. It opens the plugins once to learn the kind.
func (ops *Operations) Invoke(ctx context.Context, p *protocol.OperationParams) (*protocol.OperationReceipt, error) {
	op, err := withPlugins(ctx, ops.eng, p.SessionID, func(_ context.Context, s *plugin.Session) (protocol.OperationInfo, error) {
		return findOperation(s, p.Name)
	})
	if err != nil {
		return nil, err
	}
	if op.Kind != protocol.OperationQuery {
		return ops.operate(ctx, "action/invoke", op.Kind, p)
	}
	r, err := ops.Query(ctx, &protocol.OperationQueryParams{SessionID: p.SessionID, Name: p.Name, Args: p.Args})
	if err != nil {
		return nil, err
	}
	return &protocol.OperationReceipt{Plugin: r.Plugin, Output: r.Output, Events: []protocol.PluginNode{}, Inputs: []protocol.QueuedInput{}}, nil
}

// operate runs a command or a task once for each key, and returns the stored result for a repetition. An operation
// that began before a crash, or was abandoned, yields plugin.OperationLeft: its effects are unknown.
func (ops *Operations) operate(ctx context.Context, method string, kind protocol.OperationKind, p *protocol.OperationParams) (*protocol.OperationReceipt, error) {
	end, err := receipt.Once(ctx, ops.eng.receipts, method, p.Key(), p, func(rc receipt.Request) (*operationOutcome, error) {
		o := &operation{eng: ops.eng, kind: kind, params: p, scope: scopeOf(p.Name, rc), receipt: rc}
		r, err := o.run(ctx)
		if left, ok := errors.AsType[*plugin.OperationError](err); ok && left.Code == plugin.OperationAbandoned {
			return o.storeAbandoned(ctx, left)
		}
		if err != nil {
			return nil, o.noResult(ctx, err)
		}
		return &operationOutcome{OperationReceipt: *r}, nil
	})
	switch {
	case errors.Is(err, receipt.ErrBegun):
		return nil, &plugin.OperationError{Code: plugin.OperationAbandoned, Name: p.Name, Message: receipt.ErrBegun.Error()}
	case err != nil:
		return nil, err
	case end.Abandoned != "":
		return nil, &plugin.OperationError{Code: plugin.OperationAbandoned, Name: p.Name, Message: end.Abandoned}
	}
	return &end.OperationReceipt, nil
}

// withPlugins calls f with the plugins of a session, which stay open and unchanged until f returns. Without a
// session id it opens temporary plugins with default settings. f runs on the caller's goroutine.
func withPlugins[T any](ctx context.Context, e *Engine, id protocol.SessionID, f func(context.Context, *plugin.Session) (T, error)) (v T, err error) {
	if id == "" {
		// Plugins need a workspace; tools have no access to the state directory.
		opening, cancel := workgroup.PluginContext(ctx)
		defer cancel()
		s, err := e.build(opening, e.Defaults, plugin.BuildContext{Cwd: param.Where(e.StateDir), StateDir: e.StateDir}, sharedHost)
		if err != nil {
			return v, err
		}
		cancel()
		v, err = f(ctx, s)
		if failed := s.Close(); failed != nil { // the result of f stands
			e.Log.Warn("temporary plugins of an operation did not close", "error", failed)
		}
		return v, err
	}
	l, err := e.lend(ctx, id)
	if err != nil {
		return v, err
	}
	defer l.release()
	return f(l.ctx, l.plugins)
}

// findOperation returns the operation with a name, or a *plugin.OperationError with the code UnknownOperation.
func findOperation(s *plugin.Session, name string) (protocol.OperationInfo, error) {
	all := s.Operations()
	i := slices.IndexFunc(all, func(op protocol.OperationInfo) bool { return op.Name == name })
	if i < 0 {
		return protocol.OperationInfo{}, &plugin.OperationError{Code: plugin.UnknownOperation, Name: name}
	}
	return all[i], nil
}

// hostFor returns the services that an operation may use in a session. Without a session it may use none.
func (e *Engine) hostFor(id protocol.SessionID) plugin.Capabilities {
	if id == "" {
		return plugin.Capabilities{}
	}
	return e.capabilities(id, e.traceOf(id))
}

// traceOf returns a function that adds records to the trace of a session.
func (e *Engine) traceOf(id protocol.SessionID) func(trace.Kind, any) {
	return func(kind trace.Kind, body any) { e.Trace.Add(kind, trace.Record{SessionID: id}, body) }
}

// cancelledOr returns the cause of the cancellation of ctx if it was cancelled, else err. An abandoned operation
// keeps its own error, because the outcome is unknown whether or not it was cancelled.
func cancelledOr(ctx context.Context, err error) error {
	if e, ok := errors.AsType[*plugin.OperationError](err); ok && e.Code == plugin.OperationAbandoned {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
