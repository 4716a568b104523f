package acp

import (
	"context"
	"slices"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/rpc/protocol"
)

// initializeResult replaces the SDK's type, which lacks session/delete among the
// session capabilities.
type initializeResult struct {
	ProtocolVersion   sdk.ProtocolVersion `json:"protocolVersion"`
	AgentInfo         sdk.Implementation  `json:"agentInfo"`
	AuthMethods       []sdk.AuthMethod    `json:"authMethods"`
	AgentCapabilities capabilities        `json:"agentCapabilities"`
}

// capabilities are the optional abilities of an agent that lashd has.
type capabilities struct {
	LoadSession         bool                   `json:"loadSession"`
	McpCapabilities     sdk.McpCapabilities    `json:"mcpCapabilities"`
	PromptCapabilities  sdk.PromptCapabilities `json:"promptCapabilities"`
	SessionCapabilities sessionCapabilities    `json:"sessionCapabilities"`
}

// sessionCapabilities lists the optional session methods. An empty object means
// that lashd has the method. archive, fork and title belong to the unstable part of
// the protocol.
type sessionCapabilities struct {
	Archive none `json:"archive"`
	Close   none `json:"close"`
	Delete  none `json:"delete"`
	Fork    none `json:"fork"`
	List    none `json:"list"`
	Resume  none `json:"resume"`
	Title   none `json:"title"`
}

// initialize records the editor's capabilities. All other methods are rejected
// before it, and a second initialize is rejected too.
func (a *agent) initialize(_ context.Context, r *request, p *sdk.InitializeRequest) (*initializeResult, error) {
	image := a.takesImages()
	r.admit()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ready {
		return nil, invalidRequest("this connection is already initialized")
	}
	a.ready, a.offers = true, p.ClientCapabilities
	title := "lashd"
	return &initializeResult{
		ProtocolVersion: sdk.ProtocolVersionNumber, // an editor with another version disconnects
		AgentInfo:       sdk.Implementation{Name: "lashd", Title: &title, Version: a.Version},
		AuthMethods:     authMethods(p.ClientCapabilities),
		AgentCapabilities: capabilities{
			LoadSession:         true,
			McpCapabilities:     sdk.McpCapabilities{Http: true},
			PromptCapabilities:  sdk.PromptCapabilities{EmbeddedContext: true, Image: image},
			SessionCapabilities: sessionCapabilities{},
		},
	}, nil
}

// modelsLimit is how long initialize waits for the daemon's models.
const modelsLimit = 3 * time.Second

// takesImages reports whether any configured model takes images. The protocol announces this once, before there are sessions, while each
// session has a model of its own and can change it. So one such model is enough, and a prompt with an image to another model is
// refused. If the daemon does not answer, takesImages reports true, and that refusal says what is wrong.
func (a *agent) takesImages() bool {
	ctx, cancel := context.WithTimeout(a.ctx, modelsLimit)
	defer cancel()
	var list protocol.ModelListResult
	if err := a.daemon.call(ctx, "model/list", protocol.Empty{}, &list); err != nil || len(list.Data) == 0 {
		return true
	}
	return slices.ContainsFunc(list.Data, func(m protocol.ModelInfo) bool { return m.Model.Takes("image/png") })
}
