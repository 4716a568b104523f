package process

import (
	"context"
	"encoding/json"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// Capability is a group of requests that a plugin may send to lashd. A request needs both: the
// manifest declares the capability, and the current call offers it.
type Capability string

const (
	// The capabilities. The manifest uses the same names.
	UsesState       Capability = "state"
	UsesLifecycle   Capability = "lifecycle"   // create, drive and close sessions
	UsesGraph       Capability = "graph"       // append to history
	UsesCompletions Capability = "completions" // model calls outside of turns
	UsesTools       Capability = "tools"       // call other tools
	UsesArtifacts   Capability = "artifacts"   // store artifacts of tool calls; those of its own state need no capability
	UsesDecisions   Capability = "decisions"   // ask a user
	UsesTasks       Capability = "tasks"       // work that outlives a call
	UsesMonitors    Capability = "monitors"    // run monitors
)

// hostMethod is a request that plugins may send. serve.go checks the grant and the capability
// before it calls do.
type hostMethod struct {
	needs Capability // empty: any grant suffices
	do    performed
}

// performed carries out a request under a grant. raw holds the parameters.
type performed func(context.Context, *grant, json.RawMessage) (any, error)

// bind returns a performed that decodes the parameters into P. Unknown fields are errors.
func bind[P, R any](f func(context.Context, *grant, *P) (R, error)) performed {
	return func(ctx context.Context, g *grant, raw json.RawMessage) (any, error) {
		p := new(P)
		if err := strict(raw, p); err != nil {
			return nil, &paramsError{err}
		}
		return f(ctx, g, p)
	}
}

// granted is embedded in the parameters of all requests.
type granted struct {
	Grant string `json:"grant"`
}

// hostMethods maps the requests of the plugin protocol to their implementations. The functions have
// the names of the methods. docs/plugin-protocol.md describes them.
var hostMethods = map[string]hostMethod{
	"host/snapshotCurrent":     {UsesState, bind(snapshot)},
	"host/snapshotSession":     {UsesState, bind(snapshot)},
	"host/toolCatalog":         {UsesState, bind(toolCatalog)},
	"host/toolState":           {UsesState, bind(toolState)},
	"host/applyToolState":      {UsesState, bind(applyToolState)},
	"host/setToolMembership":   {UsesState, bind(setToolMembership)},
	"host/setToolAvailability": {UsesState, bind(setToolAvailability)},
	"host/createSession":       {UsesLifecycle, bind(createSession)},
	"host/takeFirstTurnInput":  {UsesLifecycle, bind(takeFirstTurnInput)},
	"host/closeSession":        {UsesLifecycle, bind(closeSession)},
	"host/startTurn":           {UsesLifecycle, bind(startTurn)},
	"host/awaitTurn":           {UsesLifecycle, bind(awaitTurn)},
	"host/cancelTurn":          {UsesLifecycle, bind(cancelTurn)},
	"host/injectTurnInput":     {UsesLifecycle, bind(injectTurnInput)},
	"host/appendNodes":         {UsesGraph, bind(appendNodes)},
	"host/complete":            {UsesCompletions, bind(complete)},
	"host/emitTrace":           {"", bind(emitTrace)},
	"host/callTool":            {UsesTools, bind(callTool)},
	"host/now":                 {"", bind(now)},
	"host/random":              {"", bind(random)},
	"host/history":             {"", bind(conversation)},
	"host/ask":                 {UsesDecisions, bind(askPerson)},
	"host/artifactWrite":       {UsesArtifacts, bind(artifactWrite)},
	"host/artifactRead":        {UsesArtifacts, bind(artifactRead)},

	"host/taskStart":       {UsesTasks, bind(taskStart)},
	"host/taskRegister":    {UsesTasks, bind(taskRegister)},
	"host/taskComplete":    {UsesTasks, inSession(bind(taskComplete))},
	"host/taskTransition":  {UsesTasks, inSession(bind(taskTransition))},
	"host/taskTell":        {UsesTasks, inSession(bind(taskTell))},
	"host/taskAwait":       {UsesTasks, inSession(bind(taskAwait))},
	"host/taskSignal":      {UsesTasks, inSession(bind(taskSignal))},
	"host/taskList":        {UsesTasks, bind(taskList)},
	"host/taskRead":        {UsesTasks, inSession(bind(taskRead))},
	"host/taskOutput":      {UsesTasks, inSession(bind(taskOutput))},
	"host/taskCancel":      {UsesTasks, inSession(bind(taskCancel))},
	"host/taskCancelAll":   {UsesTasks, inSession(bind(taskCancelAll))},
	"host/validateHandles": {UsesTasks, bind(validateHandles)},
	"host/transferHandles": {UsesTasks, inSession(bind(transferHandles))},
	"host/monitorSnapshot": {UsesMonitors, bind(monitorSnapshot)},
	"host/monitorUpdates":  {UsesMonitors, bind(monitorUpdates)},
	"host/monitorStart":    {UsesMonitors, inSession(bind(monitorStart))},
	"host/monitorStop":     {UsesMonitors, inSession(bind(monitorStop))},
}

// ofSession names a session; empty: the session of the call.
type ofSession struct {
	granted
	SessionID protocol.SessionID `json:"sessionId,omitempty"`
}

// sessionView is a session with its conversation.
type sessionView struct {
	*plugin.View
	Messages []protocol.Message `json:"messages"`
}

// snapshot implements host/snapshotCurrent and host/snapshotSession: the session and its
// conversation. Only sessions in reach of the call's session can be read.
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

// toolCatalog implements host/toolCatalog: all tools of a session with their state.
func toolCatalog(ctx context.Context, g *grant, p *ofSession) (*list[protocol.ToolRecord], error) {
	s, err := g.host.NeedState()
	if err != nil {
		return nil, err
	}
	records, err := s.Catalog(ctx, p.SessionID)
	return &list[protocol.ToolRecord]{records}, err
}

// toolStateResult is the result of host/toolState.
type toolStateResult struct {
	State protocol.ToolState `json:"state"`
}

// toolState implements host/toolState.
func toolState(ctx context.Context, g *grant, p *ofSession) (*toolStateResult, error) {
	s, err := g.host.NeedState()
	if err != nil {
		return nil, err
	}
	state, err := s.ToolState(ctx, p.SessionID)
	return &toolStateResult{state}, err
}

// generation is the generation of a session's tools after a change.
type generation struct {
	Generation int64 `json:"generation"`
}

// applyToolState implements host/applyToolState. It replaces the whole state, and fails if the
// state has changed since the plugin read it.
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

// setToolMembership implements host/setToolMembership: it adds tools to a session or removes them.
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

// setToolAvailability implements host/setToolAvailability. An empty availability removes the
// setting.
func setToolAvailability(ctx context.Context, g *grant, p *struct {
	ofSession
	Names        []string                  `json:"names"`
	Availability protocol.ToolAvailability `json:"availability,omitempty"`
}) (*generation, error) {
	s, err := g.host.NeedState()
	if err != nil {
		return nil, err
	}
	n, err := s.SetAvailability(ctx, p.SessionID, p.Names, p.Availability)
	return &generation{n}, err
}

// appendNodes implements host/appendNodes: it adds nodes to a session's history.
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

// complete implements host/complete: a model call outside of a turn.
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

// emitTrace implements host/emitTrace. It needs no capability and cannot fail.
func emitTrace(_ context.Context, g *grant, p *struct {
	granted
	Name    string          `json:"name"`
	Payload json.RawMessage `json:"payload,omitempty"`
}) (struct{}, error) {
	g.host.Trace(p.Name, p.Payload)
	return struct{}{}, nil
}

// callTool implements host/callTool: it calls other tools on behalf of the current tool call or code
// cell and returns their outputs in the same order. It works only during one of them.
func callTool(ctx context.Context, g *grant, p *struct {
	granted
	Calls []struct {
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"calls"`
}) (*list[protocol.ToolOutput], error) {
	if g.tool == nil && g.cell == nil {
		return nil, &plugin.UnavailableError{Capability: "calls of tools"}
	}
	var calls []tool.Request
	for _, c := range p.Calls {
		calls = append(calls, tool.Request{Name: c.Name, Args: c.Args})
	}
	call := cellCalls
	if g.tool != nil {
		call = func(ctx context.Context, g *grant, calls []tool.Request) ([]protocol.ToolOutput, error) {
			return g.tool.Call(ctx, calls)
		}
	}
	out, err := call(ctx, g, calls)
	return &list[protocol.ToolOutput]{out}, err
}
