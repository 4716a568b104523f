package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lashd/test/skip"
)

// npmEditor is an editor built on the protocol's npm SDK, which checks what it sends and receives.
type npmEditor struct {
	t  *testing.T
	in io.WriteCloser
	id string // session

	greeting json.RawMessage // the answer to initialize

	mu      sync.Mutex
	changed chan struct{}
	results map[int]npmAnswer
	updates []json.RawMessage
	asked   []npmRequest
}

// npmAnswer is the answer to a request of the editor.
type npmAnswer struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    struct {
			Kind    string `json:"kind"`
			Pointer string `json:"pointer"`
		} `json:"data"`
	} `json:"error"`
}

// npmRequest is a request of the agent.
type npmRequest struct {
	Ask    int             `json:"ask"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// npm starts lashd acp in the SDK's client and initializes it with these capabilities.
func (w *world) npm(capabilities string, args ...string) *npmEditor {
	lashd := w.command(append([]string{"acp"}, args...)...)
	return w.npmWith(capabilities, lashd.Args[0], lashd.Args[1:]...)
}

// npmWith does the same with a command of the agent.
func (w *world) npmWith(capabilities, program string, args ...string) *npmEditor {
	w.t.Helper()
	_, err := exec.LookPath("node")
	skip.Unless(w.t, "NODE", err == nil, "node is not installed")
	npmFile(w.t, "@agentclientprotocol/sdk/package.json")
	cmd := exec.Command("node", append([]string{"servers/acpdrive.mjs", program}, args...)...)
	cmd.Env, cmd.Stderr = w.command("acp").Env, os.Stderr
	in, out := w.piped(cmd)
	e := &npmEditor{t: w.t, in: in, changed: make(chan struct{}), results: map[int]npmAnswer{}}
	var reading sync.WaitGroup
	reading.Go(func() { e.read(out) })
	w.t.Cleanup(func() {
		in.Close()
		reading.Wait()
		cmd.Wait()
	})
	e.must("initialize", fmt.Sprintf(`{"protocolVersion":1,"clientCapabilities":%s}`, capabilities), &e.greeting)
	return e
}

// read collects what the client prints.
func (e *npmEditor) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var line struct {
			ID     *int            `json:"id"`
			Ask    *int            `json:"ask"`
			Update json.RawMessage `json:"update"`
			npmAnswer
		}
		var request npmRequest
		if json.Unmarshal(lines.Bytes(), &line) != nil || json.Unmarshal(lines.Bytes(), &request) != nil {
			e.t.Errorf("the editor prints %s", lines.Bytes())
			continue
		}
		e.mu.Lock()
		switch {
		case line.ID != nil:
			e.results[*line.ID] = line.npmAnswer
		case line.Ask != nil:
			e.asked = append(e.asked, request)
		default:
			e.updates = append(e.updates, line.Update)
		}
		close(e.changed)
		e.changed = make(chan struct{})
		e.mu.Unlock()
	}
}

// until waits until a condition on what the editor has received holds.
func (e *npmEditor) until(what string, ok func() bool) {
	e.t.Helper()
	limit := time.After(patience)
	for {
		e.mu.Lock()
		done, changed := ok(), e.changed
		e.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-limit:
			e.t.Fatalf("timed out waiting until %s; the editor received %s", what, e.updates)
		}
	}
}

// send sends a request and returns the function that waits for its answer.
func (e *npmEditor) send(method, params string) func() npmAnswer {
	e.t.Helper()
	e.mu.Lock()
	id := len(e.results)
	for ; ; id++ {
		if _, used := e.results[id]; !used {
			break
		}
	}
	e.results[id] = npmAnswer{}
	e.mu.Unlock()
	fmt.Fprintf(e.in, `{"id":%d,"method":%q,"params":%s}`+"\n", id, method, params)
	return func() (r npmAnswer) {
		e.t.Helper()
		e.until(method+" is answered", func() bool {
			r = e.results[id]
			return r.Result != nil || r.Error != nil
		})
		return r
	}
}

// must sends a request that has to succeed.
func (e *npmEditor) must(method, params string, result any) {
	e.t.Helper()
	r := e.send(method, params)()
	if r.Error != nil {
		e.t.Fatalf("%s %s: %+v", method, params, r.Error)
	}
	if err := json.Unmarshal(r.Result, result); err != nil {
		e.t.Fatalf("%s: %v: %s", method, err, r.Result)
	}
}

// refused sends a request that has to fail, and returns the code, the kind and the pointer of the error.
func (e *npmEditor) refused(method, params string) string {
	e.t.Helper()
	r := e.send(method, params)()
	if r.Error == nil {
		return "no error: " + string(r.Result)
	}
	return strings.TrimSpace(fmt.Sprint(r.Error.Code, " ", r.Error.Data.Kind, " ", r.Error.Data.Pointer))
}

// open creates a session in a directory and returns the answer.
func (e *npmEditor) open(cwd string) json.RawMessage {
	e.t.Helper()
	var raw json.RawMessage
	var made struct{ SessionID string }
	e.must("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, cwd), &raw)
	if err := json.Unmarshal(raw, &made); err != nil {
		e.t.Fatal(err)
	}
	e.id = made.SessionID
	return raw
}

// prompt sends a prompt of text, and returns the function that waits for its stop reason.
func (e *npmEditor) prompt(text string) func() string {
	e.t.Helper()
	answer := e.send("session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}`, e.id, text))
	return func() string {
		e.t.Helper()
		r := answer()
		if r.Error != nil {
			return fmt.Sprint(r.Error.Code, " ", r.Error.Message)
		}
		var stop struct{ StopReason string }
		if err := json.Unmarshal(r.Result, &stop); err != nil {
			e.t.Fatal(err)
		}
		return stop.StopReason
	}
}

// request waits for the request of the agent with an index, counted from 0.
func (e *npmEditor) request(n int) (r npmRequest) {
	e.t.Helper()
	e.until(fmt.Sprintf("the agent sends request %d", n), func() bool { return len(e.asked) > n })
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.asked[n]
}

// answer answers a request of the agent.
func (e *npmEditor) answer(r npmRequest, result string) {
	fmt.Fprintf(e.in, `{"answer":%d,"result":%s}`+"\n", r.Ask, result)
}

// chooses answers a permission request with an option.
func (e *npmEditor) chooses(r npmRequest, option string) {
	e.answer(r, fmt.Sprintf(`{"outcome":{"outcome":"selected","optionId":%q}}`, option))
}

// received waits for an update that contains all parts.
func (e *npmEditor) received(parts ...string) {
	e.t.Helper()
	e.until(fmt.Sprintf("an update has %q", parts), func() bool { return e.hasLocked(parts...) })
}

func (e *npmEditor) hasLocked(parts ...string) bool {
	return slices.ContainsFunc(e.updates, func(u json.RawMessage) bool {
		return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(string(u), part) })
	})
}
