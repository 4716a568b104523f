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
	"time"

	"lashd/engine/plugin"
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
	late    chan struct{}    // tells that a call was given up
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
	State     []byte            `json:"state"`
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

func (g *guest) initialize(params json.RawMessage) (any, error) {
	var p map[string]any
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, err
	}
	delete(p, "config")
	delete(p, "dataDir")
	switch g.role {
	case "nonce":
		p["nonce"] = "another"
	case "version":
		p["protocolVersion"] = 2
	case "identity":
		p["pluginId"] = "somebody"
	case "more":
		p["contributes"].(map[string]any)["tools"] = []string{"note", "sudo"}
	case "field":
		p["root"] = true
	}
	return p, nil
}

func (g *guest) work(method string, r *room, p asked) (any, error) {
	switch method {
	case "session/open", "code/restore":
		r.cells = string(p.State)
		return struct{}{}, nil
	case "snapshot/write":
		if g.role == "bulky" {
			if err := g.bulk(p.Grant); err != nil {
				return nil, err
			}
		}
		return map[string]any{"revision": r.revision, "state": r, "artifacts": []plugin.Artifact{{Name: "all", Data: []byte(strings.Join(r.Notes, "\n"))}}}, nil
	case "snapshot/restore":
		if g.role == "refuses" {
			return nil, fmt.Errorf("cannot read that")
		}
		r.revision = p.Meta.Revision
		r.Notes = nil
		return struct{}{}, json.Unmarshal(p.Meta.State, r)
	case "tool/list":
		list := []map[string]any{{"name": "note", "description": "Note something.", "contract": protocol.ToolContract{Replay: "never"}}}
		if r.grown {
			list = append(list, map[string]any{"name": "grown", "description": "New.", "contract": protocol.ToolContract{Replay: "safe"}})
		}
		return map[string]any{"data": list}, nil
	case "tool/prepare":
		return map[string]any{"args": p.Args}, nil
	case "tool/execute":
		return g.execute(r, p)
	case "operation/query":
		return map[string]any{"output": r.Notes}, nil
	case "operation/command", "operation/task":
		g.note(r, p.Instance, string(p.Args))
		return map[string]any{"output": len(r.Notes), "events": []any{map[string]any{"type": "noted", "body": p.Args}}}, nil
	case "task/run":
		return g.runTask(p)
	case "code/execute":
		r.cells += p.Source
		return map[string]any{"printed": r.cells}, nil
	case "code/snapshot":
		return map[string]any{"state": []byte(r.cells)}, nil
	}
	return nil, fmt.Errorf("no method %s", method)
}

// bulk writes an artifact of 3 MiB in pieces.
func (g *guest) bulk(grant string) error {
	piece := []byte(strings.Repeat("x", 1<<20))
	for n := range 3 {
		if _, err := g.ask("host/artifactWrite", map[string]any{"grant": grant, "name": "bulk", "offset": n << 20, "data": piece}); err != nil {
			return err
		}
	}
	return nil
}

func (g *guest) note(r *room, instance, text string) {
	r.Notes = append(r.Notes, text)
	r.revision++
	g.tell("snapshot/changed", map[string]any{"instance": instance, "revision": r.revision})
}

func (g *guest) execute(r *room, p asked) (any, error) {
	var args struct {
		Text   string          `json:"text"`
		Host   string          `json:"host"`   // a method of the daemon
		Params json.RawMessage `json:"params"` // of it; the grant is put in
		Grow   bool            `json:"grow"`
		Times  int             `json:"times"` // it is asked
	}
	if err := json.Unmarshal(p.Args, &args); err != nil {
		return nil, err
	}
	g.tell("tool/progress", map[string]any{"grant": p.Grant, "text": "noting"})
	text := args.Text
	switch {
	case g.role == "lends":
		leave(os.Getenv("LENT"), p.Grant)
		found(os.Getenv("LENT") + ".tried")
		text = g.back(args.Host, p.Grant, args.Params)
	case g.role == "borrows":
		text = g.back(args.Host, found(os.Getenv("LENT")), args.Params)
		leave(os.Getenv("LENT")+".tried", "x")
	case args.Host == "env":
		text = strings.Join(os.Environ(), "\n")
	case args.Times > 0:
		text = g.often(args.Times, args.Host, p.Grant, args.Params)
	case args.Host != "":
		text = g.back(args.Host, p.Grant, args.Params)
	case args.Grow:
		r.grown = true
		g.tell("tools/changed", map[string]any{"instance": p.Instance})
	default:
		g.note(r, p.Instance, args.Text)
	}
	return map[string]any{"output": map[string]any{"status": "success", "text": text}}, nil
}

// leave puts a text where another plugin finds it.
func leave(path, text string) {
	if err := errors.Join(os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path)); err != nil {
		panic(err)
	}
}

// found waits for it.
func found(path string) string {
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		if text, err := os.ReadFile(path); err == nil {
			return string(text)
		}
	}
	return "nothing"
}

// back asks the daemon, with the grant unless the params have one, and gives what came of it as text.
func (g *guest) back(method, grant string, params json.RawMessage) string {
	all := map[string]any{"grant": grant}
	if g.role == "remembers" {
		all["grant"] = g.first
	}
	if len(params) > 0 {
		_ = json.Unmarshal(params, &all)
	}
	got, err := g.ask(method, all)
	if err != nil {
		return "refused: " + err.Error()
	}
	return string(got)
}

// often asks the daemon again and again, and counts what came of it.
func (g *guest) often(times int, method, grant string, params json.RawMessage) string {
	refused, began := 0, time.Now()
	for range times {
		if strings.Contains(g.back(method, grant, params), `"kind":"overloaded"`) {
			refused++
		}
	}
	return fmt.Sprint(times-refused, " ", refused, " ", int(time.Since(began).Seconds()))
}

func (g *guest) hook(name string, r *room, p asked) (any, error) {
	var c struct {
		Text   string            `json:"text"`
		Args   json.RawMessage   `json:"args"`
		Input  []json.RawMessage `json:"input"`
		Config json.RawMessage   `json:"config"`
		Output json.RawMessage   `json:"output"`
		Parts  json.RawMessage   `json:"parts"`
		Stop   string            `json:"stop"`
	}
	if err := json.Unmarshal(p.Context, &c); err != nil {
		return nil, err
	}
	switch name {
	case "prompt":
		return map[string]any{"prompts": []plugin.Prompt{{Slot: plugin.SlotGuidance, Content: fmt.Sprintf("%d notes", len(r.Notes))}}}, nil
	case "beforeTurn":
		if len(c.Input) > 0 && strings.Contains(string(c.Input[0]), "curfew") {
			return directives(map[string]any{"kind": "abort_turn", "code": "curfew", "message": "go to bed"}), nil
		}
	case "beforeToolCall":
		if strings.Contains(string(c.Args), "secret") {
			return directives(map[string]any{"kind": "replace_tool_args", "args": map[string]any{"text": "masked"}}), nil
		}
		if strings.Contains(string(c.Args), "forbidden") {
			return directives(map[string]any{"kind": "short_circuit_tool", "output": map[string]any{
				"status": "failure", "text": "no", "failure": map[string]any{"class": "permissionDenied", "code": "forbidden", "message": "no", "source": "plugin"},
			}}), nil
		}
	case "checkpoint", "afterToolCall", "afterTurn":
		return directives(map[string]any{"kind": "emit_trace", "trace": map[string]any{"name": name}}), nil
	case "assistantStream":
		return map[string]any{"text": strings.ToUpper(c.Text)}, nil
	case "assistantResponse":
		return map[string]any{"parts": c.Parts, "stop": c.Stop, "events": []any{map[string]any{"kind": "custom", "name": "seen"}}}, nil
	case "projectToolResult":
		return map[string]any{"output": c.Output}, nil
	case "configChanged":
		return map[string]any{"config": c.Config}, nil
	case "catalog":
		return g.omit(r), nil
	case "projectProse":
		return map[string]any{"text": strings.ReplaceAll(c.Text, "<CODE>", "")}, nil
	case "transformContext":
		err := withoutView(&p.Context)
		return p.Context, err
	}
	return struct{}{}, nil
}

// omit leaves out the tools that are noted, and one more.
func (g *guest) omit(r *room) any {
	g.tell("log", map[string]any{"level": "INFO", "message": "asked for the catalog"})
	return map[string]any{"remove": append([]string{"hidden"}, r.Notes...)}
}

func withoutView(raw *json.RawMessage) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(*raw, &all); err != nil {
		return err
	}
	delete(all, "view")
	*raw = mustJSON(all)
	return nil
}

func directives(list ...any) any { return map[string]any{"directives": list} }

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
