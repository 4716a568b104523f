// Package endpoint is the HTTP side of every adapter of a model API: it sends a request to one server, reads the event
// stream of the answer, and turns everything that can go wrong on the way into a *provider.Error without a key in it.
//
// The adapters (chatcompletions, responses, anthropic, gemini) add what differs between the APIs: how a request body is
// written, and a Decoder for the events. This package holds the rules that all of them share: keys are sent to the configured server
// only, bodies and lines have limits, a silent server times out, and a stream that ends without the API's own sign of a
// complete reply is an error.
package endpoint

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// Config says where a server is and how to authenticate. Only BaseURL is required.
type Config struct {
	Name      string                     // name of the provider in routes and messages; default the Dialect's name
	BaseURL   string                     // URL without the path of the API method; a query is kept
	Key       provider.Secret            // API key; white space around it is removed
	KeyHeader string                     // header for the key, sent as it is; default the Dialect's; "Authorization" sends "Bearer KEY"
	KeyFrom   string                     // where the key comes from, for messages, such as "the environment variable X"
	NoKey     string                     // advice for a missing key, after "no API key for URL: "; default: KeyFrom is not set
	NeedKey   bool                       // fail without a request if there is no key
	Headers   map[string]provider.Secret // further headers of each request; each value is treated as a key

	HTTPClient     *http.Client  // must have no Timeout of its own; default: a client that keeps connections
	RequestTimeout time.Duration // time until the server starts to answer; default 300s
	ChunkTimeout   time.Duration // longest silence inside an answer; comments count as life; default 120s
	AttemptTimeout time.Duration // time for a request with its whole answer; default 30min
}

// Dialect is what an API fixes for all of its servers.
type Dialect struct {
	Name      string            // name of the API in messages, such as "Chat Completions"
	KeyHeader string            // header for the key; default Authorization
	Headers   map[string]string // fixed headers, such as the version of the API
	ModelPath string            // path of the list of models, below the base URL; Check asks for it
	Evidence  string            // what marks a complete reply, for messages, such as "finish_reason"
}

// Endpoint is one model server. It is safe for concurrent use and opens no connection before the first call.
type Endpoint struct {
	cfg     Config // with defaults filled in
	dialect Dialect
	base    *url.URL       // nil if BaseURL is not usable
	shown   string         // base URL without userinfo and query, which can hold keys
	invalid error          // why BaseURL or Key cannot be used; each call fails with it
	client  *http.Client   // follows redirects only within the server
	mask    *provider.Mask // removes keys from errors
}

// New returns an endpoint. A BaseURL or a Key that cannot be used is reported by each call.
func New(cfg Config, dialect Dialect) *Endpoint {
	cfg.Name = cmp.Or(cfg.Name, dialect.Name)
	cfg.KeyHeader = cmp.Or(cfg.KeyHeader, dialect.KeyHeader, "Authorization")
	cfg.RequestTimeout = cmp.Or(cfg.RequestTimeout, 300*time.Second)
	cfg.ChunkTimeout = cmp.Or(cfg.ChunkTimeout, 120*time.Second)
	cfg.AttemptTimeout = cmp.Or(cfg.AttemptTimeout, 30*time.Minute)
	cfg.Key = provider.NewSecret(strings.TrimSpace(cfg.Key.Reveal()))
	e := &Endpoint{cfg: cfg, dialect: dialect, client: newClient(cfg.HTTPClient)}
	if e.base, e.invalid = parseBase(cfg.BaseURL); e.base != nil {
		e.shown = Shown(cfg.BaseURL)
		e.invalid = cfg.checkKey(e.shown)
	}
	e.mask = provider.NewMask(e.keys()...)
	return e
}

// Route identifies provider, server and model. Replay state is valid on the route that made it, and on no other.
// It has no key, so it can be stored with the reply.
func (e *Endpoint) Route(model string) string {
	return e.cfg.Name + " " + e.shown + " " + model
}

// Call is one request for a reply.
type Call struct {
	Path     string                   // path below the base URL, such as "/chat/completions"; may have a query
	Body     []byte                   // JSON; not changed while the call runs
	Receipts []protocol.OptionReceipt // of the request's options; the first chunk of the reply
	Model    *protocol.ModelSpec      // its context window tells a full window from a reached output limit
}

// Stream makes the call that prepare returns and streams its reply as provider.Provider says. prepare runs once for each
// iteration of the sequence.
func (e *Endpoint) Stream(ctx context.Context, prepare func() (*Call, Decoder, error)) iter.Seq2[provider.Chunk, error] {
	return func(yield func(provider.Chunk, error) bool) {
		if err := e.stream(ctx, prepare, yield); err != nil && !errors.Is(err, errReaderLeft) {
			yield(provider.Chunk{}, e.mask.Error(err))
		}
	}
}

// errReaderLeft means that the reader of a stream wants no more chunks.
var errReaderLeft = errors.New("reader left")

// stream makes one call on the goroutine of the reader. Its errors may have keys in them; Stream removes them.
func (e *Endpoint) stream(ctx context.Context, prepare func() (*Call, Decoder, error), yield func(provider.Chunk, error) bool) error {
	if e.invalid != nil {
		return e.invalid
	}
	call, decoder, err := prepare()
	if err != nil {
		return err
	}
	a, err := e.send(ctx, call)
	if err != nil {
		return err
	}
	defer a.close()
	if !yield(provider.Chunk{Options: call.Receipts}, nil) {
		return errReaderLeft
	}
	r := &Reply{answer: a, model: call.Model, decoder: decoder, yield: yield}
	return r.read(ctx)
}

// Shown returns a base URL without its user, password and query, which may be keys.
func Shown(base string) string {
	u, err := parseBase(base)
	if err != nil {
		return "(invalid base_url)"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// keys returns everything that a server sees and that may be a key.
func (e *Endpoint) keys() []provider.Secret {
	keys := []provider.Secret{e.cfg.Key}
	for _, header := range e.cfg.Headers {
		keys = append(keys, header)
		if scheme, key, ok := strings.Cut(header.Reveal(), " "); ok && strings.EqualFold(scheme, "bearer") {
			keys = append(keys, provider.NewSecret(key))
		}
	}
	if e.base == nil {
		return keys
	}
	password, _ := e.base.User.Password()
	keys = append(keys, provider.NewSecret(e.base.User.Username()), provider.NewSecret(password))
	for name, values := range e.base.Query() {
		for _, v := range values {
			if secretName().MatchString(name) {
				keys = append(keys, provider.NewSecret(v))
			}
		}
	}
	return keys
}

// secretName matches query parameters that hold keys, but not the version of the API.
var secretName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)key|token|secret|pass|sig|auth|code`) })

// parseBase parses a base URL. Its error has the kind KindValidation and does not quote the URL.
func parseBase(text string) (*url.URL, error) {
	base, err := url.Parse(text)
	if err != nil {
		err = errors.New("it is not a URL") // the parser's message repeats it, with the keys in it
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

// checkKey rejects a missing key that the server needs, and a key that cannot be sent in a header.
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

// newClient returns a copy of the client that follows redirects only within one server: neither the key nor the
// conversation may go anywhere else.
func newClient(given *http.Client) *http.Client {
	client := http.Client{}
	if given != nil {
		client = *given
	} else {
		client.Transport = sharedTransport()
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

// sharedTransport keeps the connections of all endpoints: two models of one server use the same ones.
var sharedTransport = sync.OnceValue(func() *http.Transport {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableCompression = true // a compressor in between would hold deltas back
	transport.MaxIdleConnsPerHost = 32
	transport.ReadBufferSize = 32 << 10
	transport.WriteBufferSize = 64 << 10
	return transport
})

// identify adds the headers that every request to the server carries, with the key.
func (e *Endpoint) identify(h http.Header) {
	h.Set("User-Agent", "lashd")
	for _, name := range slices.Sorted(maps.Keys(e.dialect.Headers)) {
		h.Set(name, e.dialect.Headers[name])
	}
	for name, value := range e.cfg.Headers {
		h.Set(name, value.Reveal())
	}
	key := e.cfg.Key.Reveal()
	switch {
	case key == "":
	case strings.EqualFold(e.cfg.KeyHeader, "Authorization"):
		h.Set("Authorization", "Bearer "+key)
	default:
		h.Set(e.cfg.KeyHeader, key)
	}
}
