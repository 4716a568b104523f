package acp

import (
	"context"

	sdk "github.com/coder/acp-go-sdk"
)

// hello is the result of initialize. The SDK's has no session/delete among the capabilities of sessions.
type hello struct {
	ProtocolVersion   sdk.ProtocolVersion `json:"protocolVersion"`
	AgentInfo         sdk.Implementation  `json:"agentInfo"`
	AuthMethods       []sdk.AuthMethod    `json:"authMethods"`
	AgentCapabilities capabilities        `json:"agentCapabilities"`
}

// capabilities are what this agent has beyond what all have.
type capabilities struct {
	LoadSession         bool                   `json:"loadSession"`
	McpCapabilities     sdk.McpCapabilities    `json:"mcpCapabilities"`
	PromptCapabilities  sdk.PromptCapabilities `json:"promptCapabilities"`
	SessionCapabilities sessionCapabilities    `json:"sessionCapabilities"`
}

// sessionCapabilities are the methods of sessions that an agent need not have; fork is of the protocol's unstable part.
type sessionCapabilities struct {
	Close  *none `json:"close"`
	Delete *none `json:"delete"`
	Fork   *none `json:"fork"`
	List   *none `json:"list"`
	Resume *none `json:"resume"`
}

func (a *agent) initialize(_ context.Context, r *request, p *sdk.InitializeRequest) (*hello, error) {
	r.admit()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ready {
		return nil, invalidRequest("this connection is already initialized")
	}
	a.ready, a.offers = true, p.ClientCapabilities
	title := "lashd"
	return &hello{
		ProtocolVersion: sdk.ProtocolVersionNumber, // whatever the editor has: it leaves if it cannot speak that
		AgentInfo:       sdk.Implementation{Name: "lashd", Title: &title, Version: a.Version},
		AuthMethods:     []sdk.AuthMethod{},
		AgentCapabilities: capabilities{
			LoadSession:         true,
			McpCapabilities:     sdk.McpCapabilities{Http: true},
			PromptCapabilities:  sdk.PromptCapabilities{EmbeddedContext: true, Image: true},
			SessionCapabilities: sessionCapabilities{&none{}, &none{}, &none{}, &none{}, &none{}},
		},
	}, nil
}
