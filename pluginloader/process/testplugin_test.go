//go:build unix

package process_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"lashd/engine/plugin"
	"lashd/engine/starlark/worker"
	"lashd/rpc/protocol"
)

// roleVariable makes a plugin of the test binary. It speaks the protocol in its own words: nothing of package process is
// used here.
const roleVariable = "PROCESS_TEST_ROLE"

// guest is the plugin in the process.
type guest struct {
	role string

	writing sync.Mutex
	mu      sync.Mutex
	last    int
	answers map[string]chan frame
	rooms   map[string]*room // by instance
	first   string           // grant that it was given
	stopped atomic.Bool      // it does not read any more
	late    chan struct{}    // signals that a call was abandoned
}

// room is a session.
type room struct {
	Notes    []string `json:"notes"`
	revision uint64
	cells    string
	grown    bool
}

type frame struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *fault          `json:"error,omitempty"`
}

type fault struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// asked is what the guest reads of all params.
type asked struct {
	Instance  string            `json:"instance"`
	Grant     string            `json:"grant"`
	Name      string            `json:"name"`
	Args      json.RawMessage   `json:"args"`
	Source    string            `json:"source"`
	Tools     []json.RawMessage `json:"tools"`
	Values    map[string][]byte `json:"values"`
	Meta      plugin.Meta       `json:"meta"`
	Artifacts []plugin.Artifact `json:"artifacts"`
	Context   json.RawMessage   `json:"context"`
	Messages  []json.RawMessage `json:"messages"`
	Task      protocol.Task     `json:"task"`
}

func serveGuest(role string) {
	g := &guest{role: role, answers: map[string]chan frame{}, rooms: map[string]*room{}, late: make(chan struct{}, 1)}
	if role == "echo" {
		serveEcho()
		return
	}
	if role == "starlark" {
		os.Exit(worker.Main())
	}
	g.begin()
	in := bufio.NewReader(os.Stdin)
	for {
		if g.stopped.Load() {
			forever()
		}
		line, err := in.ReadBytes('\n')
		if err != nil {
			g.orphaned()
			return
		}
		var f frame
		if err := json.Unmarshal(line, &f); err != nil {
			panic(err)
		}
		if role == "quick" && strings.HasPrefix(f.Method, "hook/") {
			var p map[string]any
			if err := json.Unmarshal(f.Params, &p); err != nil {
				panic(err)
			}
			g.send(frame{JSONRPC: "2.0", ID: f.ID, Result: json.RawMessage("{}")})
			continue
		}
		g.receive(f)
	}
}

func (g *guest) receive(f frame) {
	switch {
	case f.Method == "" && f.ID != nil:
		g.mu.Lock()
		answer := g.answers[string(f.ID)]
		delete(g.answers, string(f.ID))
		g.mu.Unlock()
		answer <- f
	case f.ID == nil:
		g.told(f)
	case g.role == "probes" || f.Method == "tool/execute" || f.Method == "task/run" || f.Method == "snapshot/write" || f.Method == "snapshot/restore" || strings.HasPrefix(f.Method, "hook/"):
		go g.answer(f) // these may ask back
	default:
		g.answer(f)
	}
}

func (g *guest) told(f frame) {
	if f.Method == "shutdown" && g.misbehaves(f) {
		return
	}
	if f.Method == "session/close" {
		var p asked
		_ = json.Unmarshal(f.Params, &p)
		g.mu.Lock()
		delete(g.rooms, p.Instance)
		g.mu.Unlock()
	}
	if f.Method == "$/cancelRequest" {
		select {
		case g.late <- struct{}{}:
		default:
		}
	}
	if strings.HasPrefix(f.Method, "task/") {
		g.taskTold(f)
	}
}

// runTask is work that ends as its payload says: at once, or never.
func (g *guest) runTask(p asked) (any, error) {
	leave(fmt.Sprintf("%s/%s.%d", os.Getenv("PLUGIN_DATA"), p.Task.ID, p.Task.Attempt), p.Grant)
	switch string(p.Task.Spec.Payload) {
	case `"dies once"`:
		if p.Task.Attempt == 1 {
			os.Exit(4)
		}
	case `"dies"`:
		os.Exit(4)
	case `"fails"`:
		return nil, errors.New("no luck")
	case `"lasts"`:
		forever()
	}
	return map[string]any{"outcome": map[string]any{"kind": "completed", "value": p.Task.Attempt}}, nil
}

// taskTold writes down what is said of a task.
func (g *guest) taskTold(f frame) {
	var p struct {
		TaskID string          `json:"taskId"`
		Signal json.RawMessage `json:"signal"`
	}
	_ = json.Unmarshal(f.Params, &p)
	leave(os.Getenv("PLUGIN_DATA")+"/"+strings.ReplaceAll(f.Method, "/", "-")+"."+p.TaskID, string(p.Signal))
}

func (g *guest) answer(f frame) {
	if g.misbehaves(f) {
		return
	}
	if g.role == "probes" {
		g.probe(f)
	}
	result, err := g.do(f)
	out := frame{JSONRPC: "2.0", ID: f.ID}
	if err != nil {
		out.Error = &fault{Code: 1, Message: err.Error()}
	} else {
		out.Result = mustJSON(result)
	}
	g.send(out)
	if g.role == "answers and ends" && f.Method == "tool/execute" {
		os.Exit(0)
	}
}

func (g *guest) send(f frame) { g.write(append(mustJSON(f), '\n')) }

func (g *guest) write(line []byte) {
	g.writing.Lock()
	defer g.writing.Unlock()
	_, _ = os.Stdout.Write(line)
}

func (g *guest) tell(method string, params any) {
	g.send(frame{JSONRPC: "2.0", Method: method, Params: mustJSON(params)})
}

// ask calls the daemon.
func (g *guest) ask(method string, params any) (json.RawMessage, error) {
	g.mu.Lock()
	g.last++
	id, answer := fmt.Sprintf(`"g%d"`, g.last), make(chan frame, 1)
	g.answers[id] = answer
	g.mu.Unlock()
	g.send(frame{JSONRPC: "2.0", ID: json.RawMessage(id), Method: method, Params: mustJSON(params)})
	f := <-answer
	if f.Error != nil {
		return nil, fmt.Errorf("%s %s", f.Error.Message, f.Error.Data)
	}
	return f.Result, nil
}

func mustJSON(v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return body
}

func (g *guest) do(f frame) (any, error) {
	var p asked
	if err := json.Unmarshal(f.Params, &p); err != nil && f.Method != "code/restore" && !strings.HasPrefix(f.Method, "snapshot") {
		return nil, err
	}
	g.mu.Lock()
	if g.first == "" {
		g.first = p.Grant
	}
	r := g.rooms[p.Instance]
	if f.Method == "session/open" {
		r = &room{}
		g.rooms[p.Instance] = r
	}
	g.mu.Unlock()
	switch {
	case f.Method == "initialize":
		return g.initialize(f.Params)
	case r == nil:
		return nil, fmt.Errorf("%s: there is no instance %q", f.Method, p.Instance)
	case strings.HasPrefix(f.Method, "hook/"):
		return g.hook(strings.TrimPrefix(f.Method, "hook/"), r, p)
	}
	return g.work(f.Method, r, p)
}

func serveEcho() {
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var v map[string]any
		if err := json.Unmarshal(line, &v); err != nil {
			panic(err)
		}
		_, _ = os.Stdout.Write(append(mustJSON(v), '\n'))
	}
}
