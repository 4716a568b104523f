// Package lashdplugin is for plugins of lashd in Go. It needs nothing but the standard library: import it, or copy it into a
// plugin. What plugin.json declares has a handler, which On, Tool and Operation give it in each session, and nothing else.
// Handlers run in goroutines of their own, also those of one session. An error, or a panic, is the answer of its call. What is
// printed or logged goes to the log of the plugin. docs/plugins.md tells what each hook may do.
package lashdplugin

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
)

// Method is what lashd asks: it gives a C, and wants an A, or an object with that member. One with types of your own is as good.
type Method[C, A any] struct{ Name, Member string }

// The hooks, and what else On takes. A hook that answers with what it was given leaves all as it was.
var (
	BeforeTurn        = Method[Turn, Directives]{"hook/beforeTurn", "directives"}
	BeforeToolCall    = Method[ToolCall, Directives]{"hook/beforeToolCall", "directives"}
	AfterToolCall     = Method[ToolCall, Directives]{"hook/afterToolCall", "directives"}
	Checkpoint        = Method[Turn, Directives]{"hook/checkpoint", "directives"}
	AfterTurn         = Method[Turn, Directives]{"hook/afterTurn", "directives"}
	Prompt            = Method[Turn, []PromptText]{"hook/prompt", "prompts"}
	AssistantStream   = Method[StreamChunk, StreamChunk]{"hook/assistantStream", ""}
	AssistantResponse = Method[Object, Object]{"hook/assistantResponse", ""} // parts, stop, events
	StreamFinished    = Method[Turn, None]{"hook/streamFinished", ""}
	ProjectToolResult = Method[ToolCall, Output]{"hook/projectToolResult", "output"}
	ConfigChanged     = Method[Turn, JSON]{"hook/configChanged", "config"}
	Event             = Method[Turn, None]{"hook/event", ""}
	TransformContext  = Method[Object, Object]{"hook/transformContext", ""} // messages, prompts, withoutBase, tools; not the view
	Compact           = Method[Turn, []Object]{"hook/compact", "nodes"}     // message and the like
	Catalog           = Method[Object, []string]{"hook/catalog", "remove"}  // manifests, authority; the names of tools to leave out
	ProjectProse      = Method[StreamChunk, string]{"hook/projectProse", "text"}
	ToolList          = Method[None, []Object]{"tool/list", "data"}    // name, description, input, contract: for tools that change
	CodeExecute       = Method[string, Object]{"code/execute", ""}     // printed, value, error of a code cell
	CodeSnapshot      = Method[None, []byte]{"code/snapshot", "state"} // what cells have made
	CodeRestore       = Method[[]byte, None]{"code/restore", ""}       // takes it back
	Closed            = Method[None, None]{"session/close", ""}        // nothing more is asked in the session
)

// What is given and answered, in the words of the protocol. docs/plugins.md tells what is in JSON, and in an Object.
type (
	JSON   = json.RawMessage
	Object = map[string]any
	None   = struct{}
	// Directives are what a hook wants done. append puts several together.
	Directives = []Object
	// Turn is where a turn is, or a session. View is {session, window, turnOptions}; Kind is that of a checkpoint or an event.
	Turn struct {
		TurnID, Kind, Instructions, Reason      string // Reason is why a stream has ended
		View, Report, Previous, Current, Config JSON
		Input                                   []Message
		Inputs                                  map[string]JSON // for plugins, by id
		Window, Context                         int64           // tokens
	}
	// ToolCall is a call that is about to run, or that has run.
	ToolCall struct {
		TurnID, CallID, Parent, Tool, Kind, Replay string
		Args                                       JSON
		Output                                     Output // this and the next: once it has run
		Attempt, DurationMs                        int64
	}
	// Error is what lashd refuses. Kind is denied, unavailable, invalidParams, ...
	Error struct {
		Code    int
		Message string
		Data    struct{ Kind string }
	}
	// Output is what a call of a tool came to.
	Output struct {
		Status    string `json:"status"`
		Text      string `json:"text,omitempty"`
		Value     JSON   `json:"value,omitempty"`
		Failure   JSON   `json:"failure,omitempty"`
		Artifact  JSON   `json:"artifact,omitempty"`
		Change    JSON   `json:"change,omitempty"`
		Exhausted bool   `json:"exhausted,omitempty"`
	}
	// StreamChunk is a piece of text that comes in. Abort: the reply has said enough.
	StreamChunk struct {
		Text      string   `json:"text"`
		Reasoning []string `json:"reasoning"`
		Events    []Object `json:"events"`
		Abort     bool     `json:"abort"`
	}
	// Message is one of a conversation. Content stands for one part of text, in messages of plugins.
	Message struct {
		Role    string   `json:"role"`
		Content string   `json:"content,omitempty"`
		Parts   []Object `json:"parts,omitempty"`
	}
	// PromptText is a text for the system prompt, in the slot guidance and the like.
	PromptText struct {
		Slot     string   `json:"slot"`
		Title    string   `json:"title"`
		Priority int      `json:"priority"`
		Tools    []string `json:"tools"`
		Content  string   `json:"content"`
	}
)

// Succeed is a success that the model reads as text.
func Succeed(text string) Output { return Output{Status: "success", Text: text} }

// Fail is a failure, of a class such as execution or permissionDenied.
func Fail(class, code, message string) Output {
	failure, _ := json.Marshal(Object{"class": class, "code": code, "message": message, "source": "plugin"}) // it is text
	return Output{Status: "failure", Text: message, Failure: failure}
}

// What a hook may want.
var (
	Abort = func(code, message string) Directives { // ends the turn, or fails the call
		return Directives{{"kind": "abort_turn", "code": code, "message": message}}
	}
	Deny = func(message string) Directives { // denies a call; the model reads why
		return ShortCircuit(Fail("permissionDenied", "denied", message))
	}
	ShortCircuit   = wanting[Output]("short_circuit_tool", "output")    // gives a call a result: instead of running it, or another one
	ReplaceArgs    = wanting[any]("replace_tool_args", "args")          // runs a call with other arguments
	AskFirst       = wanting[Object]("require_approval", "approval")    // has a person asked: reason, deadlineMs, default
	Enqueue        = wanting[[]Message]("enqueue_messages", "messages") // lets messages into the conversation
	CreateSession  = wanting[any]("create_session", "session")          // creates one beside this one, as session/new does
	Tell           = wanting[[]Object]("emit_runtime_events", "events") // tells observers: kind, key, label, detail
	Trace          = wanting[Object]("emit_trace", "trace")             // adds to the trace: name, payload
	CompactHistory = Directives{{"kind": "compact_history"}}            // has history compacted before the next turn
)

func wanting[V any](kind, member string) func(V) Directives {
	return func(value V) Directives { return Directives{{"kind": kind, member: value}} }
}

// Session is the plugin in a session, from when it is opened until it is closed.
type Session struct {
	Instance, SessionID, ParentSessionID, Cwd, DataDir string            // an operation that needs no session has no SessionID
	Config, Options, ToolAccess, Subagent, Extensions  JSON              // Config is that of all sessions
	sync.Mutex                                                           // held by who looks at what is kept
	Artifacts                                          map[string][]byte `json:"-"` // kept beside the state
	plugin                                             *plugin
	handlers                                           map[string]func(*Call) (any, error) // by method, and name
	version                                            string
	state                                              any
	revision                                           uint64
}

// Keep has lashd keep what state points to, in the version that plugin.json says.
func (s *Session) Keep(version string, state any) {
	s.version, s.state = version, state
	s.handlers["snapshot/write"], s.handlers["snapshot/restore"] = s.write, s.restore
}

// Change is for changing what is kept. Nobody else looks at it meanwhile, and lashd gets it afterwards.
func (s *Session) Change(f func()) {
	s.Lock()
	defer s.Unlock()
	s.revision++
	s.Notify("snapshot/changed", Object{"instance": s.Instance, "revision": s.revision})
	f()
}

// Notify tells lashd something: tool/progress, with the grant of a call and text; tools/changed, with the instance; log.
func (s *Session) Notify(method string, params Object) {
	_ = s.plugin.send(Object{"method": method, "params": params}) // what is lost is lost with lashd
}

// On has f answer a hook, or what else is a Method.
func On[C, A any](s *Session, m Method[C, A], f func(*Call, C) (A, error)) {
	s.handlers[m.Name] = func(c *Call) (any, error) {
		var given C
		if err := json.Unmarshal(c.Params, &struct{ Context, Args, Source, State *C }{&given, &given, &given, &given}); err != nil {
			return nil, err
		}
		answer, err := f(c, given)
		if m.Member == "" {
			return answer, err
		}
		return Object{m.Member: answer}, err
	}
}

// Tool has f run a tool, and "*" those that have no handler. A is what its arguments are decoded to.
func Tool[A any](s *Session, name string, f func(*Call, A) (Output, error)) {
	On(s, Method[A, Output]{"tool/execute " + name, "output"}, f)
}

// Operation has f answer a query, a command or a task with its output.
func Operation[A, O any](s *Session, name string, f func(*Call, A) (O, error)) {
	for _, kind := range []string{"query ", "command ", "task "} {
		On(s, Method[A, O]{"operation/" + kind + name, "output"}, f)
	}
}

// Call is a call of lashd, while it is answered. As a context it ends when nobody waits for the answer any more.
type Call struct {
	context.Context                       `json:"-"`
	Session                               *Session  `json:"-"`
	Instance, Grant, TurnID, CallID, Name string    // Name is that of the tool or the operation
	Messages                              []Message // the conversation, if the hook declares that it wants it
	Params                                JSON      `json:"-"` // all that was given, as it came
}

// Host asks lashd for what a call is granted, such as toolCatalog; docs/plugins.md has the methods. An Error says why not.
func Host[A any](c *Call, method string, params Object) (result A, err error) {
	answer, all := make(chan *message, 1), Object{"grant": c.Grant}
	maps.Copy(all, params)
	id := `"` + rand.Text() + `"`
	c.Session.plugin.waiting.Store(id, func(m *message) { answer <- m })
	if err = c.Session.plugin.send(Object{"id": JSON(id), "method": "host/" + method, "params": all}); err != nil {
		return result, err
	}
	select {
	case m := <-answer:
		if m.Error != nil {
			return result, m.Error
		}
		err = json.Unmarshal(m.Result, &result)
	case <-c.Done():
		err = context.Cause(c)
	}
	return result, err
}

func (e *Error) Error() string { return e.Message }

// message is one of lashd.
type message struct {
	ID, Params, Result JSON
	Method             string
	Error              *Error
}

// plugin is the conversation with lashd.
type plugin struct {
	open     func(*Session) error
	offer    JSON     // what initialize was given
	sessions sync.Map // *Session, by instance
	waiting  sync.Map // func(*message), by id: takes the answer to what was asked, or cancels what is answered
	writing  sync.Mutex
	out      *os.File
}

// Run serves until lashd is done with the plugin. open says what has a handler in a session, and does nothing else: it is also
// called with one that is none.
func Run(open func(*Session) error) {
	p := &plugin{open: open, offer: JSON("{}"), out: os.Stdout}
	os.Stdout = os.Stderr // the pipe is for the protocol alone
	for in, m := json.NewDecoder(os.Stdin), new(message); in.Decode(m) == nil && m.Method != "shutdown"; m = new(message) {
		switch m.Method {
		case "$/cancelRequest":
			_ = json.Unmarshal(m.Params, m) // without an id it is for nobody
			fallthrough
		case "":
			p.wake(m)
		case "initialize", "session/close": // what comes next comes after it
			p.answer(context.Background(), m)
		default:
			ctx, cancel := context.WithCancel(context.Background())
			p.waiting.Store(string(m.ID), func(*message) { cancel() })
			go p.answer(ctx, m)
		}
	}
}

func (p *plugin) wake(m *message) {
	if f, waits := p.waiting.LoadAndDelete(string(m.ID)); waits {
		f.(func(*message))(m)
	}
}

func (p *plugin) answer(ctx context.Context, m *message) {
	defer p.wake(m)
	result, err := p.perform(ctx, m)
	if err == nil && m.ID != nil {
		err = p.send(Object{"id": m.ID, "result": result})
	}
	if err != nil && m.ID != nil {
		failed := &Error{Code: -32000, Message: err.Error()}
		errors.As(err, &failed)
		_ = p.send(Object{"id": m.ID, "error": Object{"code": failed.Code, "message": failed.Message}}) // or lashd is lost
	}
}

func (p *plugin) perform(ctx context.Context, m *message) (result any, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
			fmt.Fprintf(os.Stderr, "%v\n%s", err, debug.Stack())
		}
	}()
	c := &Call{Context: ctx, Params: m.Params}
	_ = json.Unmarshal(m.Params, c) // what is missing is missed below
	switch m.Method {
	case "initialize":
		return p.initialize(m.Params)
	case "session/open":
		s, err := p.enter(m.Params)
		p.sessions.Store(c.Instance, s)
		return None{}, err
	case "session/close":
		defer p.sessions.Delete(c.Instance)
	}
	held, there := p.sessions.Load(c.Instance)
	if !there && c.Instance != "" {
		return nil, fmt.Errorf("%s: there is no instance %q", m.Method, c.Instance)
	}
	c.Session, _ = held.(*Session)
	for _, key := range []string{strings.TrimSpace(m.Method + " " + c.Name), m.Method + " *"} {
		if there && c.Session.handlers[key] != nil {
			return c.Session.handlers[key](c)
		}
	}
	return nil, &Error{Code: -32601, Message: fmt.Sprintf("there is no %s %s", m.Method, c.Name)}
}

func (p *plugin) initialize(params JSON) (any, error) {
	var offer Object
	if err := json.Unmarshal(params, &offer); err != nil || offer["protocolVersion"] != 1.0 {
		return nil, fmt.Errorf("lashd speaks version %v of the protocol", offer["protocolVersion"])
	}
	p.offer = params
	s, err := p.enter(JSON("{}"))
	contributes := Object{"handles": slices.Sorted(maps.Keys(s.handlers)), "state": s.version}
	return Object{"protocolVersion": 1, "pluginId": offer["pluginId"], "nonce": offer["nonce"], "contributes": contributes}, err
}

func (p *plugin) enter(params JSON) (*Session, error) {
	s := &Session{plugin: p, Artifacts: map[string][]byte{}, handlers: map[string]func(*Call) (any, error){}}
	return s, errors.Join(json.Unmarshal(p.offer, s), json.Unmarshal(params, s), p.open(s))
}

func (p *plugin) send(m Object) error {
	m["jsonrpc"] = "2.0"
	line, err := json.Marshal(m)
	if err == nil && len(line) >= 8<<20 { // it would end the plugin
		err = fmt.Errorf("the message has %d bytes, more than %d", len(line), 8<<20)
	}
	if err == nil {
		p.writing.Lock()
		defer p.writing.Unlock()
		_, err = p.out.Write(append(line, '\n'))
	}
	return err
}

func (s *Session) write(c *Call) (any, error) {
	s.Lock()
	revision, artifacts := s.revision, maps.Clone(s.Artifacts)
	state, err := json.Marshal(s.state)
	s.Unlock()
	for name, data := range artifacts {
		for at := 0; err == nil && (at == 0 || at < len(data)); at += 1 << 20 {
			_, err = Host[JSON](c, "artifactWrite", Object{"name": name, "offset": at, "data": data[at:min(len(data), at+1<<20)]})
		}
	}
	return Object{"revision": revision, "state": JSON(state)}, err
}

func (s *Session) restore(c *Call) (any, error) {
	var given struct {
		Meta struct {
			Version  string `json:"plugin_version"`
			Revision uint64 `json:"revision,string"`
			State    JSON
		}
		Artifacts []struct {
			Name string
			Size int
			Data []byte
		}
	}
	err := json.Unmarshal(c.Params, &given)
	artifacts := map[string][]byte{}
	for _, a := range given.Artifacts {
		for more := struct{ Data []byte }{}; err == nil && len(a.Data) < a.Size; a.Data = append(a.Data, more.Data...) {
			more, err = Host[struct{ Data []byte }](c, "artifactRead", Object{"name": a.Name, "offset": len(a.Data)})
		}
		artifacts[a.Name] = a.Data
	}
	if err == nil && given.Meta.Version != s.version {
		err = fmt.Errorf("state of the version %q cannot be read", given.Meta.Version)
	}
	s.Lock()
	defer s.Unlock()
	if err == nil {
		reflect.ValueOf(s.state).Elem().SetZero()
		err = json.Unmarshal(given.Meta.State, s.state)
	}
	s.Artifacts, s.revision = artifacts, given.Meta.Revision
	return None{}, err
}
