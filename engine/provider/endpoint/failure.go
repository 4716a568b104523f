package endpoint

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"sync"
	"syscall"
	"time"

	"lashd/engine/provider"
)

// unreachable returns the error of a request that got no answer.
// An untrusted certificate is not retried, since the next attempt would meet it again.
func (a *answer) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return provider.Cancelled(ctx)
	}
	if errors.Is(context.Cause(a.ctx), errAttempt) {
		return a.overdue(err)
	}
	if errors.Is(context.Cause(a.ctx), errNoAnswer) {
		return &provider.Error{
			Kind:      provider.KindTimeout,
			Code:      "request_timeout",
			Message:   fmt.Sprintf("%s: no answer within %v", a.where, a.endpoint.cfg.RequestTimeout),
			Retryable: true,
			Err:       err,
		}
	}
	// url.Error repeats the URL with its query, which may hold a key.
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	_, distrusted := errors.AsType[*tls.CertificateVerificationError](err)
	return &provider.Error{
		Kind:      provider.KindTransport,
		Code:      "connect_failed",
		Message:   fmt.Sprintf("%s: %v; %s", a.where, err, connectHint(err)),
		Retryable: !distrusted,
		Down:      isDown(err),
		Err:       err,
	}
}

// connectHint returns what a person can check after a request that got no answer.
func connectHint(err error) string {
	expired, ok := errors.AsType[x509.CertificateInvalidError](err)
	_, distrusted := errors.AsType[*tls.CertificateVerificationError](err)
	_, unnamed := errors.AsType[*net.DNSError](err)
	switch {
	case ok && expired.Reason == x509.Expired:
		return "is the clock of this machine right?"
	case distrusted:
		return "is a proxy in between, or does this network ask you to log in?"
	case unnamed:
		return "is this machine online, and the base URL right?"
	}
	return "is the server running and the base URL right?"
}

// isDown reports whether nothing answers at the address: the connection is refused, or the name has no address.
func isDown(err error) bool {
	name, ok := errors.AsType[*net.DNSError](err)
	return errors.Is(err, syscall.ECONNREFUSED) || ok && name.IsNotFound
}

// broken returns the error of an answer that cannot be read to its end.
// The reader's own cancellation counts before any timeout.
func (a *answer) broken(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return provider.Cancelled(ctx)
	}
	if errors.Is(err, errLongLine) {
		return provider.TooLong(a.where + ": a line of the answer, or the whole of it, is too long")
	}
	if errors.Is(context.Cause(a.ctx), errAttempt) {
		return a.overdue(err)
	}
	if errors.Is(context.Cause(a.ctx), errChunkGap) {
		return &provider.Error{
			Kind:      provider.KindTimeout,
			Code:      "chunk_timeout",
			Message:   fmt.Sprintf("%s: the server sent nothing for %v", a.where, a.gap),
			Retryable: true,
			Err:       err,
		}
	}
	return &provider.Error{
		Kind:      provider.KindStream,
		Code:      "stream_broken",
		Message:   fmt.Sprintf("%s: the answer broke off: %v", a.where, err),
		Retryable: true,
		Err:       err,
	}
}

// overdue returns the error of an answer that takes too long. It is not retried: the next answer would take as long.
func (a *answer) overdue(err error) *provider.Error {
	return &provider.Error{
		Kind:    provider.KindTimeout,
		Code:    "attempt_timeout",
		Message: fmt.Sprintf("%s: the answer was not complete within %v", a.where, a.endpoint.cfg.AttemptTimeout),
		Err:     err,
	}
}

// incomplete returns the error of an answer that ended without the API's evidence of a complete reply.
// A retry may get the whole reply.
func (a *answer) incomplete() *provider.Error {
	return &provider.Error{
		Kind:      provider.KindStream,
		Code:      "ended_without_evidence",
		Message:   a.where + ": the answer ended without a " + a.endpoint.dialect.Evidence,
		Retryable: true,
	}
}

// malformed returns the error of an answer that does not have the API's form.
func (a *answer) malformed(what string, data []byte, err error) *provider.Error {
	return &provider.Error{
		Kind:    provider.KindStream,
		Code:    "malformed_answer",
		Message: fmt.Sprintf("%s: %s; is this a server of the %s API?", a.where, what, a.endpoint.dialect.Name),
		Raw:     a.raw(data),
		Err:     err,
	}
}

// maxRaw bounds how much of a rejection is read and searched for keys, which is slow, in bytes.
const maxRaw = 64 << 10

// rejected returns the error of an answer whose status is not 200.
// A wait in the headers counts before one in the body.
func (a *answer) rejected(ctx context.Context, resp *http.Response) error {
	data, err := io.ReadAll(io.LimitReader(a, maxRaw+1))
	if err != nil && ctx.Err() != nil {
		return provider.Cancelled(ctx)
	}
	if to := resp.Header.Get("Location"); resp.StatusCode/100 == 3 && to != "" {
		return a.redirected(resp, to)
	}
	body := parseFailure(data)
	failure := a.classify(resp.StatusCode, body)
	failure.RetryAfter = cmp.Or(retryAfter(resp.Header, time.Now()), body.delay())
	failure.Raw = a.raw(data)
	return failure
}

// redirected returns the error of an answer that points to another server. It shows the target without its query and user.
func (a *answer) redirected(resp *http.Response, to string) *provider.Error {
	shown := "elsewhere"
	if u, err := url.Parse(to); err == nil {
		shown = "to " + (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	}
	return &provider.Error{
		Kind:    provider.KindHTTP,
		Code:    "redirected",
		Message: fmt.Sprintf("%s: redirected %s, where the key is not sent; change the base URL, or log in to this network if it asks you to", a.where, shown),
		Status:  resp.StatusCode,
	}
}

// raw returns an excerpt of a server's answer. Keys are removed before it is cut: half a key would not be found.
func (a *answer) raw(data []byte) string { return provider.Excerpt(a.mask(string(data))) }

// mask removes the keys from a server's text and shortens it if it is very long.
func (a *answer) mask(text string) string { return a.endpoint.mask.Cut(text, maxRaw) }

// word returns a server's code if it is fit to be the code of a provider.Error: a stable word without a key.
func (a *answer) word(code scalar) string {
	if text := string(code); stable().MatchString(text) && a.mask(text) == text {
		return text
	}
	return ""
}

// stable matches the codes that clients may compare. Other texts of a server are not used as codes.
var stable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`) })
