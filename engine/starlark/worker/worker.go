// Package worker is the process that runs the Starlark cells of a session: the plugin protocol on stdin and stdout around
// package starlark. The daemon starts it as it starts any plugin process, in a sandbox, and keeps it warm between cells.
//
// The process limits itself on Linux, so that a cell that the interpreter cannot stop ends the process and not the
// machine. It exits when its input ends.
package worker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"lashd/engine/starlark"
)

// Exit codes of the process.
const (
	exitDone  = 0 // the daemon ended the input
	exitIO    = 1 // stdin or stdout failed
	exitStuck = 3 // a cell did not stop
)

// Main runs the process on stdin and stdout until the input ends, and returns its exit code.
func Main() int {
	out := os.Stdout
	os.Stdout = os.Stderr // nothing but messages may reach the pipe
	debug.SetTraceback("none")
	w := &worker{out: out, sessions: map[string]*session{}, stuck: func(reason string) {
		fmt.Fprintln(os.Stderr, "lashd worker: the cell does not stop, so the process ends:", reason)
		os.Exit(exitStuck)
	}}
	if err := w.serve(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "lashd worker:", err)
		return exitIO
	}
	return exitDone
}

// worker is the connection to the daemon. Messages are read by one goroutine, which also answers all calls but cells.
type worker struct {
	stuck    func(reason string)
	limits   starlark.Limits
	sessions map[string]*session // by instance; used only by the reading goroutine

	writing sync.Mutex
	out     io.Writer

	calls   atomic.Int64
	waiting sync.Map // chan *message of requests to the daemon, and context.CancelFunc of cells, by ID
	cells   sync.WaitGroup
}

// session is an open session.
type session struct {
	interpreter *starlark.Interpreter
	running     atomic.Bool       // a cell is running; then only its goroutine uses the interpreter
	tools       []byte            // the tools that are bound, as received
	incoming    map[string][]byte // values of a restore that is not complete
	outgoing    []value           // values of a snapshot that did not fit into one message
	listed      bool              // the daemon knows all globals but those that change from now on
}

// message is a JSON-RPC message of the daemon. Its parts are raw.
type message struct {
	id, method, params, result, failure []byte
}

// serve handles messages until the input ends, and then cancels the cells and waits for them.
func (w *worker) serve(in io.Reader) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer w.cells.Wait()
	defer cancel()
	lines := bufio.NewReaderSize(in, 64<<10)
	var line []byte
	for {
		var err error
		line, err = appendLine(line[:0], lines)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read a message: %w", err)
		}
		m, err := parse(line)
		if err != nil {
			return err
		}
		if string(m.method) == `"shutdown"` {
			return nil
		}
		w.handle(ctx, m)
		if string(m.method) != `"code/restore"` {
			line = nil // the parts of other messages can be in use
		}
	}
}

// appendLine reads a line and appends it to a buffer. The messages of a large restore share one: a new buffer for each costs more time
// than to decode their values.
func appendLine(buffer []byte, lines *bufio.Reader) ([]byte, error) {
	for {
		part, err := lines.ReadSlice('\n')
		if buffer = append(buffer, part...); !errors.Is(err, bufio.ErrBufferFull) {
			return buffer, err
		}
	}
}

// parse splits a message into its parts.
func parse(line []byte) (*message, error) {
	m := &message{}
	fields := map[string]*[]byte{"id": &m.id, "method": &m.method, "params": &m.params, "result": &m.result, "error": &m.failure}
	err := members(line, func(key string, value []byte) error {
		if into := fields[key]; into != nil {
			*into = value
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read a message: %w", err)
	}
	return m, nil
}

// handle handles one message. A cell runs on a goroutine of its own.
func (w *worker) handle(ctx context.Context, m *message) {
	method := unquote(m.method)
	switch method {
	case "":
		if answer, ok := w.waiting.LoadAndDelete(string(m.id)); ok {
			answer.(chan *message) <- m
		}
		return
	case "$/cancelRequest":
		w.cancel(m.params)
		return
	}
	p, err := readParams(m.params)
	if err == nil && method == "code/execute" {
		if err = w.startCell(ctx, m.id, p); err == nil {
			return
		}
	}
	var result any
	if err == nil {
		result, err = w.answer(method, p)
	}
	w.reply(m.id, result, err)
}

// cancel cancels the cell with an ID.
func (w *worker) cancel(params []byte) {
	var id []byte
	_ = members(params, func(key string, value []byte) error { // without an ID there is nothing to cancel
		if key == "id" {
			id = value
		}
		return nil
	})
	if cancel, ok := w.waiting.Load("cell " + string(id)); ok {
		cancel.(context.CancelFunc)()
	}
}

// params are the parameters of a call. Tools and values are raw, because they can be large.
type params struct {
	Instance, CellID, Grant, Language, Source string
	AcceptFinish, More                        bool
	Schema                                    json.RawMessage
	raw                                       map[string][]byte
}

// readParams reads parameters.
func readParams(data []byte) (*params, error) {
	p := &params{raw: map[string][]byte{}}
	if len(data) == 0 {
		return p, nil
	}
	texts := map[string]*string{"instance": &p.Instance, "cellId": &p.CellID, "grant": &p.Grant, "language": &p.Language, "source": &p.Source}
	err := members(data, func(key string, value []byte) error {
		p.raw[key] = value
		switch {
		case texts[key] != nil:
			return json.Unmarshal(value, texts[key])
		case key == "acceptFinish":
			p.AcceptFinish = string(value) == "true"
		case key == "more":
			p.More = string(value) == "true"
		case key == "schema" && string(value) != "null":
			p.Schema = value
		}
		return nil
	})
	return p, err
}

// answer handles a call that is not a cell.
func (w *worker) answer(method string, p *params) (any, error) {
	switch method {
	case "initialize":
		return w.initialize(p)
	case "initialized":
		return nil, nil
	case "session/open":
		w.sessions[p.Instance] = &session{interpreter: starlark.New(starlark.Config{Limits: w.limits, Stuck: w.stuck})}
		return struct{}{}, nil
	case "session/close":
		delete(w.sessions, p.Instance)
		return nil, nil
	case "code/describe":
		return describe(p)
	}
	s := w.sessions[p.Instance]
	switch {
	case s == nil:
		return nil, fmt.Errorf("%s: there is no instance %q", method, p.Instance)
	case s.running.Load():
		return nil, fmt.Errorf("%s: a cell is running", method)
	case method == "code/snapshot":
		return s.snapshot(), nil
	case method == "code/restore":
		return struct{}{}, s.restore(p)
	}
	return nil, fmt.Errorf("there is no method %s", method)
}

// settings are the configuration of the plugin.
type settings struct {
	starlark.Limits
	TimeMs int64 `json:"timeMs"`
}

// maxValue is the largest value that fits into one message of the protocol.
const maxValue = 5 << 20

// initialize sets the limits of the process and of its cells.
func (w *worker) initialize(p *params) (any, error) {
	var config settings
	if raw := p.raw["config"]; len(raw) > 0 {
		if err := json.Unmarshal(raw, &config); err != nil {
			return nil, fmt.Errorf("the configuration of the worker is invalid: %w", err)
		}
	}
	w.limits = config.Limits
	w.limits.Time = time.Duration(config.TimeMs) * time.Millisecond
	w.limits = w.limits.OrDefault()
	w.limits.Value = min(w.limits.Value, maxValue)
	debug.SetMemoryLimit(int64(w.limits.Memory) + int64(w.limits.Memory)/4)
	if err := limitProcess(w.limits); err != nil {
		return nil, fmt.Errorf("limit the process: %w", err)
	}
	result := map[string]json.RawMessage{}
	for _, name := range []string{"protocolVersion", "pluginId", "nonce", "contributes"} {
		if raw := p.raw[name]; raw != nil {
			result[name] = raw
		}
	}
	return result, nil
}

// reply answers a call. A notification has no ID and gets no answer.
func (w *worker) reply(id []byte, result any, err error) {
	if len(id) == 0 {
		return
	}
	if err != nil {
		_ = w.send(map[string]any{"id": json.RawMessage(id), "error": map[string]any{"code": -32000, "message": err.Error()}})
		return
	}
	if err := w.send(map[string]any{"id": json.RawMessage(id), "result": result}); err != nil {
		_ = w.send(map[string]any{"id": json.RawMessage(id), "error": map[string]any{"code": -32000, "message": err.Error()}})
	}
}

// send writes a message. If the daemon is gone, reading ends too.
func (w *worker) send(m map[string]any) error {
	m["jsonrpc"] = "2.0"
	var line bytes.Buffer
	if err := json.NewEncoder(&line).Encode(m); err != nil {
		return err
	}
	w.writing.Lock()
	defer w.writing.Unlock()
	_, err := w.out.Write(line.Bytes())
	return err
}
