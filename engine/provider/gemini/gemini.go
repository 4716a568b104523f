// Package gemini speaks the Gemini API of Google. It has its own wire code because the vendor's library drops parts that it does not
// know, rounds large integers in arguments and hides Retry-After. A Provider is safe for concurrent use.
package gemini

import (
	"cmp"
	"context"
	"iter"

	"lashd/engine/provider"
	"lashd/engine/provider/encoding"
	"lashd/engine/provider/endpoint"
)

// BaseURL is Google's own server.
const BaseURL = "https://generativelanguage.googleapis.com/v1beta"

// Config says where a server is. BaseURL is the URL up to and without /models; it defaults to Google's server.
type Config = endpoint.Config

// Provider is one server.
// Its calls share the cached encodings of tools and conversations.
type Provider struct {
	*endpoint.Endpoint
	tools   encoding.Tools   // of the newest call
	history encoding.History // of the conversations that were used last
}

// New returns a provider. It opens no connection.
// Its name defaults to "google". Each call reports a BaseURL or a key that cannot be used.
func New(cfg Config) *Provider {
	cfg.Name = cmp.Or(cfg.Name, "google")
	cfg.BaseURL = cmp.Or(cfg.BaseURL, BaseURL)
	return &Provider{Endpoint: endpoint.New(cfg, endpoint.Dialect{
		Name:      "Gemini",
		KeyHeader: "X-Goog-Api-Key", // the key is sent as it is, without "Bearer"
		ModelPath: "/models",        // for Check
		Evidence:  "finishReason",   // of the last event with a candidate
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
