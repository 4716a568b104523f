// Package chatcompletions speaks the Chat Completions API, which OpenAI defined and OpenRouter, Ollama, llama.cpp, vLLM and many
// more serve. Nothing here depends on the name of a model or the address of a server: what differs between servers is
// in Config, what differs between models in protocol.ModelSpec. A Provider is safe for concurrent use.
package chatcompletions

import (
	"cmp"
	"context"
	"iter"

	"lashd/engine/provider"
	"lashd/engine/provider/encoding"
	"lashd/engine/provider/endpoint"
)

// Config says where a server is and how it differs from others.
type Config struct {
	endpoint.Config // BaseURL is the URL up to and without /chat/completions

	// OutputLimitField is the server's name for the output limit: max_tokens, which is the default, or
	// max_completion_tokens, which OpenAI's reasoning models require.
	OutputLimitField string
	// ReplayReasoning sends reasoning back to the model that wrote it, for servers that require it.
	ReplayReasoning bool
}

// Provider is one server.
// Its calls share the cached encodings of tools and conversations.
type Provider struct {
	*endpoint.Endpoint
	cfg     Config
	tools   encoding.Tools   // of the newest call
	history encoding.History // of the conversations that were used last
}

// New returns a provider. It opens no connection.
// Its name defaults to "openai". Each call reports a BaseURL or a key that cannot be used.
func New(cfg Config) *Provider {
	cfg.OutputLimitField = cmp.Or(cfg.OutputLimitField, "max_tokens")
	cfg.Name = cmp.Or(cfg.Name, "openai")
	return &Provider{cfg: cfg, Endpoint: endpoint.New(cfg.Config, endpoint.Dialect{
		Name:      "Chat Completions",
		ModelPath: "/models",       // for Check
		Evidence:  "finish_reason", // of the last chunk with a choice
	})}
}

// Stream implements provider.Provider.
// The request is written when the sequence is iterated, on the goroutine of the reader. If that fails, nothing is sent.
func (p *Provider) Stream(ctx context.Context, req *provider.Request) iter.Seq2[provider.Chunk, error] {
	return p.Endpoint.Stream(ctx, func() (*endpoint.Call, endpoint.Decoder, error) {
		call, err := p.encode(req)
		d := &decoder{route: p.Route(req.Model.ID), replay: p.cfg.ReplayReasoning}
		d.template.credit = templateCredit
		return call, d, err
	})
}

var (
	_ provider.Provider     = (*Provider)(nil)
	_ provider.Checker      = (*Provider)(nil)
	_ endpoint.WholeDecoder = (*decoder)(nil)
)
