package protocol

// ErrorKind is the stable word that every error carries in data.kind.
type ErrorKind string

const (
	KindParse             ErrorKind = "parseError"
	KindInvalidRequest    ErrorKind = "invalidRequest"
	KindNotInitialized    ErrorKind = "notInitialized"
	KindMethodNotFound    ErrorKind = "methodNotFound"
	KindInvalidParams     ErrorKind = "invalidParams"
	KindInternal          ErrorKind = "internal"
	KindOverloaded        ErrorKind = "overloaded"
	KindCancelled         ErrorKind = "cancelled"
	KindSessionNotFound   ErrorKind = "sessionNotFound"
	KindTurnNotFound      ErrorKind = "turnNotFound"
	KindNodeNotFound      ErrorKind = "nodeNotFound"
	KindInputNotFound     ErrorKind = "inputNotFound"
	KindDecisionNotFound  ErrorKind = "decisionNotFound"
	KindToolNotFound      ErrorKind = "toolNotFound"
	KindModelNotFound     ErrorKind = "modelNotFound"
	KindDriverNotFound    ErrorKind = "driverNotFound"
	KindSessionDeleted    ErrorKind = "sessionDeleted"
	KindSessionClosed     ErrorKind = "sessionClosed"
	KindSessionInUse      ErrorKind = "sessionStillInUse"
	KindTurnActive        ErrorKind = "turnActive"
	KindTurnNotActive     ErrorKind = "turnNotActive"
	KindConflict          ErrorKind = "conflict"
	KindStaleBranch       ErrorKind = "staleBranch"
	KindNotRetained       ErrorKind = "forkPointNotRetained"
	KindGeneration        ErrorKind = "generationMismatch"
	KindAlreadyResolved   ErrorKind = "alreadyResolved"
	KindDenied            ErrorKind = "denied"
	KindTooLarge          ErrorKind = "tooLarge"
	KindProvider          ErrorKind = "providerError"
	KindStorageFull       ErrorKind = "storageFull"
	KindStorageBusy       ErrorKind = "storageBusy"
	KindStoragePoisoned   ErrorKind = "storagePoisoned"
	KindStorageReadOnly   ErrorKind = "storageReadOnly"
	KindNewerSchema       ErrorKind = "newerSchema"
	KindShuttingDown      ErrorKind = "shuttingDown"
	KindResourceExhausted ErrorKind = "resourceExhausted"
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
	Kind         ErrorKind     `json:"kind"`
	Retry        RetryAdvice   `json:"retry"`
	Outcome      EffectOutcome `json:"outcome,omitempty"`
	Pointer      string        `json:"pointer,omitempty"`      // JSON pointer to the wrong parameter
	Nearest      string        `json:"nearest,omitempty"`      // the method or name that was probably meant
	RetryAfterMs int64         `json:"retryAfterMs,omitempty"` // not before
	Leaf         NodeID        `json:"leaf,omitempty"`         // of a staleBranch
	Generation   *int64        `json:"generation,omitempty"`   // the current one, of a generationMismatch
	TurnID       TurnID        `json:"turnId,omitempty"`       // the running one, of a turnActive
}
