// Package tool manages the tools of a session: their sources, which of them can be called, and what the model sees of them.
// A Registry holds the tools and the session's settings for each. A Composer adds temporary tools and produces the Catalog
// that calls are admitted by.
package tool

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"lashd/rpc/protocol"
)

// Tool is a manifest, which must be cheap to produce, and the contract needed to run the tool.
type Tool struct {
	Manifest protocol.ToolManifest
	Contract protocol.ToolContract
}

// Provider is a source of tools.
//
// Tools is called often: it must be fast and do no IO. It may return another list after the provider has announced that
// through its host. Execute gets arguments that match the tool's schema. It is called from several goroutines at once,
// unless the contract says serial, and must return soon after ctx is done. Failures of the tool are part of the output,
// with a class and a code; an error means that the provider itself failed.
type Provider interface {
	Tools() []Tool
	Execute(ctx context.Context, call Invocation) (Result, error)
}

// Contractor is a Provider that makes contracts on demand; contracts in its Tools are ignored. A contract is cached as
// long as the manifest stays the same, so a changed contract needs a changed manifest. An error fails the operation
// that needed the contract; the next one asks again.
type Contractor interface {
	Contract(id string) (protocol.ToolContract, error)
}

// Resolver is a Provider that may have tools that it does not list.
type Resolver interface {
	ResolveName(name string) (Tool, bool)
	ResolveID(id string) (Tool, bool)
}

// Preparer is a Provider that changes calls before they run, for example to fill in missing arguments. It must not
// change the tool.
type Preparer interface {
	Prepare(ctx context.Context, call Invocation) (Invocation, error)
}

// Granter is a Provider that runs calls allowed by a Grant. binding is Grant.Binding.
type Granter interface {
	ExecuteGranted(ctx context.Context, call Invocation, binding json.RawMessage) (Result, error)
}

// Invocation is one attempt at one call.
type Invocation struct {
	SessionID protocol.SessionID
	TurnID    protocol.TurnID
	CallID    protocol.CallID // the same for every attempt: usable as an idempotency key
	Attempt   int             // 1, 2, ...
	ToolID    string
	Name      string
	Args      json.RawMessage
	// Places are the resolved paths of the call when it was allowed, in the order of its Subjects. A tool that opens a
	// path must refuse it if it resolves to another place now. Places are stored, and a call that runs again after a
	// crash gets the same ones. Nil: not resolved, or the call names no path.
	Places []string
	// Shown has the content hash of each file whose change a person saw before allowing the call; it is empty if there was no file.
	// A Previewer must change nothing if a file in it has another content now. The keys are those of FilePreview.Path.
	Shown map[string]protocol.Digest
	// Sandbox is the mode of the sandbox in which the programs of the call belong: the narrowest of the session and of everyone
	// who caused the call. Empty: outside of a sandbox.
	Sandbox protocol.SandboxMode
	// Network says which hosts programs in a sandbox reach; nil: none.
	Network *protocol.NetworkAccess
	Cwd     string // the workspace of the session
	Host    Host
}

// Host offers services to a tool while its call runs. Do not use it after Execute has returned.
type Host interface {
	// Progress shows a piece of output to subscribers. It does not block for long, and the text is not stored.
	Progress(text string)
	// WriteArtifact stores data that is too large for the conversation, up to 64 MiB.
	WriteArtifact(ctx context.Context, mediaType string, data []byte) (protocol.ArtifactRef, error)
	// Touch announces a change of a workspace file. Call it before the change, so that undo can save the old content.
	Touch(ctx context.Context, path string) error
	Caller
	Deferrer
	Asker
}

// Asker asks a person a question that a call needs answered.
type Asker interface {
	// Ask asks a question and waits for the answer. The question is durable, and its first answer counts: an answer
	// with a value that matches the form, a rejection, or unavailable after the deadline. If the call runs again after
	// a crash, its n-th question is not asked again. lashd withdraws the question when the call ends. An error means
	// that there is no answer.
	//
	// A call may ask one question at a time, and only a call that belongs to a turn may ask.
	Ask(context.Context, Question) (protocol.DecisionAnswer, error)
}

// Question is a question for a person.
type Question struct {
	Prompt   string          // for a person to read
	Form     json.RawMessage // JSON Schema of the value in the answer; empty: any value
	URL      string          // page that the person is asked to open, which Prompt names too; the answer then has no value
	Deadline time.Duration   // 0: the session's deadline for approvals
}

// Choices returns the possible answers.
func (q Question) Choices() []protocol.DecisionChoice {
	if q.URL != "" {
		return []protocol.DecisionChoice{protocol.ChooseOpen, protocol.ChooseReject}
	}
	return []protocol.DecisionChoice{protocol.ChooseAnswer, protocol.ChooseReject}
}

// Deferrer lets a call return its output later.
type Deferrer interface {
	// CompletionKey returns a durable key. A client passes it to tool/complete to deliver the output of the call. Keep
	// the key secret: whoever has it can complete the call. It is the same for every attempt of the call.
	//
	// The call must then return a Result with Pending set; otherwise the key becomes invalid. Only a call that belongs
	// to a turn gets a key, and only if its contract declares that it may defer.
	CompletionKey(ctx context.Context, how protocol.Deferral) (protocol.CompletionKey, error)
}

// Canceller is a Provider that is notified when external work should be cancelled because its turn was, as its Deferral
// requests. CancelWork may be called twice for one key. The call has no Host.
type Canceller interface {
	CancelWork(ctx context.Context, call Invocation, key protocol.CompletionKey) error
}

// Caller makes tool calls on behalf of a call. Each passes the same checks as a call of the model, and is recorded with
// its parent.
type Caller interface {
	// Call makes calls as one batch and returns their outputs, in order, in the form that the model would see. The n-th
	// call of a call always has the same id and its result is stored: when the call runs again after a crash, finished
	// calls are not made again.
	//
	// Only the call of a serial tool may make calls, one batch at a time. A call that was itself made by a call may
	// not. An error means that not all calls were made.
	Call(ctx context.Context, calls []Request) ([]protocol.ToolOutput, error)
}

// Request is a tool call that a call wants to make.
type Request struct {
	Name  string // a tool of the catalog; ignored with a Grant, whose manifest has the name
	Args  json.RawMessage
	Grant *Grant // nil: the tool is in the catalog
}

// Errors of Caller, Deferrer and Asker.
var (
	ErrNotSerial   = errors.New("only a call of a serial tool may make calls")
	ErrNestedCall  = errors.New("a call that another call made may not make calls")
	ErrCallBusy    = errors.New("the call is already making calls")
	ErrCallOver    = errors.New("the call has ended")
	ErrMayNotDefer = errors.New("the tool does not declare that it may defer")
	ErrNoTurn      = errors.New("the call belongs to no turn that could wait")
)

// Result is the result of one attempt at a call.
type Result struct {
	Output  protocol.ToolOutput
	Control *protocol.ToolControl // used only if Output is a success
	Intents []protocol.ToolIntent // actions after the results of the batch have arrived; only if Output is a success
	Pending bool                  // the output arrives with the completion key; other fields are ignored
	// Refused is what a sandbox of lashd refused to the programs of the call; nil: nothing. It replaces Output.Refusal, which plugins could forge.
	Refused *protocol.SandboxRefusal
}
