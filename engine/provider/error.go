package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"lashd/rpc/protocol"
)

// ErrorKind groups the failures of model calls.
type ErrorKind string

const (
	KindTransport   ErrorKind = "transport"   // no connection, or none that is trusted
	KindTimeout     ErrorKind = "timeout"     // one of the endpoint's time limits passed
	KindHTTP        ErrorKind = "http"        // a status that no other kind describes
	KindStream      ErrorKind = "stream"      // the stream broke or ended without the vendor's terminal evidence
	KindAuth        ErrorKind = "auth"        // the key is missing, wrong or without permission
	KindValidation  ErrorKind = "validation"  // the request itself, or the configuration, is wrong
	KindQuota       ErrorKind = "quota"       // the account has no credit
	KindUnsupported ErrorKind = "unsupported" // the server does not implement the request
	KindUnknown     ErrorKind = "unknown"     // anything else, such as a cancelled call
)

// Error is a failed model call. Its text names the endpoint and what to do; it never contains a key.
type Error struct {
	Kind       ErrorKind
	Code       string              // a stable word: the vendor's own code where it has one
	Message    string              // for people, without the prefix "model call: "
	Reason     string              // the first line of what the server says; "": nothing. Message has it too
	Status     int                 // HTTP status, 0 if there was none
	Retryable  bool                // the same request may succeed later
	RetryAfter time.Duration       // what the server asked for; 0: nothing
	Throttled  bool                // waiting does not count as an attempt
	Down       bool                // nothing answers at the server's address; Policy.DownFor bounds the retries instead of attempts
	Stop       protocol.StopReason // set for failures that are a way of stopping: overflow, filter
	Raw        string              // of the answer, at most 4,000 characters
	Err        error               // the cause; may be nil
}

func (e *Error) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("model call: %s (%s, HTTP %d)", e.Message, e.Code, e.Status)
	}
	return fmt.Sprintf("model call: %s (%s)", e.Message, e.Code)
}

// Unwrap returns the cause, for errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Err }

// Elsewhere reports whether another model may answer a request that failed: the server is down, overloaded or out of order, does not have
// the model, or does not accept the key, or the account has no credit. A request that is itself wrong or too long, or that a filter
// stopped, would fail there as well, or must not be tried elsewhere.
func (e *Error) Elsewhere() bool {
	if e.Stop != "" {
		return false
	}
	switch e.Kind {
	case KindTransport, KindTimeout, KindAuth, KindQuota:
		return true
	case KindHTTP, KindStream:
		return e.Retryable || e.Status >= http.StatusInternalServerError
	case KindValidation:
		return e.Status == http.StatusNotFound || e.Code == "model_not_found" || e.Code == "invalid_base_url"
	}
	return false
}

// Issue is the error as a turn reports it.
func (e *Error) Issue() protocol.Issue {
	return protocol.Issue{Kind: "provider", Code: e.Code, Message: e.Message, Stop: e.Stop, Raw: e.Raw, Retryable: e.Retryable, Auth: e.Kind == KindAuth}
}

// Cancelled is the error of a call whose ctx is done.
func Cancelled(ctx context.Context) *Error {
	cause := context.Cause(ctx)
	return &Error{
		Kind:    KindUnknown,
		Code:    "cancelled",
		Message: cause.Error(),
		Stop:    protocol.StopCancelled,
		Err:     errors.Join(ctx.Err(), cause),
	}
}

// rawLimit bounds Error.Raw, in characters.
const rawLimit = 4000

// Excerpt shortens what a server answered to what Error.Raw may hold: its head and its tail.
func Excerpt(raw string) string {
	runes := []rune(raw)
	if len(runes) <= rawLimit {
		return string(runes)
	}
	const gap = "\n[...]\n"
	half := (rawLimit - len(gap)) / 2
	return string(runes[:half]) + gap + string(runes[len(runes)-half:])
}
