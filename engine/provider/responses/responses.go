// Package responses speaks the Responses API of OpenAI and of servers that offer the same API. Conversations are not stored on
// the server: each request carries all of it, with the model's encrypted reasoning. A Provider is safe for concurrent use.
package responses

import (
	"cmp"
	"context"
	"iter"

	"lashd/engine/provider"
	"lashd/engine/provider/encoding"
	"lashd/engine/provider/endpoint"
)

// BaseURL is OpenAI's own server.
const BaseURL = "https://api.openai.com/v1"

// Config says where a server is and how it differs from others.
type Config struct {
	endpoint.Config // BaseURL is the URL up to and without /responses; it defaults to OpenAI's server

	// Subscription marks the server for ChatGPT accounts. It takes no output limit and no temperature, and requires instructions and a few
	// headers.
	Subscription bool
}

// Provider is one server.
// Its calls share the cached encodings of tools and conversations.
type Provider struct {
	*endpoint.Endpoint
	subscription bool             // see Config
	tools        encoding.Tools   // of the newest call
	history      encoding.History // of the conversations that were used last
}

// New returns a provider. It opens no connection.
// Its name defaults to "openai". Each call reports a BaseURL or a key that cannot be used.
func New(cfg Config) *Provider {
	cfg.Name = cmp.Or(cfg.Name, "openai")
	cfg.BaseURL = cmp.Or(cfg.BaseURL, BaseURL)
	dialect := endpoint.Dialect{
		Name:      "OpenAI Responses",
		ModelPath: "/models",                  // for Check
		Evidence:  "response.completed event", // or response.incomplete; both end a reply
	}
	if cfg.Subscription {
		dialect.Headers = map[string]string{"OpenAI-Beta": "responses=experimental", "Originator": "lashd"}
	}
	return &Provider{Endpoint: endpoint.New(cfg.Config, dialect), subscription: cfg.Subscription}
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
