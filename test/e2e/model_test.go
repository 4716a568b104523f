package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"lashd/test/fakemodel"
)

// door is a listener that can be shut. While it is shut, clients connect and are not served.
type door struct {
	net.Listener
	knocks chan struct{} // one value for each connection while it was shut

	mu   sync.Mutex
	shut bool
	held []net.Conn
}

// Accept implements net.Listener.
func (d *door) Accept() (net.Conn, error) {
	for {
		c, err := d.Listener.Accept()
		if err != nil || !d.hold(c) {
			return c, err
		}
		d.knocks <- struct{}{}
	}
}

func (d *door) hold(c net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shut {
		d.held = append(d.held, c)
	}
	return d.shut
}

func (d *door) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut = true
}

// open closes the waiting connections and serves new ones.
func (d *door) open() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.held {
		c.Close()
	}
	d.shut, d.held = false, nil
}

// serveModel serves a model behind a door. Clients must open a connection for each call, so every call
// passes the door.
func serveModel(t *testing.T, steps ...fakemodel.Step) (*fakemodel.Server, *door) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &door{Listener: l, knocks: make(chan struct{}, 16)}
	model := fakemodel.New(steps...)
	server := &http.Server{Handler: model}
	server.SetKeepAlivesEnabled(false)
	var served sync.WaitGroup
	served.Go(func() { server.Serve(d) }) // always returns ErrServerClosed
	t.Cleanup(func() {
		d.open()
		server.Close()
		model.Close()
		served.Wait()
	})
	return model, d
}

// configFor is a config.toml for a model server at url. Commands run outside of a sandbox, so that what is asked does not depend on the
// system; tests of the sandbox say so in their configuration.
func configFor(addr net.Addr, approval string) string {
	return fmt.Sprintf("model = \"fake\"\nbase_url = \"http://%s/v1\"\nkey_env = \"LASHD_E2E_NO_KEY\"\napproval = %q\nsandbox = \"fullAccess\"\ntrace = true\n", addr, approval)
}

// Every completed reply reports this token usage.
const inputTokens, outputTokens = 10, 5

func step(parts ...fakemodel.Part) fakemodel.Step {
	return fakemodel.Step{Parts: parts, Usage: &fakemodel.Usage{Prompt: inputTokens, Completion: outputTokens}}
}

func says(s string) fakemodel.Part { return fakemodel.Part{Text: s} }

var stalls = fakemodel.Part{Stall: true}

type shellArgs struct {
	Command string `json:"command"`
}

func shell(command string) fakemodel.Part { return uses("shell", shellArgs{command}) }

func uses(tool string, args any) fakemodel.Part {
	return fakemodel.Part{Calls: []fakemodel.Call{{Name: tool, Args: mustArgs(args)}}}
}

func mustArgs(args any) string {
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err) // cannot fail for types of this package
	}
	return string(raw)
}

// paced is a prompt on which the model runs a command and then streams for some milliseconds.
func paced(command string) string {
	marker := fakemodel.ToolMarker("shell", mustArgs(shellArgs{command}))
	return strings.TrimSuffix(marker, "]]") + " deltas=12 size=4 us=1000]]"
}

// world is a data directory whose daemon uses a model that the test controls.
type world struct {
	*home
	model *fakemodel.Server
	door  *door
}

func newWorld(t *testing.T, approval string, steps ...fakemodel.Step) *world {
	t.Helper()
	model, d := serveModel(t, steps...)
	return &world{newHome(t, map[string]string{"config.toml": configFor(d.Addr(), approval)}), model, d}
}

// knocked waits until the daemon has connected to the shut model server.
func (w *world) knocked() {
	w.t.Helper()
	select {
	case <-w.door.knocks:
	case <-time.After(patience):
		w.t.Fatal("the daemon did not try to reach the model")
	}
}

// asked waits until the model was called n times.
func (w *world) asked(n int) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	if err := w.model.Await(ctx, n); err != nil {
		w.t.Fatal(err)
	}
}

// bodies are the requests that the model got, as text.
func (w *world) bodies() (all []string) {
	for _, r := range w.model.Requests() {
		all = append(all, string(r.Body))
	}
	return all
}

// read returns how often the model has read a text, in its last request.
func (w *world) read(text string) int {
	all := w.model.Requests()
	return strings.Count(string(all[len(all)-1].Body), text)
}
