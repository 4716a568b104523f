package acp

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/sourcegraph/jsonrpc2"

	"lashd/internal/strictjson"
	"lashd/rpc/client"
	"lashd/rpc/protocol"
)

// Codes that the SDK has no constructor for, or another message.
const (
	// Error codes. -32000 and -32002 are the protocol's; the others are those of lashd's
	// own protocol.
	codeAuth       = -32000 // the protocol's auth_required
	codeNotFound   = -32002
	codeTurnFailed = -32021
	codeProvider   = -32020
	codeNoDaemon   = -32010
	codeTooLarge   = -32013
	codeOverloaded = -32001
)

// failure builds an error with the data that all errors of lashd carry: kind,
// whether to retry, and what took effect.
func failure(code int, message string, data protocol.ErrorData) *sdk.RequestError {
	return &sdk.RequestError{Code: code, Message: message, Data: data}
}

// parseError answers a line that is not JSON.
func parseError(err error) *sdk.RequestError {
	return failure(-32700, "the message is not valid JSON: "+err.Error(), protocol.ErrorData{
		Kind: protocol.KindParse, Retry: protocol.RetryNever, Outcome: protocol.EffectNone,
	})
}

// invalidRequest answers a message that is not valid at this point, such as a
// second initialize. Nothing has taken effect.
func invalidRequest(message string) *sdk.RequestError {
	return failure(-32600, message, protocol.ErrorData{
		Kind: protocol.KindInvalidRequest, Retry: protocol.RetryNever, Outcome: protocol.EffectNone,
	})
}

func notInitialized() *sdk.RequestError {
	return failure(-32600, "send initialize first", protocol.ErrorData{
		Kind: protocol.KindNotInitialized, Retry: protocol.RetryNever, Outcome: protocol.EffectNone,
	})
}

// unknownMethod names the method that is closest in spelling, to help authors of
// clients.
func unknownMethod(name string) *sdk.RequestError {
	nearest := strictjson.Nearest(name, slices.Collect(maps.Keys(methods)))
	return failure(-32601, "unknown method "+strictjson.Quote(name), protocol.ErrorData{
		Kind: protocol.KindMethodNotFound, Retry: protocol.RetryNever, Outcome: protocol.EffectNone, Nearest: nearest,
	})
}

// overloaded answers a request beyond maxOpen. The editor may send it again soon.
func overloaded() *sdk.RequestError {
	return failure(codeOverloaded, "too many requests are in flight; retry after some have been answered", protocol.ErrorData{
		Kind: protocol.KindOverloaded, Retry: protocol.RetryNow, RetryAfterMs: 50, Outcome: protocol.EffectNone,
	})
}

// invalidParams answers invalid params. pointer is the JSON pointer of the invalid
// value and begins the message; it is empty if the whole is invalid.
func invalidParams(pointer, message string) *sdk.RequestError {
	return failure(-32602, strings.TrimPrefix(pointer+": "+message, ": "), protocol.ErrorData{
		Kind: protocol.KindInvalidParams, Retry: protocol.RetryNever, Outcome: protocol.EffectNone, Pointer: pointer,
	})
}

// noSession answers params without a session id.
func noSession() error { return invalidParams("/sessionId", "is required") }

// authRequired answers a request that fails because the API key of a model
// provider is missing or was refused. Editors then offer the authentication
// methods.
func authRequired(message string, kind protocol.ErrorKind, effect protocol.EffectOutcome) *sdk.RequestError {
	return failure(codeAuth, message, protocol.ErrorData{Kind: kind, Retry: protocol.RetryNever, Outcome: effect})
}

// notFound answers params with the id of a session that is unknown or not open
// here.
func notFound(message string) *sdk.RequestError {
	return failure(codeNotFound, message, protocol.ErrorData{
		Kind: protocol.KindSessionNotFound, Retry: protocol.RetryNever, Outcome: protocol.EffectNone,
	})
}

// requestError converts an error into the one that the editor gets. Errors of the
// daemon keep their code, message and data. Errors without a code come from the
// connection: the editor gets codeNoDaemon and an unknown outcome, and may retry.
func requestError(err error) *sdk.RequestError {
	if own, ok := errors.AsType[*sdk.RequestError](err); ok {
		return withData(own)
	}
	if theirs, ok := errors.AsType[*jsonrpc2.Error](err); ok {
		e := &sdk.RequestError{Code: int(theirs.Code), Message: theirs.Message}
		if theirs.Data != nil {
			e.Data = *theirs.Data
		}
		return withData(e)
	}
	if big, ok := errors.AsType[*client.TooLargeError](err); ok {
		return failure(codeTooLarge, big.Error(), protocol.ErrorData{Kind: protocol.KindTooLarge, Retry: protocol.RetryNever, Outcome: protocol.EffectNone})
	}
	if errors.Is(err, context.Canceled) {
		return failure(-32800, "the request was cancelled", protocol.ErrorData{
			Kind: protocol.KindCancelled, Retry: protocol.RetryReload, Outcome: protocol.EffectUnknown,
		})
	}
	return failure(codeNoDaemon, err.Error(), protocol.ErrorData{
		Kind: protocol.KindShuttingDown, Retry: protocol.RetryNow, Outcome: protocol.EffectUnknown,
	})
}

// withData adds error data to an error that lacks it, such as one of the SDK or of
// the editor itself.
func withData(e *sdk.RequestError) *sdk.RequestError {
	switch e.Data.(type) {
	case protocol.ErrorData, json.RawMessage:
		return e
	}
	return failure(e.Code, e.Message, protocol.ErrorData{
		Kind: protocol.KindInternal, Retry: protocol.RetryReload, Outcome: protocol.EffectUnknown,
	})
}

func internalError() *sdk.RequestError {
	return withData(sdk.NewInternalError(nil))
}

// kindOf returns the kind of an error that the daemon answered; empty for all
// other errors.
func kindOf(err error) protocol.ErrorKind {
	theirs, ok := errors.AsType[*jsonrpc2.Error](err)
	if !ok || theirs.Data == nil {
		return ""
	}
	var data protocol.ErrorData
	if json.Unmarshal(*theirs.Data, &data) != nil {
		return ""
	}
	return data.Kind
}
