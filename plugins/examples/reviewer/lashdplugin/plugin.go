// Package lashdplugin is for plugins of lashd in Go. It needs nothing but the standard library: import it, or copy it into a
// plugin. A plugin is one value, whose fields are what it contributes; what plugin.json declares is set, and nothing else:
//
//	func main() {
//		lashdplugin.Run(lashdplugin.Plugin[struct{}]{
//			BeforeToolCall: func(ctx context.Context, c *lashdplugin.Call[struct{}], tc *lashdplugin.ToolCallContext) ([]lashdplugin.Directive, error) {
//				if strings.Contains(string(tc.Args), "rm -rf") {
//					return []lashdplugin.Directive{lashdplugin.Deny("not here")}, nil
//				}
//				return nil, nil
//			},
//		})
//	}
//
// Handlers run in goroutines of their own, those of several sessions at once; their context ends when nobody waits for the
// answer any more. An error, or a panic, is the answer of its call. What is printed goes to the log of the plugin.
// docs/plugins.md tells what each hook may do.
package lashdplugin

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"sync"
)

// Plugin is a plugin, with S as what it keeps for each session. A hook that answers with what it was given leaves all as it was.
type Plugin[S any] struct {
	BeforeTurn        func(context.Context, *Call[S], *TurnContext) ([]Directive, error)
	BeforeToolCall    func(context.Context, *Call[S], *ToolCallContext) ([]Directive, error)
	AfterToolCall     func(context.Context, *Call[S], *ToolResultContext) ([]Directive, error)
	Checkpoint        func(context.Context, *Call[S], *CheckpointContext) ([]Directive, error)
	AfterTurn         func(context.Context, *Call[S], *TurnSummary) ([]Directive, error)
	Prompt            func(context.Context, *Call[S], *PromptContext) ([]Prompt, error)
	AssistantStream   func(context.Context, *Call[S], *StreamChunk) (*StreamChunk, error)
	AssistantResponse func(context.Context, *Call[S], *Response) (*Response, error)
	StreamFinished    func(context.Context, *Call[S], *StreamEnd) error
	ProjectToolResult func(context.Context, *Call[S], *ToolResultContext) (Output, error)
	ConfigChanged     func(context.Context, *Call[S], *ConfigChange) (json.RawMessage, error) // the settings
	Event             func(context.Context, *Call[S], *LifecycleEvent) error
	TransformContext  func(context.Context, *Call[S], *PreparedContext) (*PreparedContext, error)
	Compact           func(context.Context, *Call[S], *CompactRequest) ([]Node, error)

	Tools      map[string]func(context.Context, *Call[S]) (Result, error)          // by name; "*" runs those that are not declared
	Prepare    map[string]func(context.Context, *Call[S]) (json.RawMessage, error) // completes the arguments of a tool
	ToolList   func(*Session[S]) []Tool                                            // all tools, for a list that changes
	Operations map[string]func(context.Context, *Call[S]) (OperationResult, error) // by name
	Executor   Executor[S]                                                         // runs code cells
	State      string                                                              // the version of S, as declared; empty: nothing is kept
	New        func() S                                                            // what a new session keeps; nil: the zero value
	Upgrade    func(version string, state json.RawMessage) (S, error)              // reads the state of another version
	Opened     func(*Session[S])                                                   // is told of a session
	Restored   func(*Session[S])                                                   // has other state now
	Closed     func(*Session[S])
	Stopped    func() // lashd is done with the plugin
}

// Executor runs code cells, and keeps what they make.
type Executor[S any] interface {
	Execute(ctx context.Context, c *Call[S], source string) (CellReply, error)
	Snapshot(*Session[S]) ([]byte, error)
	Restore(*Session[S], []byte) error
}

// Session is the plugin in a session, from when it is opened until it is closed. Values keeps what is gone with the process.
type Session[S any] struct {
	Instance   string                       `json:"instance"`
	ID         string                       `json:"sessionId"` // empty: an operation without a session
	Parent     string                       `json:"parentSessionId"`
	Cwd        string                       `json:"cwd"`
	Options    json.RawMessage              `json:"options"`
	ToolAccess json.RawMessage              `json:"toolAccess"`
	Subagent   json.RawMessage              `json:"subagent"`
	Extensions map[string][]json.RawMessage `json:"extensions"`
	Config     json.RawMessage              `json:"-"` // of the plugin, for all sessions
	DataDir    string                       `json:"-"` // where it may keep files
	Values     sync.Map                     `json:"-"`

	peer      *peer
	mu        sync.Mutex
	state     S
	artifacts map[string][]byte
	revision  uint64
}

// Look is for reading the state, and the artifacts beside it. Nobody changes them meanwhile.
func (s *Session[S]) Look(f func(state *S, artifacts map[string][]byte)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.state, s.artifacts)
}

// Change is for changing them. lashd is told.
func (s *Session[S]) Change(f func(state *S, artifacts map[string][]byte)) {
	s.Look(func(state *S, artifacts map[string][]byte) {
		defer func() {
			s.revision++
			s.peer.tell("snapshot/changed", map[string]any{"instance": s.Instance, "revision": s.revision})
		}()
		f(state, artifacts)
	})
}

// ToolsChanged has lashd ask for the list of tools again.
func (s *Session[S]) ToolsChanged() {
	s.peer.tell("tools/changed", map[string]string{"instance": s.Instance})
}

// Call is a call of lashd, while it is answered.
type Call[S any] struct {
	Session  *Session[S]     `json:"-"`
	Grant    string          `json:"grant"`
	TurnID   string          `json:"turnId"`
	CallID   string          `json:"callId"`
	Name     string          `json:"name"` // of the tool, or the operation
	Args     json.RawMessage `json:"args"`
	Messages []Message       `json:"messages"` // the conversation, if the hook declares that it wants it
	given    params
}

// Host asks lashd for what this call is granted, such as toolCatalog; docs/plugins.md has the methods. An Error of lashd says
// why it does not do it.
func (c *Call[S]) Host(ctx context.Context, method string, params map[string]any, result any) error {
	all := map[string]any{"grant": c.Grant}
	maps.Copy(all, params)
	return c.Session.peer.ask(ctx, "host/"+method, all, result)
}

// Progress shows how far the call of a tool has come.
func (c *Call[S]) Progress(text string) {
	c.Session.peer.tell("tool/progress", map[string]string{"grant": c.Grant, "text": text})
}

// Log adds to the log of the plugin, with the level DEBUG, INFO, WARN or ERROR.
func (c *Call[S]) Log(level, message string, data any) {
	c.Session.peer.tell("log", map[string]any{"level": level, "message": message, "data": data})
}

// Run serves until lashd is done with the plugin. It is all that a main does.
func Run[S any](p Plugin[S]) {
	s := &server[S]{plugin: &p, methods: p.methods(), peer: newPeer(os.Stdout), sessions: map[string]*Session[S]{}}
	os.Stdout = os.Stderr // the pipe is for the protocol alone
	s.peer.listen(os.Stdin, s)
	if p.Stopped != nil {
		p.Stopped()
	}
}
