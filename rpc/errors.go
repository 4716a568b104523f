package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/sourcegraph/jsonrpc2"

	"lashd/engine"
	"lashd/engine/background"
	"lashd/engine/decision"
	"lashd/engine/models"
	"lashd/engine/plugin"
	"lashd/engine/queue"
	"lashd/engine/tool"
	"lashd/engine/undo"
	"lashd/engine/workgroup"
	"lashd/internal/pathresolve"
	"lashd/persistence"
	"lashd/pluginloader"
	"lashd/pluginloader/mcp"
	"lashd/rpc/protocol"
)

// Error codes of JSON-RPC and of lashd. Clients should use the kind in the error data, which is
// more specific.
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeMethodNotFound = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeOverloaded     = -32001
	codeNotFound       = -32002
	codeState          = -32010 // the current state does not allow the request
	codeConflict       = -32011
	codeDenied         = -32012
	codeTooLarge       = -32013
	codeProvider       = -32020
	codePlugin         = -32021
	codeStorage        = -32030
	codeCancelled      = -32800
)

// codes maps errors of lower layers to wire errors; the first match in the error's chain counts.
// Other errors become internal errors.
var codes = []struct {
	err     error
	code    int64
	kind    protocol.ErrorKind
	retry   protocol.RetryAdvice
	outcome protocol.EffectOutcome
}{
	{engine.ErrShuttingDown, codeState, protocol.KindShuttingDown, protocol.RetryNow, protocol.EffectNone},
	{engine.ErrTurnNotActive, codeState, protocol.KindTurnNotActive, protocol.RetryReload, protocol.EffectNone},
	{engine.ErrTaskLeaving, codeConflict, protocol.KindConflict, protocol.RetryNow, protocol.EffectNone},
	{engine.ErrTaskElsewhere, codeState, protocol.KindTaskElsewhere, protocol.RetryReload, protocol.EffectNone},
	{background.ErrClosed, codeState, protocol.KindTaskElsewhere, protocol.RetryReload, protocol.EffectUnknown},
	{background.ErrInputTimeout, codeState, protocol.KindTaskElsewhere, protocol.RetryReload, protocol.EffectUnknown},
	{decision.ErrUnattended, codeConflict, protocol.KindConflict, protocol.RetryNow, protocol.EffectNone},
	{engine.ErrReloaded, codeConflict, protocol.KindConflict, protocol.RetryNow, protocol.EffectNone},
	{engine.ErrHistoryMoved, codeConflict, protocol.KindConflict, protocol.RetryNow, protocol.EffectNone},
	{undo.ErrInUse, codeState, protocol.KindSessionInUse, protocol.RetryReload, protocol.EffectNone},
	{engine.ErrSessionInUse, codeState, protocol.KindSessionInUse, protocol.RetryReload, protocol.EffectNone},
	{queue.ErrFull, codeOverloaded, protocol.KindOverloaded, protocol.RetryReload, protocol.EffectNone},
	{engine.ErrCellInterrupted, codeState, protocol.KindCellInterrupted, protocol.RetryNever, protocol.EffectUnknown},
	{models.ErrNotFound, codeNotFound, protocol.KindModelNotFound, protocol.RetryNever, protocol.EffectNone},
	{engine.ErrToolNotFound, codeNotFound, protocol.KindToolNotFound, protocol.RetryReload, protocol.EffectNone},
	{engine.ErrNoCompletion, codeNotFound, protocol.KindCallNotFound, protocol.RetryNever, protocol.EffectNone},
	{engine.ErrNoCall, codeNotFound, protocol.KindToolNotFound, protocol.RetryReload, protocol.EffectNone},
	{tool.ErrUnknown, codeNotFound, protocol.KindToolNotFound, protocol.RetryReload, protocol.EffectNone},
	{workgroup.ErrSlowPlugin, codePlugin, protocol.KindPluginFailed, protocol.RetryNow, protocol.EffectNone},
	{pathresolve.ErrElsewhere, codeState, protocol.KindWorkspaceElsewhere, protocol.RetryNever, protocol.EffectNone},
	{plugin.ErrNoDriver, codeNotFound, protocol.KindDriverNotFound, protocol.RetryNever, protocol.EffectNone},
	{pluginloader.ErrNoPlugin, codeNotFound, protocol.KindPluginNotFound, protocol.RetryReload, protocol.EffectNone},
	{pluginloader.ErrManyServers, codeInvalidParams, protocol.KindInvalidParams, protocol.RetryNever, protocol.EffectNone},
	{mcp.ErrNoServer, codeNotFound, protocol.KindServerNotFound, protocol.RetryReload, protocol.EffectNone},
	{mcp.ErrNoAttempt, codeNotFound, protocol.KindLoginNotFound, protocol.RetryReload, protocol.EffectNone},
	{mcp.ErrNoLogin, codeState, protocol.KindNoLogin, protocol.RetryNever, protocol.EffectNone},
	{mcp.ErrManyLogins, codeOverloaded, protocol.KindOverloaded, protocol.RetryNow, protocol.EffectNone},
	{pluginloader.ErrCwd, codeInvalidParams, protocol.KindInvalidParams, protocol.RetryNever, protocol.EffectNone},
	{pluginloader.ErrTrusted, codeState, protocol.KindPluginTrusted, protocol.RetryNever, protocol.EffectNone},
	{persistence.ErrDeleted, codeNotFound, protocol.KindSessionDeleted, protocol.RetryNever, protocol.EffectNone},
	{persistence.ErrNotRetained, codeState, protocol.KindNotRetained, protocol.RetryReload, protocol.EffectNone},
	{persistence.ErrNotFound, codeNotFound, protocol.KindSessionNotFound, protocol.RetryReload, protocol.EffectNone},
	{persistence.ErrExists, codeConflict, protocol.KindConflict, protocol.RetryNever, protocol.EffectNone},
	{persistence.ErrReceiptConflict, codeConflict, protocol.KindConflict, protocol.RetryNever, protocol.EffectNone},
	{persistence.ErrFenced, codeConflict, protocol.KindConflict, protocol.RetryReload, protocol.EffectNone},
	{persistence.ErrBudget, codeTooLarge, protocol.KindTooLarge, protocol.RetryNever, protocol.EffectNone},
	{persistence.ErrFull, codeStorage, protocol.KindStorageFull, protocol.RetryNow, protocol.EffectNone},
	{persistence.ErrBusy, codeStorage, protocol.KindStorageBusy, protocol.RetryNow, protocol.EffectNone},
	{persistence.ErrPoisoned, codeStorage, protocol.KindStoragePoisoned, protocol.RetryNow, protocol.EffectUnknown},
	{persistence.ErrCorrupt, codeStorage, protocol.KindStorageReadOnly, protocol.RetryNever, protocol.EffectNone},
	{persistence.ErrClosed, codeState, protocol.KindShuttingDown, protocol.RetryNow, protocol.EffectNone},
	{errNotStarted, codeCancelled, protocol.KindCancelled, protocol.RetryNow, protocol.EffectNone},
	{context.DeadlineExceeded, codeCancelled, protocol.KindCancelled, protocol.RetryReload, protocol.EffectUnknown},
	{context.Canceled, codeCancelled, protocol.KindCancelled, protocol.RetryReload, protocol.EffectUnknown},
}

// kindCode is an error kind with its code.
type kindCode struct {
	kind protocol.ErrorKind
	code int64
}

// otherCodes holds the codes of errors that are not in codes.
var otherCodes = []kindCode{
	{protocol.KindParse, codeParse}, {protocol.KindBadFrame, codeParse}, {protocol.KindFrameTooLarge, codeInvalidRequest},
	{protocol.KindForeignProtocol, codeInvalidRequest}, {protocol.KindInvalidRequest, codeInvalidRequest},
	{protocol.KindNotInitialized, codeInvalidRequest}, {protocol.KindMethodNotFound, codeMethodNotFound},
	{protocol.KindInvalidParams, codeInvalidParams}, {protocol.KindInternal, codeInternal}, {protocol.KindOverloaded, codeOverloaded}, {protocol.KindDenied, codeDenied},
	{protocol.KindTurnNotFound, codeNotFound}, {protocol.KindNodeNotFound, codeNotFound}, {protocol.KindInputNotFound, codeNotFound},
	{protocol.KindDecisionNotFound, codeNotFound}, {protocol.KindTaskNotFound, codeNotFound}, {protocol.KindMonitorNotFound, codeNotFound}, {protocol.KindTriggerNotFound, codeNotFound}, {protocol.KindSnapshotNotFound, codeNotFound},
	{protocol.KindArtifactNotFound, codeNotFound}, {protocol.KindPointNotFound, codeNotFound}, {protocol.KindFileConflict, codeConflict}, {protocol.KindUnrestorable, codeState}, {protocol.KindPluginFailed, codePlugin}, {protocol.KindExtensionRejected, codePlugin}, {protocol.KindTurnActive, codeState}, {protocol.KindPluginModified, codeConflict}, {protocol.KindServerTaken, codeConflict}, {protocol.KindLoginFailed, codePlugin}, {protocol.KindGeneration, codeConflict},
	{protocol.KindProvider, codeProvider}, {protocol.KindUnsupportedInput, codeState}, {protocol.KindUnknownOperation, codeNotFound}, {protocol.KindMissingSession, codeInvalidParams},
	{protocol.KindUnexpectedSession, codeInvalidParams}, {protocol.KindOperationFailed, codePlugin}, {protocol.KindTaskEnded, codeState}, {protocol.KindNoCode, codeState}, {protocol.KindSetupFailed, codeState}, {protocol.KindProviderUnreachable, codeState},
}

// errCancelled is the cause of a request's context after the client has cancelled it. errNotStarted
// is the error of a request that was cancelled while it was queued; nothing has changed.
var (
	errCancelled  = error(cancelledError{})
	errNotStarted = errors.New("the request was cancelled before it began")
)

// cancelledError is the cause of a request's context after the client has cancelled it. It is
// context.Canceled.
type cancelledError struct{}

func (cancelledError) Error() string { return "the request was cancelled" }

func (cancelledError) Is(target error) bool { return target == context.Canceled }

// durableError is an error that occurred after the request's change was stored, for example while
// waiting for the end of a started turn. The client must not repeat the request.
type durableError struct{ error }

func (e *durableError) Unwrap() error { return e.error }

// wireError converts err for the client. ok is false for an internal error; its text goes only to
// the log. reads means that the method changes nothing, so the outcome is none.
func wireError(err error, reads bool) (e *jsonrpc2.Error, ok bool) {
	if e, ok := errors.AsType[*jsonrpc2.Error](err); ok {
		return e, true
	}
	_, interrupted := errors.AsType[*engine.InterruptedError](err)
	if e, ok := detailed(err); ok && !interrupted {
		return e, true
	}
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return newError(c.code, plain(err), effect(err, reads, protocol.ErrorData{Kind: c.kind, Retry: c.retry, Outcome: c.outcome})), true
		}
	}
	return newError(codeInternal, "internal error; see the daemon's log for details", effect(err, reads, protocol.ErrorData{
		Kind: protocol.KindInternal, Retry: protocol.RetryNow, Outcome: protocol.EffectUnknown,
	})), false
}

// asCancelled returns the error of a cancelled request. It treats an unknown error, such as
// SQLite's "interrupted", as an effect of the cancellation.
func asCancelled(err error) error {
	if _, known := wireError(err, false); known {
		return err
	}
	return &cutOffError{err}
}

// cutOffError is errCancelled with its underlying error for the log.
type cutOffError struct{ cause error }

func (e *cutOffError) Error() string { return errCancelled.Error() }

func (e *cutOffError) Unwrap() []error { return []error{errCancelled, e.cause} }

// plain returns the message of err on one line, with the messages of package context in terms of
// requests.
func plain(err error) string {
	return contextWords.Replace(err.Error())
}

// contextWords replaces newlines and the messages of package context.
var contextWords = strings.NewReplacer(
	".\n", ". ", ":\n", ": ", "\n", "; ", // of joined errors
	context.Canceled.Error(), errCancelled.Error(), context.DeadlineExceeded.Error(), "the request timed out",
)

// effect corrects the advice and the outcome of an error by what the request had already done:
// nothing for a reading method, a stored change for a durableError, and something unknown for an
// interrupted one.
func effect(err error, reads bool, data protocol.ErrorData) protocol.ErrorData {
	cancelled := data.Kind == protocol.KindCancelled
	switch {
	case reads:
		data.Outcome = protocol.EffectNone
		if cancelled {
			data.Retry = protocol.RetryNow
		}
	case errors.As(err, new(*durableError)):
		data.Outcome = protocol.EffectDurable
	case errors.As(err, new(*engine.InterruptedError)):
		data.Outcome = protocol.EffectUnknown
		if data.Retry == protocol.RetryNow {
			data.Retry = protocol.RetryReload // a retry without a key would run it twice
		}
	}
	return data
}

// invalidParams returns the error for a wrong member at pointer (RFC 6901), or for the whole
// params. code is set for a reasoning effort.
func invalidParams(pointer, reason, code string) *jsonrpc2.Error {
	message := reason
	if pointer != "" {
		message = pointer + " " + reason
	}
	return newError(codeInvalidParams, message, protocol.ErrorData{
		Kind: protocol.KindInvalidParams, Retry: protocol.RetryNever, Outcome: protocol.EffectNone, Pointer: pointer, Code: code,
	})
}

// maxMessage is the maximum length of a message, in bytes. Messages may quote long text of a model
// server or a plugin.
const maxMessage = 1000

// short cuts a message at a valid UTF-8 boundary.
func short(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "") + "..."
}

// newError returns an error for the wire. Long messages are cut to maxMessage.
func newError(code int64, message string, data protocol.ErrorData) *jsonrpc2.Error {
	raw, err := json.Marshal(data)
	if err != nil {
		panic("encode our own type: " + err.Error())
	}
	return &jsonrpc2.Error{Code: code, Message: short(message), Data: (*json.RawMessage)(&raw)}
}

// ErrorCode returns the JSON-RPC code of an error kind. The generator of docs/protocol.md uses it;
// every kind must be in codes or otherCodes.
func ErrorCode(kind protocol.ErrorKind) int64 {
	for _, c := range codes {
		if c.kind == kind {
			return c.code
		}
	}
	i := slices.IndexFunc(otherCodes, func(c kindCode) bool { return c.kind == kind })
	return otherCodes[i].code
}
