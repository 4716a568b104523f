package protocol

// MaxFrame is how many bytes a message to the daemon has at most.
const MaxFrame = 8 << 20

// ErrorKind is the stable word that every error carries in data.kind.
type ErrorKind string

const (
	KindParse             ErrorKind = "parseError"           // the message is no JSON, or not the strict kind that is asked for
	KindBadFrame          ErrorKind = "badFrame"             // the header of a message is broken; the connection ends
	KindFrameTooLarge     ErrorKind = "frameTooLarge"        // over 8 MiB; the connection ends. Send big content in pieces
	KindForeignProtocol   ErrorKind = "foreignProtocol"      // this is HTTP, TLS or the like; the connection ends
	KindInvalidRequest    ErrorKind = "invalidRequest"       // the message is no request of JSON-RPC 2.0, or not one that this connection may make now
	KindNotInitialized    ErrorKind = "notInitialized"       // initialize comes first on this connection
	KindMethodNotFound    ErrorKind = "methodNotFound"       // there is no such method; nearest is the one that was probably meant
	KindInvalidParams     ErrorKind = "invalidParams"        // pointer leads to what is wrong in the params
	KindInternal          ErrorKind = "internal"             // a fault of lashd; its log has the details
	KindDenied            ErrorKind = "denied"               // whoever asks may not have that
	KindOverloaded        ErrorKind = "overloaded"           // too much is under way; again after retryAfterMs
	KindCancelled         ErrorKind = "cancelled"            // the client cancelled the request, or it ran out of its time
	KindSessionNotFound   ErrorKind = "sessionNotFound"      // there is no such session
	KindTurnNotFound      ErrorKind = "turnNotFound"         // there is no such turn
	KindNodeNotFound      ErrorKind = "nodeNotFound"         // there is no such node in this session's history
	KindInputNotFound     ErrorKind = "inputNotFound"        // there is no such input
	KindDecisionNotFound  ErrorKind = "decisionNotFound"     // there is no such decision
	KindToolNotFound      ErrorKind = "toolNotFound"         // there is no such tool, or no such call of it
	KindTriggerNotFound   ErrorKind = "triggerNotFound"      // its owner has no trigger of that key
	KindCallNotFound      ErrorKind = "callNotFound"         // no call waits, or waited, for a completion with that key
	KindModelNotFound     ErrorKind = "modelNotFound"        // no model of that name is configured; model/list lists them
	KindDriverNotFound    ErrorKind = "driverNotFound"       // no plugin provides that driver
	KindSnapshotNotFound  ErrorKind = "snapshotNotFound"     // the session has no snapshot of that name
	KindTaskNotFound      ErrorKind = "taskNotFound"         // the session has no task of that id, or may not see it
	KindTaskElsewhere     ErrorKind = "taskElsewhere"        // nobody here works at the task, or it does not take what is sent to it
	KindTaskEnded         ErrorKind = "taskEnded"            // the task is over
	KindMonitorNotFound   ErrorKind = "monitorNotFound"      // the session has no monitor of that id
	KindArtifactNotFound  ErrorKind = "artifactNotFound"     // there are no such bytes
	KindUnknownOperation  ErrorKind = "unknownOperation"     // no plugin offers an operation of that name and kind
	KindMissingSession    ErrorKind = "missingSession"       // the operation needs a session
	KindUnexpectedSession ErrorKind = "unexpectedSession"    // the operation takes no session
	KindOperationFailed   ErrorKind = "operationFailed"      // a plugin could not do the operation, or its arguments are wrong; nothing was changed, unless the outcome is unknown
	KindPluginFailed      ErrorKind = "pluginFailed"         // a plugin of the session failed, so that it cannot be opened or captured
	KindPluginNotFound    ErrorKind = "pluginNotFound"       // there is no such plugin; plugin/list names those there are
	KindPluginTrusted     ErrorKind = "pluginTrusted"        // the plugin is the user's own, and needs no approval
	KindServerTaken       ErrorKind = "mcpServerTaken"       // a plugin of the session has an MCP server of the name at pointer
	KindPluginModified    ErrorKind = "pluginModified"       // the directory does not hold what was approved; read the plugin again
	KindExtensionRejected ErrorKind = "extensionRejected"    // the session's protocol does not take what was sent to it; nothing was changed
	KindSessionDeleted    ErrorKind = "sessionDeleted"       // the session was deleted; its id is never used again
	KindSessionInUse      ErrorKind = "sessionStillInUse"    // a turn or a call uses the session
	KindTurnActive        ErrorKind = "turnActive"           // the session runs turnId
	KindTurnNotActive     ErrorKind = "turnNotActive"        // the turn does not run
	KindConflict          ErrorKind = "conflict"             // the idempotency key or the id was used for something else, or the session changed meanwhile
	KindNotRetained       ErrorKind = "forkPointNotRetained" // the node is no longer reachable from a leaf or a pin
	KindFileConflict      ErrorKind = "fileConflict"         // a rewind would lose something, or cannot bring back everything: files; nothing was changed
	KindUnrestorable      ErrorKind = "filesUnrestorable"    // not all is known that was done to files since then; nothing was changed
	KindPointNotFound     ErrorKind = "pointNotFound"        // the session has no such file point
	KindGeneration        ErrorKind = "generationMismatch"   // the state was changed since it was read; generation is the current one
	KindTooLarge          ErrorKind = "tooLarge"             // more than one commit may hold
	KindProvider          ErrorKind = "providerError"        // the model's server failed or refused
	KindStorageFull       ErrorKind = "storageFull"          // the disk is full; what runs is brought to its end, nothing new begins
	KindStorageBusy       ErrorKind = "storageBusy"          // another process holds the database locked
	KindStoragePoisoned   ErrorKind = "storagePoisoned"      // a write failed so that nobody knows what the disk holds; the daemon stops
	KindStorageReadOnly   ErrorKind = "storageReadOnly"      // the database is damaged: it is read as far as possible and not written
	KindShuttingDown      ErrorKind = "shuttingDown"         // the daemon stops; the same again after its restart, unless the outcome is unknown
)

// RetryAdvice says what a client should do about an error.
type RetryAdvice string

const (
	RetryNow    RetryAdvice = "now"    // the same request again, after retryAfterMs if given
	RetryReload RetryAdvice = "reload" // read the state again, then decide
	RetryNever  RetryAdvice = "never"  // the request itself is wrong or refused
)

// EffectOutcome says what a failed mutation left behind.
type EffectOutcome string

const (
	EffectNone    EffectOutcome = "none"    // nothing was changed
	EffectDurable EffectOutcome = "durable" // the change was made, and stays
	EffectUnknown EffectOutcome = "unknown" // ask again with the same idempotency key
)

// ErrorData is the data member of every error.
type ErrorData struct {
	Kind         ErrorKind     `json:"kind"`                   // a word of the table of errors
	Retry        RetryAdvice   `json:"retry"`                  // what to do: now, reload or never
	Outcome      EffectOutcome `json:"outcome,omitempty"`      // what the request left behind: none, durable or unknown; in every error of the daemon
	Pointer      string        `json:"pointer,omitempty"`      // JSON pointer to the wrong parameter
	Nearest      string        `json:"nearest,omitempty"`      // the method or name that was probably meant
	RetryAfterMs int64         `json:"retryAfterMs,omitempty"` // not before
	Generation   *int64        `json:"generation,omitempty"`   // the current one, of a generationMismatch
	TurnID       TurnID        `json:"turnId,omitempty"`       // the running one, of a turnActive
	Files        []FileRewind  `json:"files,omitempty"`        // the first 100 of those that stand against it, of a fileConflict
}
