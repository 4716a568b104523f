package rpc

import (
	"errors"

	"github.com/sourcegraph/jsonrpc2"

	"lashd/engine"
	"lashd/engine/attachment"
	"lashd/engine/clientserver"
	"lashd/engine/models"
	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/engine/trigger"
	"lashd/engine/undo"
	"lashd/internal/strictjson"
	"lashd/persistence"
	"lashd/pluginloader"
	"lashd/pluginloader/mcp"
	"lashd/rpc/protocol"
)

// detailed converts errors whose data has more than a kind, such as the running turn or the
// conflicting files.
// It reports false for all other errors, for which codes applies. The error may be wrapped.
func detailed(err error) (*jsonrpc2.Error, bool) {
	for _, detail := range details {
		if e := detail(err); e != nil {
			return e, true
		}
	}
	return nil, false
}

// details convert errors of specific types; the first match counts. Each function returns nil for other types.
var details = []func(error) *jsonrpc2.Error{
	convert(func(e *strictjson.Error) *jsonrpc2.Error { return invalidParams(e.Pointer, e.Reason, "") }),
	convert(func(e *param.Error) *jsonrpc2.Error { return invalidParams(e.Pointer, e.Reason, e.Code) }),
	refused(codeState, protocol.KindTurnActive, protocol.RetryReload, func(e *engine.TurnActiveError, d *protocol.ErrorData) { d.TurnID = e.TurnID }),
	refused(codeConflict, protocol.KindFileConflict, protocol.RetryReload, func(e *undo.ConflictError, d *protocol.ErrorData) {
		d.Files = e.Files[:min(len(e.Files), 100)]
	}),
	refused(codeState, protocol.KindUnrestorable, protocol.RetryReload, noData[*undo.UnrestorableError]),
	refused(codeState, protocol.KindTurnActive, protocol.RetryReload, func(e *pluginloader.BusyError, d *protocol.ErrorData) { d.TurnID = e.TurnID }),
	refused(codeConflict, protocol.KindPluginModified, protocol.RetryReload, noData[*pluginloader.ContentError]),
	refused(codeConflict, protocol.KindConflict, protocol.RetryNever, noData[*engine.TaskConflictError]),
	refused(codeConflict, protocol.KindConflict, protocol.RetryNever, noData[*engine.MonitorRunningError]),
	refused(codeState, protocol.KindTaskEnded, protocol.RetryReload, noData[*engine.TaskEndedError]),
	refused(codeState, protocol.KindNoCode, protocol.RetryNever, noData[*engine.NoCodeError]),
	refused(codeState, protocol.KindNoCode, protocol.RetryNever, noData[*engine.LanguageChangedError]),
	refused(codeConflict, protocol.KindGeneration, protocol.RetryReload, func(e *engine.GenerationError, d *protocol.ErrorData) { d.Generation = &e.Current }),
	refused(codeConflict, protocol.KindServerTaken, protocol.RetryNever, func(e *clientserver.TakenError, d *protocol.ErrorData) {
		d.Pointer = "/mcpServers/" + e.Server
	}),
	refused(codeConflict, protocol.KindGeneration, protocol.RetryReload, func(e *trigger.MovedError, d *protocol.ErrorData) { d.Generation = &e.Revision }),
	refused(codeProvider, protocol.KindProvider, protocol.RetryNever, func(e *engine.ProviderError, d *protocol.ErrorData) {
		if e.Issue.Retryable {
			d.Retry = protocol.RetryNow
		}
	}),
	refused(codeProvider, protocol.KindProvider, protocol.RetryReload, noData[*models.TestError]),
	convert(operationError),
	refused(codeState, protocol.KindUnsupportedInput, protocol.RetryNever, func(e *attachment.UnsupportedError, d *protocol.ErrorData) { d.Pointer = e.Pointer }),
	refused(codeDenied, protocol.KindDenied, protocol.RetryNever, func(e *attachment.URLsDeniedError, d *protocol.ErrorData) { d.Pointer = e.Pointer }),
	refused(codePlugin, protocol.KindLoginFailed, protocol.RetryNever, noData[*mcp.LoginError]),
	refused(codeConflict, protocol.KindConflict, protocol.RetryNever, noData[*tool.ConflictError]),
	refused(codePlugin, protocol.KindExtensionRejected, protocol.RetryNever, noData[*engine.RejectedError]),
	refused(codePlugin, protocol.KindPluginFailed, protocol.RetryNever, noData[*plugin.HookError]),
	refused(codePlugin, protocol.KindPluginFailed, protocol.RetryNever, noData[*plugin.BuildError]),
	refused(codeNotFound, "", protocol.RetryReload, func(e *persistence.NotFoundError, d *protocol.ErrorData) { d.Kind = missingKinds[e.What] }),
}

// convert applies f to errors of type E in the chain of an error.
// The function that it returns yields nil for errors without an E in their chain.
func convert[E error](f func(E) *jsonrpc2.Error) func(error) *jsonrpc2.Error {
	return func(err error) *jsonrpc2.Error {
		if e, ok := errors.AsType[E](err); ok {
			return f(e)
		}
		return nil
	}
}

// refused converts an error of a request that changed nothing (outcome none). add fills in more
// data.
func refused[E error](code int64, kind protocol.ErrorKind, retry protocol.RetryAdvice, add func(E, *protocol.ErrorData)) func(error) *jsonrpc2.Error {
	return convert(func(e E) *jsonrpc2.Error {
		data := protocol.ErrorData{Kind: kind, Retry: retry, Outcome: protocol.EffectNone}
		add(e, &data)
		return newError(code, e.Error(), data)
	})
}

// noData is an add function for errors without more data.
func noData[E error](E, *protocol.ErrorData) {}

// operationKinds maps the error codes of plugin operations to wire errors.
var operationKinds = map[plugin.OperationCode]kindCode{
	plugin.UnknownOperation:   {protocol.KindUnknownOperation, codeNotFound},
	plugin.UnknownSession:     {protocol.KindSessionNotFound, codeNotFound},
	plugin.MissingSession:     {protocol.KindMissingSession, codeInvalidParams},
	plugin.UnexpectedSession:  {protocol.KindUnexpectedSession, codeInvalidParams},
	plugin.OperationFailed:    {protocol.KindOperationFailed, codePlugin},
	plugin.OperationAbandoned: {protocol.KindOperationFailed, codePlugin},
}

// operationError converts the error of a plugin's operation. If the plugin may have acted before it
// failed, the outcome is unknown.
// The retry advice is always never: only the plugin knows whether another try could succeed.
func operationError(e *plugin.OperationError) *jsonrpc2.Error {
	kind := operationKinds[e.Code]
	data := protocol.ErrorData{Kind: kind.kind, Retry: protocol.RetryNever, Outcome: protocol.EffectNone}
	if e.Code == plugin.OperationAbandoned {
		data.Outcome = protocol.EffectUnknown
	}
	return newError(kind.code, e.Error(), data)
}

// missingKinds maps NotFoundError.What to the error kind on the wire.
var missingKinds = map[string]protocol.ErrorKind{
	"session": protocol.KindSessionNotFound, "turn": protocol.KindTurnNotFound, "node": protocol.KindNodeNotFound,
	"input": protocol.KindInputNotFound, "decision": protocol.KindDecisionNotFound, "snapshot": protocol.KindSnapshotNotFound,
	"artifact": protocol.KindArtifactNotFound, "task": protocol.KindTaskNotFound,
	"trigger": protocol.KindTriggerNotFound, "monitor": protocol.KindMonitorNotFound, "file point": protocol.KindPointNotFound,
}
