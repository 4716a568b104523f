// Package anthropic speaks the Messages API of Anthropic and of servers that offer the same API. Nothing here depends on
// the name of a model: what differs between models is in protocol.ModelSpec. A Provider is safe for concurrent use.
package anthropic

import (
	"cmp"
	"context"
	"iter"

	"lashd/engine/provider"
	"lashd/engine/provider/encoding"
	"lashd/engine/provider/endpoint"
)

// BaseURL is Anthropic's own server.
const BaseURL = "https://api.anthropic.com/v1"

// version is the API version that requests name and that this package is written for.
const version = "2023-06-01"

// Config says where a server is. BaseURL is the URL up to and without /messages; it defaults to Anthropic's server.
type Config = endpoint.Config

// Provider is one server.
type Provider struct {
	*endpoint.Endpoint
	tools   encoding.Tools
	history encoding.History
}

// New returns a provider. It opens no connection.
func New(cfg Config) *Provider {
	cfg.Name = cmp.Or(cfg.Name, "anthropic")
	cfg.BaseURL = cmp.Or(cfg.BaseURL, BaseURL)
	return &Provider{Endpoint: endpoint.New(cfg, endpoint.Dialect{
		Name:      "Anthropic Messages",
		KeyHeader: "X-Api-Key",
		Headers:   map[string]string{"Anthropic-Version": version},
		ModelPath: "/models",
		Evidence:  "message_stop event",
	})}
}

// Stream implements provider.Provider.
func (p *Provider) Stream(ctx context.Context, req *provider.Request) iter.Seq2[provider.Chunk, error] {
	return p.Endpoint.Stream(ctx, func() (*endpoint.Call, endpoint.Decoder, error) {
		call, err := p.encode(req)
		return call, &decoder{route: p.Route(req.Model.ID)}, err
	})
}

var (
	_ provider.Provider = (*Provider)(nil)
	_ provider.Checker  = (*Provider)(nil)
)
