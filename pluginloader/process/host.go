package process

import (
	"context"
	"encoding/json"
	"errors"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// hostMethod does something for a plugin that was granted it.
type hostMethod func(context.Context, *grant, json.RawMessage) (any, error)

// bind decodes what the method takes. Beside it the grant is named.
func bind[P, R any](f func(context.Context, *grant, *P) (R, error)) hostMethod {
	return func(ctx context.Context, g *grant, raw json.RawMessage) (any, error) {
		p := new(P)
		if err := strict(raw, p); err != nil {
			return nil, &paramsError{err}
		}
		return f(ctx, g, p)
	}
}

// granted is in all that the plugin asks.
type granted struct {
	Grant string `json:"grant"`
}

var errNotAvailable = errors.New("it is not available")

func notAvailable(context.Context, *grant, json.RawMessage) (any, error) { return nil, errNotAvailable }

// hostMethods are what plugins may ask of lashd.
var hostMethods = map[string]hostMethod{
	"host/snapshotCurrent":    bind(snapshot),
	"host/snapshotSession":    bind(snapshot),
	"host/toolCatalog":        bind(toolCatalog),
	"host/toolState":          bind(toolState),
	"host/applyToolState":     bind(applyToolState),
	"host/setToolMembership":  bind(setToolMembership),
	"host/createSession":      bind(createSession),
	"host/takeFirstTurnInput": bind(takeFirstTurnInput),
	"host/closeSession":       bind(closeSession),
	"host/startTurn":          bind(startTurn),
	"host/awaitTurn":          bind(awaitTurn),
	"host/cancelTurn":         bind(cancelTurn),
	"host/appendNodes":        bind(appendNodes),
	"host/complete":           bind(complete),
	"host/emitTrace":          bind(emitTrace),
	"host/callTool":           bind(callTool),
	"host/artifactWrite":      bind(artifactWrite),
	"host/artifactRead":       bind(artifactRead),

	"host/setToolAvailability": notAvailable,
	"host/injectTurnInput":     notAvailable,
	"host/ask":                 notAvailable,
	"host/taskStart":           notAvailable,
	"host/taskRegister":        notAvailable,
	"host/taskComplete":        notAvailable,
	"host/taskTransition":      notAvailable,
	"host/taskAwait":           notAvailable,
	"host/taskSignal":          notAvailable,
	"host/taskList":            notAvailable,
	"host/taskCancel":          notAvailable,
	"host/taskCancelAll":       notAvailable,
	"host/validateHandles":     notAvailable,
	"host/transferHandles":     notAvailable,
	"host/monitorSnapshot":     notAvailable,
	"host/monitorUpdates":      notAvailable,
	"host/monitorStart":        notAvailable,
	"host/monitorStop":         notAvailable,
}

// ofSession names a session; empty: that of the call.
type ofSession struct {
	granted
	SessionID protocol.SessionID `json:"sessionId,omitempty"`
}

// sessionView is a session with its conversation.
type sessionView struct {
	*plugin.View
	Messages []protocol.Message `json:"messages"`
}

func snapshot(ctx context.Context, g *grant, p *ofSession) (*sessionView, error) {
	s, err := g.host.NeedState()
	if err != nil {
		return nil, err
	}
	v, err := s.View(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	return &sessionView{v, v.Messages()}, nil
}

// list is a list on the wire.
type list[T any] struct {
	Data []T `json:"data"`
}

func toolCatalog(ctx context.Context, g *grant, p *ofSession) (*list[protocol.ToolRecord], error) {
	s, err := g.host.NeedState()
	if err != nil {
		return nil, err
	}
	records, err := s.Catalog(ctx, p.SessionID)
	return &list[protocol.ToolRecord]{records}, err
}

// toolStateResult is the state of a session's tools.
type toolStateResult struct {
	State protocol.ToolState `json:"state"`
}

func toolState(ctx context.Context, g *grant, p *ofSession) (*toolStateResult, error) {
	s, err := g.host.NeedState()
	if err != nil {
		return nil, err
	}
	state, err := s.ToolState(ctx, p.SessionID)
	return &toolStateResult{state}, err
}

// generation is that of the tools after a change.
type generation struct {
	Generation int64 `json:"generation"`
}

func applyToolState(ctx context.Context, g *grant, p *struct {
	ofSession
	State protocol.ToolState `json:"state"`
}) (*generation, error) {
	s, err := g.host.NeedState()
	if err != nil {
		return nil, err
	}
	n, err := s.ApplyToolState(ctx, p.SessionID, p.State)
	return &generation{n}, err
}

func setToolMembership(ctx context.Context, g *grant, p *struct {
	ofSession
	Names  []string `json:"names"`
	Member bool     `json:"member"`
}) (*generation, error) {
	s, err := g.host.NeedState()
	if err != nil {
		return nil, err
	}
	n, err := s.SetMembership(ctx, p.SessionID, p.Names, p.Member)
	return &generation{n}, err
}

func appendNodes(ctx context.Context, g *grant, p *struct {
	granted
	protocol.GraphAppendParams
}) (*protocol.GraphAppendResult, error) {
	s, err := g.host.NeedGraph()
	if err != nil {
		return nil, err
	}
	return s.AppendNodes(ctx, &p.GraphAppendParams)
}

func complete(ctx context.Context, g *grant, p *struct {
	granted
	protocol.CompletionParams
}) (*protocol.CompletionResult, error) {
	s, err := g.host.NeedModels()
	if err != nil {
		return nil, err
	}
	return s.Complete(ctx, &p.CompletionParams)
}

func emitTrace(_ context.Context, g *grant, p *struct {
	granted
	Name    string          `json:"name"`
	Payload json.RawMessage `json:"payload,omitempty"`
}) (struct{}, error) {
	g.host.Trace(p.Name, p.Payload)
	return struct{}{}, nil
}

func callTool(ctx context.Context, g *grant, p *struct {
	granted
	Calls []struct {
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"calls"`
}) (*list[protocol.ToolOutput], error) {
	if g.tool == nil {
		return nil, &plugin.UnavailableError{Capability: "calls of tools"}
	}
	var calls []tool.Request
	for _, c := range p.Calls {
		calls = append(calls, tool.Request{Name: c.Name, Args: c.Args})
	}
	out, err := g.tool.Call(ctx, calls)
	return &list[protocol.ToolOutput]{out}, err
}
