package openai

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

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
	e.Message = fmt.Sprintf("%s: %s%s", a.where, cmp.Or(said, fmt.Sprintf("HTTP %d without a reason", status)), a.advice(status, e))
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

func (a *answer) advice(status int, e *provider.Error) string {
	switch {
	case e.Kind == provider.KindAuth:
		return "; check " + cmp.Or(a.provider.cfg.KeyFrom, "the key of this provider")
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
