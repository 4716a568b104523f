// Package tool is the behaviour of tools: what can be called, from which source, in which generation, and what the
// model sees of it. A Registry holds the tools of a session and what the session decided about them; a Composer adds
// what is there for a while only, and makes the Catalog that calls are admitted by.
package tool

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"lashd/rpc/protocol"
)

// Tool is a manifest and a contract: what is cheap to know, and what must be known to run it.
type Tool struct {
	Manifest protocol.ToolManifest
	Contract protocol.ToolContract
}

// Provider is a source of tools. Tools is cheap and does no IO; it may answer differently after the provider said so
// through its host. Execute is called with arguments that fit the tool's schema, from several goroutines at once unless
// the contract says serial; it returns soon after ctx is done. What goes wrong is part of the output, with a class and a
// code; an error means that the provider itself failed.
type Provider interface {
	Tools() []Tool
	Execute(ctx context.Context, call Invocation) (Result, error)
}

// Contractor is a Provider whose contracts are made on demand; those that Tools gives do not count. A contract is kept as
// long as its manifest stays the same: one that changes must change the manifest. An error fails what needed the
// contract, and the next need asks again.
type Contractor interface {
	Contract(id string) (protocol.ToolContract, error)
}

// Resolver is a Provider that may know tools which it does not list.
type Resolver interface {
	ResolveName(name string) (Tool, bool)
	ResolveID(id string) (Tool, bool)
}

// Preparer is a Provider that changes calls before they run, such as to fill in what is missing. The tool of the call
// stays what it is.
type Preparer interface {
	Prepare(ctx context.Context, call Invocation) (Invocation, error)
}

// Granter is a Provider that runs calls which a Grant allows. The binding is the grant's.
type Granter interface {
	ExecuteGranted(ctx context.Context, call Invocation, binding json.RawMessage) (Result, error)
}

// Invocation is one attempt of one call.
type Invocation struct {
	SessionID protocol.SessionID
	TurnID    protocol.TurnID
	CallID    protocol.CallID // the same for each attempt: an idempotency key
	Attempt   int             // 1, 2, ...
	ToolID    string
	Name      string
	Args      json.RawMessage
	// Places are where the paths of the call led when it was allowed, in the order of its Subjects. A tool that opens them refuses one that
	// leads elsewhere. They are kept for a call that is made again after a
	// crash. Nil: nobody looked, or the call names no path.
	Places []string
	Host   Host
}

// Host is what a tool may ask of lashd while its call runs.
type Host interface {
	// Progress shows a piece of output to whoever watches. It never blocks for long and is not durable.
	Progress(text string)
	// WriteArtifact keeps bytes that are too many for the conversation. The limit is 64 MiB.
	WriteArtifact(ctx context.Context, mediaType string, data []byte) (protocol.ArtifactRef, error)
	// Touch tells that a workspace file is about to be changed, before it is.
	Touch(ctx context.Context, path string) error
	Caller
	Deferrer
	Asker
}

// Asker asks a person something that a call cannot go on without.
type Asker interface {
	// Ask asks, and waits for the answer. The question is durable and the first answer counts: it is answer, with a value that
	// fits the form; reject; or unavailable, if nobody has answered in time. The n-th question of a call is asked once, also if the
	// call is made again after a crash. A question whose call ends is withdrawn. An error means that there is no answer. A call
	// asks one question at a time, and only one that belongs to a turn may.
	Ask(context.Context, Question) (protocol.DecisionAnswer, error)
}

// Question is what a person is asked.
type Question struct {
	Prompt   string          // for a person to read
	Form     json.RawMessage // JSON Schema of the answer's value; empty: any value
	Deadline time.Duration   // 0: as long as for approvals of the session
}

// Deferrer lets a call answer later.
type Deferrer interface {
	// CompletionKey gives the key with which tool/complete gives the call its output, once it is durable. Nobody else is told it,
	// and it is good for nothing else. It is the same each time, also if the call is made again after a crash. The call then says in its Result that it is pending; if it does not,
	// the key is void. Only a tool whose contract says that it may defer gets one, for a call that belongs to a turn.
	CompletionKey(ctx context.Context, how protocol.Deferral) (protocol.CompletionKey, error)
}

// Canceller is a Provider that is told when work outside is to be cancelled, as its Deferral says: the turn of the call was.
// It may be told twice, and has no Host.
type Canceller interface {
	CancelWork(ctx context.Context, call Invocation, key protocol.CompletionKey) error
}

// Caller makes calls for a call. Each passes all that a call of the model's passes, from the catalog to what the model is
// shown, and is recorded with its parent.
type Caller interface {
	// Call makes calls, and gives what the model would read of each, in order. They run as the calls of one batch do. The
	// n-th call of a call has the same id whenever it is made, and its result is kept: a call that is run again after a crash
	// makes the same calls, which are then not made again. Only the call of a serial tool may make calls, one batch after the
	// other; a call that was made so may not. An error means that not all were made.
	Call(ctx context.Context, calls []Request) ([]protocol.ToolOutput, error)
}

// Request is a call that a call wants made.
type Request struct {
	Name  string // of the catalog's; of a grant it is in its manifest
	Args  json.RawMessage
	Grant *Grant // nil: the tool is one of the catalog
}

// Errors of a Caller, a Deferrer and an Asker.
var (
	ErrNotSerial   = errors.New("only the call of a tool that is serial may make calls")
	ErrNestedCall  = errors.New("a call that another call made may not make calls")
	ErrCallBusy    = errors.New("the call makes calls already")
	ErrCallOver    = errors.New("the call is over")
	ErrMayNotDefer = errors.New("the tool does not declare that it may defer")
	ErrNoTurn      = errors.New("the call belongs to no turn, which could wait")
)

// Result is what an attempt came to.
type Result struct {
	Output  protocol.ToolOutput
	Control *protocol.ToolControl // counts only if Output is a success
	Intents []protocol.ToolIntent // what is to be done once the results of the batch are there; likewise
	Pending bool                  // the output comes with the completion key; the other fields do not count
}
