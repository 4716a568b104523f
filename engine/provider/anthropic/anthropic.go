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
// Its calls share the cached encodings of tools and conversations.
type Provider struct {
	*endpoint.Endpoint
	tools   encoding.Tools   // of the newest call
	history encoding.History // of the conversations that were used last, without cache marks
}

// New returns a provider. It opens no connection.
// Its name defaults to "anthropic". Each call reports a BaseURL or a key that cannot be used.
func New(cfg Config) *Provider {
	cfg.Name = cmp.Or(cfg.Name, "anthropic")
	cfg.BaseURL = cmp.Or(cfg.BaseURL, BaseURL)
	return &Provider{Endpoint: endpoint.New(cfg, endpoint.Dialect{
		Name:      "Anthropic Messages",
		KeyHeader: "X-Api-Key", // the key is sent as it is, without "Bearer"
		Headers:   map[string]string{"Anthropic-Version": version},
		ModelPath: "/models",            // for Check
		Evidence:  "message_stop event", // sent after every complete message
	})}
}

// Stream implements provider.Provider.
// The request is written when the sequence is iterated, on the goroutine of the reader. If that fails, nothing is sent.
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
