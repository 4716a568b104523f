// Package lashdplugin is the SDK for lashd plugins in Go. Import it, or copy it into a plugin; it needs only the standard library.
// Register a handler with On, Tool or Operation for everything that plugin.json declares, and for nothing else. Each handler runs in its
// own goroutine, also within one session. An error or a panic fails its call. Output and logs go to the plugin's log.
// docs/plugin-reference.md describes the hooks, docs/plugin-protocol.md the messages.
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

// Method is a method that lashd calls with a C. Its result is an A, or an object with the A in Member. You can define your own.
type Method[C, A any] struct{ Name, Member string }

// The hooks and other methods for On. A hook that returns its input changes nothing.
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
	TransformContext  = Method[Object, Object]{"hook/transformContext", ""} // messages, prompts, withoutBase, tools; no view in the result
	Compact           = Method[Turn, []Object]{"hook/compact", "nodes"}     // message or similar
	Catalog           = Method[Object, []string]{"hook/catalog", "remove"}  // manifests, authority; returns names of tools to leave out
	ProjectProse      = Method[StreamChunk, string]{"hook/projectProse", "text"}
	ToolList          = Method[None, []Object]{"tool/list", "data"} // name, description, input, contract; if the list changes
	Closed            = Method[None, None]{"session/close", ""}     // the last call of a session
)

// Inputs and results, as in the protocol. docs/plugin-protocol.md describes the fields of JSON and Object values.
type (
	JSON   = json.RawMessage
	Object = map[string]any
	None   = struct{}
	// Directives are requests of a hook. Use append to join several.
	Directives = []Object
	// Turn is the context of a turn or an event. View is {session, window, turnOptions}; Kind is that of a checkpoint or an event.
	Turn struct {
		TurnID, Kind, Instructions, Reason      string // Reason: why a stream ended
		View, Report, Previous, Current, Config JSON
		Input                                   []Message
		Inputs                                  map[string]JSON // JSON for plugins, by ID
		Window, Context                         int64           // tokens
	}
	// ToolCall is a call before or after it runs.
	ToolCall struct {
		TurnID, CallID, Parent, Tool, Kind, Replay string
		Args                                       JSON
		Output                                     Output // Output, Attempt and DurationMs are set after the call
		Attempt, DurationMs                        int64
	}
	// Error is a request that lashd rejected. Kind is denied, unavailable, invalidParams, ...
	Error struct {
		Code    int
		Message string
		Data    struct{ Kind string }
	}
	// Output is the output of a tool call.
	Output struct {
		Status    string `json:"status"`
		Text      string `json:"text,omitempty"`
		Value     JSON   `json:"value,omitempty"`
		Failure   JSON   `json:"failure,omitempty"`
		Artifact  JSON   `json:"artifact,omitempty"`
		Change    JSON   `json:"change,omitempty"`
		Exhausted bool   `json:"exhausted,omitempty"`
		// Attachments are files for the model: {"type", "name"?} with "data" (base64), "digest" of an artifact of the session, or "url".
		Attachments []Object `json:"attachments,omitempty"`
	}
	// StreamChunk is a piece of streamed text. Abort ends the reply.
	StreamChunk struct {
		Text      string   `json:"text"`
		Reasoning []string `json:"reasoning"`
		Events    []Object `json:"events"`
		Abort     bool     `json:"abort"`
	}
	// Message is a message of a conversation. In messages of plugins, Content is short for one text part.
	Message struct {
		Role    string   `json:"role"`
		Content string   `json:"content,omitempty"`
		Parts   []Object `json:"parts,omitempty"`
	}
	// PromptText is a text for the system prompt, in a slot such as guidance.
	PromptText struct {
		Slot     string   `json:"slot"`
		Title    string   `json:"title"`
		Priority int      `json:"priority"`
		Tools    []string `json:"tools"`
		Content  string   `json:"content"`
	}
)

// Succeed returns a success with a text for the model.
func Succeed(text string) Output { return Output{Status: "success", Text: text} }

// Fail returns a failure of a class such as execution or permissionDenied.
func Fail(class, code, message string) Output {
	failure, _ := json.Marshal(Object{"class": class, "code": code, "message": message, "source": "plugin"}) // strings always marshal
	return Output{Status: "failure", Text: message, Failure: failure}
}

// The directives of a hook.
var (
	Abort = func(code, message string) Directives { // ends the turn, or fails the call
		return Directives{{"kind": "abort_turn", "code": code, "message": message}}
	}
	Deny = func(message string) Directives { // denies a call; the model reads the message
		return ShortCircuit(Fail("permissionDenied", "denied", message))
	}
	ShortCircuit   = wanting[Output]("short_circuit_tool", "output")    // before a call: its output, without running it; after it: another output
	ReplaceArgs    = wanting[any]("replace_tool_args", "args")          // replaces the arguments of a call
	AskFirst       = wanting[Object]("require_approval", "approval")    // requires approval: reason, deadlineMs, default
	Enqueue        = wanting[[]Message]("enqueue_messages", "messages") // adds messages to the conversation
	CreateSession  = wanting[any]("create_session", "session")          // creates a session, with the params of session/new
	Tell           = wanting[[]Object]("emit_runtime_events", "events") // sends events to clients: kind, key, label, detail
	Trace          = wanting[Object]("emit_trace", "trace")             // adds a trace record: name, payload
	CompactHistory = Directives{{"kind": "compact_history"}}            // compacts history before the next turn
)

func wanting[V any](kind, member string) func(V) Directives {
	return func(value V) Directives { return Directives{{"kind": kind, member: value}} }
}

// Session is an open session.
type Session struct {
	Instance, SessionID, ParentSessionID, Cwd, DataDir string            // no SessionID: an operation without a session
	Config, Options, ToolAccess, Subagent, Extensions  JSON              // Config applies to all sessions, Options to this one
	sync.Mutex                                                           // hold it to read stored state
	Artifacts                                          map[string][]byte `json:"-"` // stored with the state
	plugin                                             *plugin
	handlers                                           map[string]func(*Call) (any, error) // by method and name
	version                                            string
	state                                              any
	revision                                           uint64
}

// Keep makes lashd store the value that state points to. version is the state version in plugin.json.
func (s *Session) Keep(version string, state any) {
	s.version, s.state = version, state
	s.handlers["snapshot/write"], s.handlers["snapshot/restore"] = s.write, s.restore
}

// Change calls f, which changes stored state, with the lock held, and notifies lashd.
func (s *Session) Change(f func()) {
	s.Lock()
	defer s.Unlock()
	s.revision++
	s.Notify("snapshot/changed", Object{"instance": s.Instance, "revision": s.revision})
	f()
}

// Notify sends a notification: tool/progress with the grant of a call and text, tools/changed with the instance, or log.
func (s *Session) Notify(method string, params Object) {
	_ = s.plugin.send(Object{"method": method, "params": params}) // an error means that lashd has gone
}

// On registers f for a hook or another Method.
func On[C, A any](s *Session, m Method[C, A], f func(*Call, C) (A, error)) {
	s.handlers[m.Name] = func(c *Call) (any, error) {
		var given C
		if err := json.Unmarshal(c.Params, &struct{ Context, Args *C }{&given, &given}); err != nil {
			return nil, err
		}
		answer, err := f(c, given)
		if m.Member == "" {
			return answer, err
		}
		return Object{m.Member: answer}, err
	}
}

// Tool registers f for a tool, or for all tools without a handler with "*". The arguments are decoded into an A.
func Tool[A any](s *Session, name string, f func(*Call, A) (Output, error)) {
	On(s, Method[A, Output]{"tool/execute " + name, "output"}, f)
}

// Operation registers f for a query, a command or a task. f returns its output.
func Operation[A, O any](s *Session, name string, f func(*Call, A) (O, error)) {
	for _, kind := range []string{"query ", "command ", "task "} {
		On(s, Method[A, O]{"operation/" + kind + name, "output"}, f)
	}
}

// Call is a call from lashd. It is a context that is done when lashd cancels the call, or when the call has its result.
type Call struct {
	context.Context                       `json:"-"`
	Session                               *Session  `json:"-"`
	Instance, Grant, TurnID, CallID, Name string    // Name: of the tool or the operation
	Messages                              []Message // the conversation, if the hook declares that it needs it
	Params                                JSON      `json:"-"` // all params, as received
}

// Executor runs the code cells of a session and keeps their globals as values by name. Register it with RunCells.
type Executor interface {
	Describe(c *Call, tools []Object) (language, guide string, err error) // guide: how a model writes cells that call the tools
	Execute(c *Cell) (CellReply, error)
	Snapshot() (CodeChange, error)          // since the last one
	Restore(values map[string][]byte) error // replaces all globals
}

// Cell is a code cell that runs. If it runs again after a crash, lashd answers as it did the first time.
type Cell struct {
	*Call                    `json:"-"`
	CellID, Language, Source string
	AcceptFinish             bool     // the cell may end the turn, with a value that matches Schema
	Schema                   JSON     // nil: any value
	Tools                    []Object // manifests
}

// CallTools calls tools together; each call has a name and args. The outputs have the same order.
func (c *Cell) CallTools(calls ...Object) ([]Output, error) {
	answer, err := Host[struct{ Data []Output }](c.Call, "callTool", Object{"calls": calls})
	return answer.Data, err
}

// Now returns the time in nanoseconds since 1970.
func (c *Cell) Now() (int64, error) {
	answer, err := Host[struct{ UnixNs int64 }](c.Call, "now", nil)
	return answer.UnixNs, err
}

// Random returns 32 random bytes.
func (c *Cell) Random() ([]byte, error) {
	answer, err := Host[struct{ Bytes []byte }](c.Call, "random", nil)
	return answer.Bytes, err
}

// History returns the conversation that the model sees.
func (c *Cell) History() ([]Message, error) {
	answer, err := Host[struct{ Data []Message }](c.Call, "history", nil)
	return answer.Data, err
}

// CellReply is the result of a cell, and CodeChange is how the globals differ from the last snapshot.
type (
	CellReply struct {
		Printed  string   `json:"printed,omitempty"`
		Value    any      `json:"value,omitempty"` // of the last expression
		Error    string   `json:"error,omitempty"` // of the code
		Position Object   `json:"position,omitempty"`
		Control  Object   `json:"control,omitempty"` // how the cell ends the turn: kind, value
		Changed  []string `json:"changed,omitempty"` // names of globals
		Unsaved  []Object `json:"unsaved,omitempty"` // name and reason of globals that cannot be stored
	}
	CodeChange struct {
		Changed map[string][]byte `json:"changed,omitempty"`
		Removed []string          `json:"removed,omitempty"`
		Globals []Object          `json:"globals,omitempty"` // all: name, type, size
		More    bool              `json:"more,omitempty"`    // RunCells sets it
	}
)

// RunCells registers an executor.
func RunCells(s *Session, x Executor) {
	unsent, arriving, sending := map[string][]byte{}, map[string][]byte{}, (*CodeChange)(nil)
	var tools []Object // of the last cell: lashd sends them again when they change
	s.handlers["code/describe"] = func(c *Call) (any, error) {
		var p struct{ Tools []Object }
		err := json.Unmarshal(c.Params, &p)
		language, guide, failed := x.Describe(c, p.Tools)
		return Object{"language": language, "guide": guide}, errors.Join(err, failed)
	}
	s.handlers["code/execute"] = func(c *Call) (any, error) {
		sending = nil
		cell := &Cell{Call: c}
		if err := json.Unmarshal(c.Params, cell); err != nil {
			return nil, err
		}
		if cell.Tools == nil {
			cell.Tools = tools
		}
		tools = cell.Tools
		return x.Execute(cell)
	}
	s.handlers["code/snapshot"] = func(*Call) (any, error) {
		if sending == nil {
			change, err := x.Snapshot()
			if err != nil {
				return nil, err
			}
			sending = &change
		}
		change := *sending
		for _, name := range change.Removed {
			delete(unsent, name)
		}
		maps.Copy(unsent, change.Changed)
		change.Changed = map[string][]byte{}
		size := 0
		for name, data := range unsent { // a large change needs several answers
			if size += len(data); size > 4<<20 && size > len(data) {
				break
			}
			change.Changed[name] = data
			delete(unsent, name)
		}
		if change.More = len(unsent) > 0; change.More {
			sending = &CodeChange{Removed: change.Removed, Globals: change.Globals}
		} else {
			sending = nil
		}
		return change, nil
	}
	s.handlers["code/restore"] = func(c *Call) (any, error) {
		var p struct {
			Values map[string][]byte
			More   bool
		}
		err := json.Unmarshal(c.Params, &p)
		maps.Copy(arriving, p.Values)
		if err != nil || p.More {
			return None{}, err
		}
		values := maps.Clone(arriving)
		clear(arriving)
		clear(unsent)
		sending = nil
		return None{}, x.Restore(values)
	}
}

// Host sends a request to lashd, such as toolCatalog; docs/plugin-protocol.md lists the methods. A rejection is an *Error.
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

// message is a message from lashd.
type message struct {
	ID, Params, Result JSON
	Method             string
	Error              *Error
}

// plugin is the connection to lashd.
type plugin struct {
	open     func(*Session) error
	offer    JSON     // the params of initialize
	sessions sync.Map // *Session, by instance
	waiting  sync.Map // func(*message), by ID: receives a response, or cancels a call
	writing  sync.Mutex
	out      *os.File
}

// Run serves until lashd stops the plugin. open registers the handlers of a session and must have no other effects: Run also
// calls it once for the handshake, with an empty session.
func Run(open func(*Session) error) {
	p := &plugin{open: open, offer: JSON("{}"), out: os.Stdout}
	os.Stdout = os.Stderr // reserve the pipe for the protocol
	for in, m := json.NewDecoder(os.Stdin), new(message); in.Decode(m) == nil && m.Method != "shutdown"; m = new(message) {
		switch m.Method {
		case "$/cancelRequest":
			_ = json.Unmarshal(m.Params, m) // without an ID, wake finds nothing
			fallthrough
		case "":
			p.wake(m)
		case "initialize", "session/close": // must finish before the next message
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
		_ = p.send(Object{"id": m.ID, "error": Object{"code": failed.Code, "message": failed.Message}}) // an error means that lashd has gone
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
	_ = json.Unmarshal(m.Params, c) // missing fields are reported below
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
		return nil, fmt.Errorf("lashd uses protocol version %v, this SDK 1", offer["protocolVersion"])
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
	if err == nil && len(line) >= 8<<20 { // lashd would end the plugin
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
		err = fmt.Errorf("cannot read state of version %q", given.Meta.Version)
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
