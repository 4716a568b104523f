package openai

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// unreachable is the error of a request that got no answer.
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
			Message:   fmt.Sprintf("%s: no answer within %v", a.where, a.provider.cfg.RequestTimeout),
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
		Message:   fmt.Sprintf("%s: %v; is the server running and the base URL right?", a.where, err),
		Retryable: !distrusted,
		Err:       err,
	}
}

// broken is the error of an answer that cannot be read on.
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
			Message:   fmt.Sprintf("%s: nothing more came for %v", a.where, a.gap),
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

// overdue is the error of an answer that does not come to its end. The next one would take as long.
func (a *answer) overdue(err error) *provider.Error {
	return &provider.Error{
		Kind:    provider.KindTimeout,
		Code:    "attempt_timeout",
		Message: fmt.Sprintf("%s: no whole answer within %v", a.where, a.provider.cfg.AttemptTimeout),
		Err:     err,
	}
}

// cutOff is the error of an answer that ended without the evidence that the reply is whole.
func (a *answer) cutOff() *provider.Error {
	return &provider.Error{
		Kind:      provider.KindStream,
		Code:      "ended_without_evidence",
		Message:   a.where + ": the answer ended without a finish_reason",
		Retryable: true,
	}
}

// garbled is the error of an answer that is not in the API's form.
func (a *answer) garbled(what string, data []byte, err error) *provider.Error {
	return &provider.Error{
		Kind:    provider.KindStream,
		Code:    "malformed_answer",
		Message: fmt.Sprintf("%s: %s; is this a Chat Completions server?", a.where, what),
		Raw:     a.raw(data),
		Err:     err,
	}
}

// maxRaw bounds what is read of a refusal and searched for keys, which is slow.
const maxRaw = 64 << 10

// refused is the error of an answer whose status is not 200.
func (a *answer) refused(ctx context.Context, resp *http.Response) error {
	data, err := io.ReadAll(io.LimitReader(a, maxRaw+1))
	if err != nil && ctx.Err() != nil {
		return provider.Cancelled(ctx)
	}
	if to := resp.Header.Get("Location"); resp.StatusCode/100 == 3 && to != "" {
		return a.redirected(resp, to)
	}
	failure := a.classify(resp.StatusCode, parseFailure(data))
	failure.RetryAfter = retryAfter(resp.Header, time.Now())
	failure.Raw = a.raw(data)
	return failure
}

func (a *answer) redirected(resp *http.Response, to string) *provider.Error {
	shown := "elsewhere"
	if u, err := url.Parse(to); err == nil {
		shown = "to " + (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	}
	return &provider.Error{
		Kind:    provider.KindHTTP,
		Code:    "redirected",
		Message: fmt.Sprintf("%s: redirected %s, where the key is not sent; change the base URL", a.where, shown),
		Status:  resp.StatusCode,
	}
}

// raw is an excerpt of what a server said. Only what has no key in it any more may be cut.
func (a *answer) raw(data []byte) string { return provider.Excerpt(a.mask(string(data))) }

// mask takes the keys out of what a server said, and shortens it if it is very long.
func (a *answer) mask(text string) string { return a.provider.mask.Cut(text, maxRaw) }

// word is a server's code if it can be ours: a stable word, without a key.
func (a *answer) word(code scalar) string {
	if text := string(code); stable().MatchString(text) && a.mask(text) == text {
		return text
	}
	return ""
}

var stable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`) })

// failureBody is the error object, in any of the forms that servers give it.
type failureBody struct {
	Message string `json:"message"`
	Type    scalar `json:"type"`
	Code    scalar `json:"code"`
}

// UnmarshalJSON implements json.Unmarshaler: some servers give only a text.
func (f *failureBody) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		return json.Unmarshal(data, &f.Message)
	}
	type object failureBody
	if err := json.Unmarshal(data, (*object)(f)); err != nil {
		f.Message = string(data)
	}
	return nil
}

// scalar is a text that some servers give as a number.
type scalar string

// UnmarshalJSON implements json.Unmarshaler.
func (s *scalar) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		return json.Unmarshal(data, (*string)(s))
	}
	if !bytes.Equal(data, []byte("null")) {
		*s = scalar(data)
	}
	return nil
}

// parseFailure reads the body of a refusal: {"error": {...}}, {"error": "..."}, the object itself, {"detail": ...}, a
// list of one of these, or just text.
func parseFailure(data []byte) failureBody {
	data = bytes.TrimSpace(data)
	if inner, ok := bytes.CutPrefix(data, []byte("[")); ok {
		data = bytes.TrimSuffix(inner, []byte("]"))
	}
	var outer struct {
		Error  *failureBody    `json:"error"`
		Detail json.RawMessage `json:"detail"`
	}
	var plain failureBody
	if json.Unmarshal(data, &outer) != nil || json.Unmarshal(data, &plain) != nil {
		line, _, _ := strings.Cut(string(data), "\n")
		return failureBody{Message: line}
	}
	if outer.Error != nil {
		return *outer.Error
	}
	plain.Message = cmp.Or(plain.Message, strings.Trim(string(outer.Detail), `"`))
	return plain
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	if runes := []rune(line); len(runes) > 200 {
		return string(runes[:200])
	}
	return line
}

// retryable statuses: those of runtime 5.6.
var retryable = map[int]bool{408: true, 409: true, 425: true, 429: true, 500: true, 502: true, 503: true, 504: true}

// meaning is what a code that servers give says, whatever the status.
type meaning struct {
	kind provider.ErrorKind
	stop protocol.StopReason
}

var (
	overflow = meaning{provider.KindValidation, protocol.StopContextLimit}
	filtered = meaning{provider.KindValidation, protocol.StopContentFilter}
	noCredit = meaning{provider.KindQuota, ""}
	badKey   = meaning{provider.KindAuth, ""}
)

var meanings = map[scalar]meaning{
	"context_length_exceeded":    overflow,
	"exceed_context_size_error":  overflow,
	"content_filter":             filtered,
	"content_policy_violation":   filtered,
	"insufficient_quota":         noCredit,
	"insufficient_credits":       noCredit,
	"billing_hard_limit_reached": noCredit,
	"billing_not_active":         noCredit,
	"invalid_api_key":            badKey,
	"authentication_error":       badKey,
}

// passing are the types of errors that servers report inside a stream without a status, and that may be gone next time.
var passing = map[scalar]bool{
	"": true, "api_error": true, "server_error": true, "internal_error": true, "internal_server_error": true,
	"InternalServerError": true, "overloaded": true, "overloaded_error": true, "timeout": true,
	"service_unavailable": true,
}

// classify turns a refusal into an error. Inside a stream there is no status of HTTP, but often a code that is one.
func (a *answer) classify(status int, f failureBody) *provider.Error {
	e := &provider.Error{Kind: provider.KindHTTP, Status: status}
	if status == 0 {
		e.Kind = provider.KindStream
	}
	if n, err := strconv.Atoi(string(f.Code)); err == nil && n >= 400 && n < 600 {
		status, f.Code = cmp.Or(status, n), "" // a number is not a stable word
	}
	e.Code = cmp.Or(a.word(f.Code), a.word(f.Type), statusCode(status))
	e.Retryable = retryable[status] || status == 0 && passing[f.Type] && passing[f.Code]
	e.Throttled = status == http.StatusTooManyRequests || f.Code == "rate_limit_exceeded"
	if e.Throttled {
		e.Retryable = true
	}
	if m, ok := a.meaning(status, f); ok {
		e.Kind, e.Stop = m.kind, m.stop
		e.Retryable, e.Throttled = false, false
	}
	if e.Stop == protocol.StopContextLimit {
		e.Code = "context_length_exceeded"
	}
	said := firstLine(a.mask(f.Message)) // in this order: half a key would not be found
	e.Message = fmt.Sprintf("%s: %s%s", a.where, cmp.Or(said, "no reason given"), advice(status, e))
	return e
}

func (a *answer) meaning(status int, f failureBody) (meaning, bool) {
	for _, code := range []scalar{f.Code, f.Type} {
		if m, ok := meanings[code]; ok {
			return m, true
		}
	}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return badKey, true
	case http.StatusPaymentRequired:
		return noCredit, true
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		if tellsOverflow(f.Message) {
			return overflow, true
		}
		return meaning{kind: provider.KindValidation}, true
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return meaning{kind: provider.KindValidation}, true
	case http.StatusNotImplemented:
		return meaning{kind: provider.KindUnsupported}, true
	}
	return meaning{}, false
}

// tellsOverflow reads the message, for servers without a code for it.
func tellsOverflow(message string) bool {
	message = strings.ToLower(message)
	for _, words := range []string{
		"maximum context length", "context window", "context length", "context size", "prompt is too long", "input is too long",
	} {
		if strings.Contains(message, words) {
			return true
		}
	}
	return false
}

func statusCode(status int) string {
	if status == 0 {
		return "server_error"
	}
	return cmp.Or(strings.ReplaceAll(strings.ToLower(http.StatusText(status)), " ", "_"), "http_"+strconv.Itoa(status))
}

func advice(status int, e *provider.Error) string {
	switch {
	case e.Kind == provider.KindAuth:
		return "; check the key of this provider"
	case e.Kind == provider.KindQuota:
		return "; the account has no credit left"
	case status == http.StatusNotFound:
		return "; check the base URL and the model's id"
	}
	return ""
}

// retryAfter reads how long the server wants to be left alone.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return duration(ms, time.Millisecond)
	}
	value := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(value, 64); err == nil {
		return duration(s, time.Second)
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// duration is n units, between zero and a day: what a server writes there may be anything.
func duration(n float64, unit time.Duration) time.Duration {
	const day = 24 * time.Hour
	if !(n > 0) {
		return 0
	}
	return time.Duration(min(n*float64(unit), float64(day)))
}
