package endpoint

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// retryable are the HTTP statuses after which a call can be tried again. 529 is Anthropic's "overloaded".
var retryable = map[int]bool{408: true, 409: true, 425: true, 429: true, 500: true, 502: true, 503: true, 504: true, 529: true}

// meaning says how to treat a failure with a certain code, whatever the HTTP status.
type meaning struct {
	kind provider.ErrorKind  // replaces KindHTTP or KindStream
	stop protocol.StopReason // "" if the failure is not a way of stopping
}

var (
	overflow = meaning{provider.KindValidation, protocol.StopContextLimit}  // the prompt does not fit into the model's context window
	filtered = meaning{provider.KindValidation, protocol.StopContentFilter} // the server refuses the contents
	noCredit = meaning{provider.KindQuota, ""}                              // waiting does not help, unlike after a rate limit
	badKey   = meaning{provider.KindAuth, ""}                               // missing, wrong, or without permission
)

// meanings has the codes of all APIs; none means different things in two of them.
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
	"permission_error":           badKey,
	"UNAUTHENTICATED":            badKey,
	"PERMISSION_DENIED":          badKey,
	"API_KEY_INVALID":            badKey,
	"billing_error":              noCredit,
	"BILLING_DISABLED":           noCredit,
	"request_too_large":          overflow,
	"invalid_image":              {kind: provider.KindValidation},
	"invalid_prompt":             filtered,
}

// transient are the codes of failures that servers report inside a stream without a status, and that a retry may cure.
var transient = map[scalar]bool{
	"": true, "api_error": true, "server_error": true, "internal_error": true, "internal_server_error": true,
	"InternalServerError": true, "overloaded": true, "overloaded_error": true, "timeout": true,
	"server_is_overloaded": true, "slow_down": true,
	"service_unavailable": true, "rate_limit_error": true, "rate_limit_exceeded": true, "timeout_error": true,
	"MALFORMED_FUNCTION_CALL": true, "UNEXPECTED_TOOL_CALL": true, "TOO_MANY_TOOL_CALLS": true,
	"UNAVAILABLE": true, "INTERNAL": true, "DEADLINE_EXCEEDED": true, "RESOURCE_EXHAUSTED": true, "ABORTED": true,
}

// throttled are the codes of a server that asks for fewer requests.
var throttled = map[scalar]bool{"rate_limit_exceeded": true, "rate_limit_error": true, "RESOURCE_EXHAUSTED": true}

// classify turns a rejection into an error. status is 0 for a failure inside a stream, whose code is often an HTTP status.
// Known codes decide before the status does. A meaning makes the error final: it is neither retried nor throttled.
func (a *answer) classify(status int, f Failure) *provider.Error {
	e := &provider.Error{Kind: provider.KindHTTP, Status: status}
	if status == 0 {
		e.Kind = provider.KindStream
	}
	if n, err := strconv.Atoi(string(f.Code)); err == nil && n >= 400 && n < 600 {
		status, f.Code = cmp.Or(status, n), "" // a number is not a stable word
	}
	e.Code = cmp.Or(a.code(f), statusCode(status))
	e.Retryable = retryable[status] || status == 0 && transient[f.Type] && transient[f.Code] && transient[f.Status]
	e.Throttled = status == http.StatusTooManyRequests || slices.ContainsFunc(f.words(), func(w scalar) bool { return throttled[w] })
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
	e.Reason = firstLine(a.mask(f.Message)) // in this order: half a key would not be found
	e.Message = fmt.Sprintf("%s: %s%s", a.where, cmp.Or(e.Reason, fmt.Sprintf("HTTP %d without a reason", status)), a.advice(status, e))
	return e
}

// code returns the failure's most specific stable word, "" if it has none.
func (a *answer) code(f Failure) string {
	for _, w := range f.words() {
		if word := a.word(w); word != "" {
			return word
		}
	}
	return ""
}

// meaning returns how to treat a failure, and reports whether its codes or its status decide that. Codes count before the status.
func (a *answer) meaning(status int, f Failure) (meaning, bool) {
	for _, code := range f.words() {
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
		switch {
		case mentionsOverflow(f.Message):
			return overflow, true
		case strings.Contains(f.Message, "credit balance is too low"): // Anthropic has no code for it
			return noCredit, true
		}
		return meaning{kind: provider.KindValidation}, true
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return meaning{kind: provider.KindValidation}, true
	case http.StatusNotImplemented:
		return meaning{kind: provider.KindUnsupported}, true
	}
	return meaning{}, false
}

// mentionsOverflow reports whether a message says that the prompt is too long, for servers that have no code for it.
func mentionsOverflow(message string) bool {
	message = strings.ToLower(message)
	for _, words := range []string{
		"maximum context length", "context window", "context length", "context size", "prompt is too long", "input is too long",
		"exceeds the maximum number of tokens",
	} {
		if strings.Contains(message, words) {
			return true
		}
	}
	return false
}

// statusCode returns the code of a failure without one of its own, such as "bad_gateway" for 502.
func statusCode(status int) string {
	if status == 0 {
		return "server_error"
	}
	return cmp.Or(strings.ReplaceAll(strings.ToLower(http.StatusText(status)), " ", "_"), "http_"+strconv.Itoa(status))
}

// advice returns what a person can do about a failure, with a leading "; ", or "" if there is nothing to say.
func (a *answer) advice(status int, e *provider.Error) string {
	switch {
	case e.Kind == provider.KindAuth:
		return "; check " + cmp.Or(a.endpoint.cfg.KeyFrom, "the key of this provider")
	case e.Kind == provider.KindQuota:
		return "; the account has no credit left"
	case status == http.StatusNotFound:
		return "; check the base URL and the model's id"
	}
	return ""
}

// retryAfter reads how long the server asks to wait, at most maxWait.
// Retry-After-Ms counts before Retry-After, which is a number of seconds or a date. 0 means that the server asks for no wait.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return duration(ms, time.Millisecond)
	}
	value := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(value, 64); err == nil {
		return duration(s, time.Second)
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(at.Sub(now), 0), maxWait)
	}
	return 0
}

// maxWait bounds what a server can ask for: its header may hold anything.
const maxWait = 24 * time.Hour

// duration returns n units, between 0 and maxWait.
func duration(n float64, unit time.Duration) time.Duration {
	if !(n > 0) {
		return 0
	}
	return time.Duration(min(n*float64(unit), float64(maxWait)))
}
