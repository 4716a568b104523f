// Package openai speaks the Chat Completions API, which OpenAI defined and OpenRouter, Ollama, llama.cpp, vLLM and many
// more serve. Nothing here depends on the name of a model or the address of a server: what differs between servers is
// in Config, what differs between models in protocol.ModelSpec. A Provider is safe for concurrent use.
package openai

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"lashd/engine/provider"
)

// Config says where a server is and how it differs from others. Only BaseURL is needed.
type Config struct {
	Name    string                     // of the endpoint, in routes; default openai
	BaseURL string                     // up to and without /chat/completions; a query is kept
	Key     provider.Secret            // sent as a bearer token, without white space around it
	KeyFrom string                     // where the key comes from, for messages, such as the name of a variable
	NoKey   string                     // what to say where the key is missing, after "no API key for URL: "; default: KeyFrom is not set
	NeedKey bool                       // the server answers nobody who has no key
	Headers map[string]provider.Secret // sent with each request

	HTTPClient     *http.Client  // without a Timeout of its own; default: one that keeps connections
	RequestTimeout time.Duration // until the server begins to answer; default 300s
	ChunkTimeout   time.Duration // between two lines of an answer; comments are a sign of life too; default 120s
	AttemptTimeout time.Duration // for one request with its whole answer; default 30min

	// OutputLimitField is what the server calls the output limit: max_tokens, which is the default, or
	// max_completion_tokens, which OpenAI wants for its reasoning models.
	OutputLimitField string
	// ReplayReasoning sends reasoning back to the model that wrote it, for servers that want so.
	ReplayReasoning bool
}

// Provider is one endpoint.
type Provider struct {
	cfg     Config
	base    *url.URL
	shown   string // the base URL as people may see it: userinfo and query can hold keys
	tools   atomic.Pointer[encodedTools]
	unfit   error // why BaseURL or Key cannot be used; each call fails with it
	client  *http.Client
	history history
	mask    *provider.Mask // takes the keys out of each error
}

// New returns the endpoint. It opens no connection.
func New(cfg Config) *Provider {
	cfg.Name = cmp.Or(cfg.Name, "openai")
	cfg.RequestTimeout = cmp.Or(cfg.RequestTimeout, 300*time.Second)
	cfg.ChunkTimeout = cmp.Or(cfg.ChunkTimeout, 120*time.Second)
	cfg.AttemptTimeout = cmp.Or(cfg.AttemptTimeout, 30*time.Minute)
	cfg.OutputLimitField = cmp.Or(cfg.OutputLimitField, "max_tokens")
	cfg.Key = provider.NewSecret(strings.TrimSpace(cfg.Key.Reveal()))
	p := &Provider{cfg: cfg, client: newClient(cfg.HTTPClient)}
	if p.base, p.unfit = parseBase(cfg.BaseURL); p.base != nil {
		p.shown = Shown(cfg.BaseURL)
		p.unfit = cfg.checkKey(p.shown)
	}
	p.mask = provider.NewMask(p.keys()...)
	return p
}

// Shown is a base URL as people may see it: without a user, a password and a query, which may be keys.
func Shown(base string) string {
	u, err := parseBase(base)
	if err != nil {
		return "(invalid base_url)"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// keys are all that may be a key in what a server gets to see.
func (p *Provider) keys() []provider.Secret {
	keys := []provider.Secret{p.cfg.Key}
	for _, header := range p.cfg.Headers {
		keys = append(keys, header)
		if scheme, key, ok := strings.Cut(header.Reveal(), " "); ok && strings.EqualFold(scheme, "bearer") {
			keys = append(keys, provider.NewSecret(key))
		}
	}
	if p.base == nil {
		return keys
	}
	password, _ := p.base.User.Password()
	keys = append(keys, provider.NewSecret(p.base.User.Username()), provider.NewSecret(password))
	for name, values := range p.base.Query() {
		for _, v := range values {
			if secretName().MatchString(name) {
				keys = append(keys, provider.NewSecret(v))
			}
		}
	}
	return keys
}

// secretName tells the keys in a query from the version of the API.
var secretName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)key|token|secret|pass|sig|auth|code`) })

func parseBase(text string) (*url.URL, error) {
	base, err := url.Parse(text)
	if err != nil {
		err = errors.New("it is no URL") // the parser's own words repeat it, with the keys in it
	}
	if err == nil && base.Scheme != "http" && base.Scheme != "https" {
		err = errors.New("it must begin with http:// or https://")
	}
	if err == nil && base.Host == "" {
		err = errors.New("it has no host")
	}
	if err == nil {
		return base, nil
	}
	return nil, &provider.Error{
		Kind:    provider.KindValidation,
		Code:    "invalid_base_url",
		Message: "the base URL cannot be used: " + err.Error(),
		Err:     err,
	}
}

// checkKey refuses a key that no server can be asked with, before one is.
func (c *Config) checkKey(shown string) error {
	from, key := cmp.Or(c.KeyFrom, "the configuration"), c.Key.Reveal()
	switch {
	case key == "" && c.NeedKey:
		return &provider.Error{Kind: provider.KindAuth, Code: "missing_key", Message: "no API key for " + shown + ": " + cmp.Or(c.NoKey, from+" is not set")}
	case strings.ContainsFunc(key, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
		return &provider.Error{Kind: provider.KindAuth, Code: "invalid_key", Message: "the key in " + from + " has a control character in it, such as a line end, and cannot be sent"}
	}
	return nil
}

// newClient is a copy of the client that follows redirects only within one server: anywhere else neither the key nor
// the conversation may go.
func newClient(given *http.Client) *http.Client {
	client := http.Client{}
	if given != nil {
		client = *given
	} else {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.DisableCompression = true // a compressor in between would hold deltas back
		transport.MaxIdleConnsPerHost = 32
		transport.ReadBufferSize = 32 << 10
		transport.WriteBufferSize = 64 << 10
		client.Transport = transport
	}
	client.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		from := via[0]
		if len(via) > 3 || req.Method != from.Method || req.URL.Scheme != from.URL.Scheme || req.URL.Host != from.URL.Host {
			return http.ErrUseLastResponse
		}
		return nil
	}
	return &client
}

// Route is what a model's replay state is bound to.
func (p *Provider) Route(model string) string {
	return p.cfg.Name + " " + p.shown + " " + model
}

// Stream implements provider.Provider.
func (p *Provider) Stream(ctx context.Context, req *provider.Request) iter.Seq2[provider.Chunk, error] {
	return func(yield func(provider.Chunk, error) bool) {
		if err := p.stream(ctx, req, yield); err != nil && !errors.Is(err, errLeft) {
			yield(provider.Chunk{}, p.mask.Error(err))
		}
	}
}

// endpoint is where a server takes requests, below its base URL.
const endpoint = "/chat/completions"

// errLeft means that the reader of a stream wants no more.
var errLeft = errors.New("reader left")

func (p *Provider) stream(ctx context.Context, req *provider.Request, yield func(provider.Chunk, error) bool) error {
	if p.unfit != nil {
		return p.unfit
	}
	sent, err := p.encode(req)
	if err != nil {
		return err
	}
	a, err := p.ask(ctx, sent)
	if err != nil {
		return err
	}
	defer a.close()
	if !yield(provider.Chunk{Options: sent.receipts}, nil) {
		return errLeft
	}
	s := stream{answer: a, model: &req.Model, route: p.Route(req.Model.ID), replay: p.cfg.ReplayReasoning, yield: yield}
	return s.read(ctx)
}

// ask sends a request for a reply, and gives the answer if its status is 200.
func (p *Provider) ask(ctx context.Context, sent *body) (*answer, error) {
	if ctx.Err() != nil {
		return nil, provider.Cancelled(ctx)
	}
	asking, cancel := context.WithCancelCause(ctx)
	a := &answer{provider: p, cancel: cancel, ctx: asking, gap: p.cfg.ChunkTimeout, where: http.MethodPost + " " + p.shown + endpoint}
	req, err := p.request(asking, sent)
	if err != nil {
		cancel(nil)
		return nil, fmt.Errorf("model call: %w", err)
	}
	a.end = time.AfterFunc(p.cfg.AttemptTimeout, func() { cancel(errAttempt) })
	late := time.AfterFunc(p.cfg.RequestTimeout, func() { cancel(errNoAnswer) })
	resp, err := p.client.Do(req)
	late.Stop()
	if err != nil {
		defer cancel(nil)
		defer a.end.Stop()
		return nil, a.unreachable(ctx, err)
	}
	a.body = resp.Body
	a.timer = time.AfterFunc(a.gap, func() { cancel(errChunkGap) })
	a.timer.Stop() // until the first Read
	if resp.StatusCode != http.StatusOK {
		defer a.close()
		return nil, a.refused(ctx, resp)
	}
	return a, nil
}

func (p *Provider) request(ctx context.Context, sent *body) (*http.Request, error) {
	target := *p.base
	target.Path = strings.TrimSuffix(target.Path, "/") + endpoint
	target.RawPath = ""
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), bytes.NewReader(sent.data))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream, application/json")
	p.identify(req)
	return req, nil
}

// identify adds what every request to the server carries: the headers of the configuration, and the key.
func (p *Provider) identify(req *http.Request) {
	req.Header.Set("User-Agent", "lashd")
	for name, value := range p.cfg.Headers {
		req.Header.Set(name, value.Reveal())
	}
	if key := p.cfg.Key.Reveal(); key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
}
