package protocol

// MaxFrame is the maximum size of a message to the daemon, in bytes.
const MaxFrame = 8 << 20

// ErrorKind is the stable name of an error, in data.kind.
type ErrorKind string

const (
	KindParse               ErrorKind = "parseError"           // the message is not valid JSON, or breaks the strict rules of this protocol (such as no duplicate keys)
	KindBadFrame            ErrorKind = "badFrame"             // the header of a message is malformed; lashd closes the connection
	KindFrameTooLarge       ErrorKind = "frameTooLarge"        // the message is larger than 8 MiB; lashd closes the connection. Send large content in parts with artifact/write
	KindForeignProtocol     ErrorKind = "foreignProtocol"      // the client speaks another protocol, such as HTTP or TLS; lashd closes the connection
	KindInvalidRequest      ErrorKind = "invalidRequest"       // the message is not a JSON-RPC 2.0 request, or the connection may not send it now
	KindNotInitialized      ErrorKind = "notInitialized"       // send initialize first
	KindMethodNotFound      ErrorKind = "methodNotFound"       // unknown method; data.nearest is the closest known name
	KindInvalidParams       ErrorKind = "invalidParams"        // the params are invalid; data.pointer points to the mistake
	KindInternal            ErrorKind = "internal"             // a bug in lashd or an unexpected system error; the daemon's log has the details
	KindDenied              ErrorKind = "denied"               // the request is not allowed
	KindOverloaded          ErrorKind = "overloaded"           // too many connections, requests or queued inputs; retry after data.retryAfterMs if it is set
	KindCancelled           ErrorKind = "cancelled"            // the client cancelled the request, or it timed out
	KindSessionNotFound     ErrorKind = "sessionNotFound"      // unknown session
	KindTurnNotFound        ErrorKind = "turnNotFound"         // unknown turn
	KindNodeNotFound        ErrorKind = "nodeNotFound"         // the session's history has no such node
	KindInputNotFound       ErrorKind = "inputNotFound"        // unknown input
	KindDecisionNotFound    ErrorKind = "decisionNotFound"     // unknown decision
	KindToolNotFound        ErrorKind = "toolNotFound"         // unknown tool, or no pending call with that id for this client
	KindTriggerNotFound     ErrorKind = "triggerNotFound"      // the owner has no trigger with that key
	KindCallNotFound        ErrorKind = "callNotFound"         // no tool call ever waited for a completion with that key
	KindModelNotFound       ErrorKind = "modelNotFound"        // no configured model has that name; model/list lists the models
	KindDriverNotFound      ErrorKind = "driverNotFound"       // no plugin provides that driver
	KindSnapshotNotFound    ErrorKind = "snapshotNotFound"     // the session has no snapshot with that name
	KindTaskNotFound        ErrorKind = "taskNotFound"         // the session has no task with that id, or may not see it
	KindTaskElsewhere       ErrorKind = "taskElsewhere"        // this daemon does not run the task, or the task did not accept the signal
	KindTaskEnded           ErrorKind = "taskEnded"            // the task has ended
	KindMonitorNotFound     ErrorKind = "monitorNotFound"      // the session has no monitor with that id
	KindArtifactNotFound    ErrorKind = "artifactNotFound"     // unknown artifact
	KindUnknownOperation    ErrorKind = "unknownOperation"     // no plugin has an operation with that name and kind
	KindMissingSession      ErrorKind = "missingSession"       // the operation requires a session
	KindUnexpectedSession   ErrorKind = "unexpectedSession"    // the operation does not accept a session
	KindOperationFailed     ErrorKind = "operationFailed"      // a plugin failed the operation or rejected its arguments; nothing changed unless data.outcome is unknown
	KindPluginFailed        ErrorKind = "pluginFailed"         // a plugin of the session failed, so lashd cannot open the session or save its state
	KindPluginNotFound      ErrorKind = "pluginNotFound"       // unknown plugin; plugin/list lists the plugins
	KindPluginTrusted       ErrorKind = "pluginTrusted"        // the plugin is not a workspace plugin; it needs no trust
	KindServerTaken         ErrorKind = "mcpServerTaken"       // a plugin of the session already has an MCP server with the name at data.pointer
	KindServerNotFound      ErrorKind = "mcpServerNotFound"    // no plugin that is loaded has an MCP server of that name; plugin/list lists the servers
	KindLoginNotFound       ErrorKind = "mcpLoginNotFound"     // there is no such login in progress; begin a new one with mcp/login
	KindNoLogin             ErrorKind = "mcpNoLogin"           // the MCP server requires no login that lashd can do
	KindLoginFailed         ErrorKind = "mcpLoginFailed"       // the MCP server or its authorization server failed or refused the login
	KindPluginModified      ErrorKind = "pluginModified"       // the plugin's files changed since plugin/read; read the plugin again
	KindExtensionRejected   ErrorKind = "extensionRejected"    // the session's driver rejected the message; nothing changed
	KindSessionDeleted      ErrorKind = "sessionDeleted"       // the session was deleted; its id is never reused
	KindSessionInUse        ErrorKind = "sessionStillInUse"    // a turn or a call is using the session
	KindWorkspaceElsewhere  ErrorKind = "workspaceElsewhere"   // a link in the path of the session's workspace leads to another directory now; the message names it. Nothing there was used
	KindTurnActive          ErrorKind = "turnActive"           // the session is running the turn data.turnId
	KindTurnNotActive       ErrorKind = "turnNotActive"        // the turn is not running
	KindNoCode              ErrorKind = "noCode"               // the session's driver runs no code cells, or none in the language of the cells before
	KindCellInterrupted     ErrorKind = "cellInterrupted"      // an earlier request with the idempotency key was interrupted while its code ran, and the code cannot run again
	KindConflict            ErrorKind = "conflict"             // the idempotency key or the id was used for a different request, or the session changed during the request
	KindNotRetained         ErrorKind = "forkPointNotRetained" // the node is no longer reachable from a leaf or a pin
	KindFileConflict        ErrorKind = "fileConflict"         // undoing would overwrite other changes, or cannot restore every file; nothing changed. data.files lists the conflicts
	KindUnrestorable        ErrorKind = "filesUnrestorable"    // lashd does not know all file changes since that point; nothing changed
	KindPointNotFound       ErrorKind = "pointNotFound"        // the session has no such file point
	KindGeneration          ErrorKind = "generationMismatch"   // the state changed since you read it; data.generation is the current one
	KindUnsupportedInput    ErrorKind = "unsupportedInput"     // the session's model does not take the attachment at data.pointer; nothing was stored or sent
	KindTooLarge            ErrorKind = "tooLarge"             // the change exceeds the size limit of a commit
	KindProvider            ErrorKind = "providerError"        // the model's server failed or rejected the request
	KindSetupFailed         ErrorKind = "setupFailed"          // the key, login, address or model was not accepted and nothing was stored; the message says why
	KindProviderUnreachable ErrorKind = "providerUnreachable"  // the test of a key got no answer, so the key was not stored; provider/setKey with untested stores it
	KindStorageFull         ErrorKind = "storageFull"          // the disk is full; running work ends, and lashd starts no new work
	KindStorageBusy         ErrorKind = "storageBusy"          // another process has locked the database
	KindStoragePoisoned     ErrorKind = "storagePoisoned"      // a write failed and the contents of the disk are uncertain; the daemon stops
	KindStorageReadOnly     ErrorKind = "storageReadOnly"      // the database is damaged; lashd reads what it can and writes nothing
	KindShuttingDown        ErrorKind = "shuttingDown"         // the daemon is stopping; retry after its restart unless data.outcome is unknown
)

// RetryAdvice says whether a client should retry a failed request.
type RetryAdvice string

const (
	RetryNow    RetryAdvice = "now"    // send the same request again, after retryAfterMs if set
	RetryReload RetryAdvice = "reload" // read the state again, then decide
	RetryNever  RetryAdvice = "never"  // retrying cannot succeed
)

// EffectOutcome says whether a failed request changed anything.
type EffectOutcome string

const (
	EffectNone    EffectOutcome = "none"    // nothing changed
	EffectDurable EffectOutcome = "durable" // the change is stored
	EffectUnknown EffectOutcome = "unknown" // it may have changed something; retry with the same idempotency key to find out
)

// ErrorData is the data member of every error.
type ErrorData struct {
	Kind         ErrorKind     `json:"kind"`                   // the stable name of the error
	Retry        RetryAdvice   `json:"retry"`                  // whether to retry: now, reload or never
	Outcome      EffectOutcome `json:"outcome,omitempty"`      // what the request left behind: none, durable or unknown; set in every error from the daemon
	Pointer      string        `json:"pointer,omitempty"`      // JSON pointer to the invalid parameter
	Code         string        `json:"code,omitempty"`         // for a reasoning effort: unsupported_effort, effort_not_configurable or effort_required
	Nearest      string        `json:"nearest,omitempty"`      // the closest known method or name
	RetryAfterMs int64         `json:"retryAfterMs,omitempty"` // wait this many milliseconds before a retry
	Generation   *int64        `json:"generation,omitempty"`   // for generationMismatch: the current generation
	TurnID       TurnID        `json:"turnId,omitempty"`       // for turnActive: the running turn
	Files        []FileRewind  `json:"files,omitempty"`        // for fileConflict: the first 100 conflicting files
}
