// Package lashdplugin is for plugins of lashd in Go. It needs nothing but the standard library: import it, or copy it into a
// plugin. What plugin.json declares has a handler, and nothing else:
//
//	type call = lashdplugin.Call[struct{}] // nothing is kept for a session
//
//	func main() {
//		p := lashdplugin.New[struct{}]("")
//		lashdplugin.On(p, lashdplugin.BeforeToolCall, guard)
//		p.Run()
//	}
//
//	func guard(_ *call, tc lashdplugin.ToolCall) (lashdplugin.Directives, error) {
//		if strings.Contains(string(tc.Args), "rm -rf") {
//			return lashdplugin.Deny("not here"), nil
//		}
//		return nil, nil
//	}
//
// Handlers run in goroutines of their own, those of several sessions at once. An error, or a panic, is the answer of its call.
// What is printed goes to the log of the plugin. docs/plugins.md tells what each hook may do.
package lashdplugin

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"sync"
)

// Plugin is a plugin, with S as what it keeps for each session.
type Plugin[S any] struct {
	Blank   func() S                                    // what a new session keeps
	Upgrade func(version string, state JSON) (S, error) // reads the state of another version

	version  string
	handlers map[string]func(*Call[S]) any // by kind and name, or by method
	sessions sync.Map                      // *Session[S], by instance
	offer    JSON                          // what initialize was given
	peer     *peer
}

// New is a plugin that keeps state of a version, as plugin.json says; empty: it keeps none. Blank and Upgrade may be set next.
func New[S any](version string) *Plugin[S] {
	p := &Plugin[S]{version: version, handlers: map[string]func(*Call[S]) any{}, offer: JSON("{}"), peer: &peer{out: os.Stdout}}
	p.Blank = func() (s S) { return s }
	p.Upgrade = func(version string, _ JSON) (s S, err error) {
		return s, fmt.Errorf("state of the version %q cannot be read", version)
	}
	for _, told := range []Method[None, None]{Opened, Restored, Closed} {
		On(p, told, func(*Call[S], None) (None, error) { return None{}, nil })
	}
	Prepare(p, "*", func(_ *Call[S], args JSON) (JSON, error) { return args, nil })
	return p
}

// On has f answer a hook, or what else is a Method.
func On[S, C, A any](p *Plugin[S], m Method[C, A], f func(*Call[S], C) (A, error)) {
	p.handlers[m.key] = func(c *Call[S]) any {
		var given C
		check(json.Unmarshal(c.Params, &struct{ Context, Args, Source, State *C }{&given, &given, &given, &given}))
		answer, err := f(c, given)
		check(err)
		if m.member == "" {
			return answer
		}
		return Object{m.member: answer}
	}
}

// Tool has f run a tool, and "*" all that have no handler. A is what its arguments are decoded to.
func Tool[S, A any](p *Plugin[S], name string, f func(*Call[S], A) (Result, error)) {
	On(p, Method[A, Result]{"tool " + name, ""}, f)
}

// Prepare has f complete the arguments of a tool.
func Prepare[S, A any](p *Plugin[S], name string, f func(*Call[S], A) (A, error)) {
	On(p, Method[A, A]{"prepare " + name, "args"}, f)
}

// Operation has f answer a query, a command or a task.
func Operation[S, A any](p *Plugin[S], name string, f func(*Call[S], A) (Outcome, error)) {
	On(p, Method[A, Outcome]{"operation " + name, ""}, f)
}

// Run serves until lashd is done with the plugin.
func (p *Plugin[S]) Run() {
	os.Stdout = os.Stderr // the pipe is for the protocol alone
	p.peer.listen(os.Stdin, p.perform)
}

// Session is the plugin in a session, from when it is opened until it is closed.
type Session[S any] struct {
	Instance, SessionID, ParentSessionID, Cwd string // an operation that needs no session has no SessionID
	Options, ToolAccess, Subagent             JSON
	Extensions                                map[string][]JSON
	Config                                    JSON              // of the plugin, for all sessions
	DataDir                                   string            // where it may keep files
	Artifacts                                 map[string][]byte // kept beside the state; for Look and Change
	Values                                    sync.Map          // gone with the process

	peer     *peer
	mu       sync.Mutex
	state    S
	revision uint64
}

// Look is for reading what is kept. Nobody changes it meanwhile.
func (s *Session[S]) Look(f func(state *S)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.state)
}

// Change is for changing what is kept. lashd is told at once, and gets it when f is done.
func (s *Session[S]) Change(f func(state *S)) {
	s.Look(func(state *S) {
		s.revision++
		s.peer.tell("snapshot/changed", Object{"instance": s.Instance, "revision": s.revision})
		f(state)
	})
}

// ToolsChanged has lashd ask for the list of tools again.
func (s *Session[S]) ToolsChanged() { s.peer.tell("tools/changed", Object{"instance": s.Instance}) }

// Call is a call of lashd, while it is answered. As a context it ends when nobody waits for the answer any more.
type Call[S any] struct {
	context.Context                       `json:"-"`
	Session                               *Session[S] `json:"-"`
	Instance, Grant, TurnID, CallID, Name string      // Name is that of the tool or the operation
	DeadlineMs                            int64
	Messages                              []Message // the conversation, if the hook declares that it wants it
	Params                                JSON      // all that was given, as it came
}

// Host asks lashd for what the call is granted, such as toolCatalog; docs/plugins.md has the methods. An Error says why not.
func (c *Call[S]) Host(method string, params Object, result any) error {
	all := Object{"grant": c.Grant}
	maps.Copy(all, params)
	return c.Session.peer.ask(c, "host/"+method, all, result)
}

// Progress shows how far the call of a tool has come.
func (c *Call[S]) Progress(text string) {
	c.Session.peer.tell("tool/progress", Object{"grant": c.Grant, "text": text})
}

// Log adds to the log of the plugin, with the level DEBUG, INFO, WARN or ERROR.
func (c *Call[S]) Log(level, message string, data any) {
	c.Session.peer.tell("log", Object{"level": level, "message": message, "data": data})
}
