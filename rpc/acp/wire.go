package acp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"lashd/internal/strictjson"
)

// maxOpen is the maximum number of requests of the editor that may be unanswered
// at once. Further ones are rejected as overloaded.
const maxOpen = 64

// maxLine is the maximum length of a message in bytes. It is the limit of the
// SDK's scanner.
const maxLine = 10<<20 - 1

// wire sits between the editor's stream of lines and the SDK, which reads from it
// and writes to it. It adds three things that the SDK lacks.
//
// Invalid messages get an error; the SDK would drop them silently. Messages take
// effect in the order in which they came: the SDK runs each request on its own
// goroutine, so wire hands over a message only after the previous one has been
// admitted. And a handler can wait until its answer has been written.
type wire struct {
	in       *bufio.Reader
	rest     []byte        // unread rest of the line that the SDK is reading
	admitted chan struct{} // closed once the last message handed over is admitted; nil if it needs no admission
	out      *outlet

	mu   sync.Mutex
	next string                   // key of the request being handed over; empty for a notification
	open map[string]chan struct{} // unanswered requests by key; each closed once its answer is written
}

// newWire starts writing to out at once. Reading starts when the SDK reads.
func newWire(in io.Reader, out io.Writer) *wire {
	return &wire{in: bufio.NewReaderSize(in, 64<<10), out: newOutlet(out), open: map[string]chan struct{}{}}
}

// request identifies the message that a handler handles.
type request struct {
	wire  *wire
	id    string // key of the request; empty for a notification
	admit func() // lets wire hand over the next message; may be called more than once
}

// take returns the request that belongs to the message handed over last. The
// handler's goroutine must call it first. Only one message is waiting for
// admission at any time, so there is no doubt which one it is.
func (w *wire) take() *request {
	w.mu.Lock()
	defer w.mu.Unlock()
	admitted := w.admitted
	return &request{wire: w, id: w.next, admit: sync.OnceFunc(func() { close(admitted) })}
}

// answered returns a channel that is closed once the answer to r has been written.
// It must be called before the handler returns.
func (r *request) answered() <-chan struct{} {
	r.wire.mu.Lock()
	defer r.wire.mu.Unlock()
	return r.wire.open[r.id]
}

// Read implements io.Reader for the SDK. It blocks until the previous message is
// admitted.
func (w *wire) Read(p []byte) (int, error) {
	if len(w.rest) == 0 {
		if err := w.line(); err != nil {
			return 0, err
		}
	}
	n := copy(p, w.rest)
	w.rest = w.rest[n:]
	return n, nil
}

// line reads the next valid message into rest. It answers invalid ones itself.
func (w *wire) line() error {
	if w.admitted != nil {
		<-w.admitted
	}
	for {
		line, long, err := w.raw()
		if err != nil {
			return err
		}
		m, problem := parse(line, long)
		if problem == nil {
			problem = w.register(m)
		}
		if problem == nil {
			w.rest = append(line, '\n')
			return nil
		}
		if err := w.refuse(m.ID, problem); err != nil {
			return err
		}
		if id := answered(line); id != nil {
			w.admitted, w.rest = nil, refusal(id, problem) // our own request gets the error as its answer
			return nil
		}
	}
}

// answered returns the id of the request that an invalid line was meant to answer,
// or nil if none can be read. Without it, the request to the editor would wait
// forever.
func answered(line []byte) json.RawMessage {
	var id json.RawMessage
	d := json.NewDecoder(bytes.NewReader(line))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for {
		name, err := d.Token()
		switch {
		case err != nil:
			return nil
		case name == "result" || name == "error":
			return id
		case name == "id":
			err = d.Decode(&id)
		case name == "jsonrpc":
			err = d.Decode(new(string))
		default:
			return nil
		}
		if err != nil {
			return nil
		}
	}
}

// register prepares the handover of a message: it records a request as unanswered
// and makes the channel for its admission. It returns an error for an id in use
// and for too many requests. Responses and $/cancel_request need no admission,
// since the SDK handles them while reading.
func (w *wire) register(m envelope) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.admitted, w.next = nil, ""
	if m.Method == "" || m.Method == "$/cancel_request" && m.ID == nil {
		return nil
	}
	if m.ID != nil {
		w.next = key(m.ID)
		if w.open[w.next] != nil {
			return invalidRequest("a request with this id is in flight; use each id once")
		}
		if len(w.open) >= maxOpen {
			return overloaded()
		}
		w.open[w.next] = make(chan struct{})
	}
	w.admitted = make(chan struct{})
	return nil
}

// raw reads the next line that is not empty, without surrounding space. For a line
// over maxLine it returns the beginning and long is true; the rest is skipped. A
// last line without a newline is dropped.
func (w *wire) raw() (line []byte, long bool, err error) {
	for {
		part, err := w.in.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxLine; !long {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil:
			return nil, false, err // a last line without a newline is incomplete
		case long:
			return line, true, nil
		case len(bytes.TrimSpace(line)) > 0:
			return bytes.TrimSpace(line), false, nil
		default:
			line = line[:0]
		}
	}
}

// envelope holds the members of a message that decide what kind of message it is.
type envelope struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
}

// parse checks that a line is a valid JSON-RPC message. The problem is the error
// to answer. The id is kept where it can be read, so that the answer carries it.
func parse(line []byte, long bool) (m envelope, problem error) {
	if long {
		return m, invalidRequest(fmt.Sprintf("the message is longer than %d bytes", maxLine))
	}
	if err := strictjson.Check(line, strictjson.Limits{}); err != nil {
		return m, parseError(err)
	}
	if line[0] != '{' {
		return m, invalidRequest("the message is not an object; batches are not supported")
	}
	if name := misspelled(line); name != "" {
		return m, invalidRequest(fmt.Sprintf("the message has a member %q; write it in lower case", name))
	}
	if json.Unmarshal(line, &m) != nil || m.Version != "2.0" {
		return envelope{}, invalidRequest("the message must have \"jsonrpc\": \"2.0\"")
	}
	if len(m.ID) > 0 && m.ID[0] != '"' && m.ID[0] != '-' && (m.ID[0] < '0' || m.ID[0] > '9') {
		m.ID = nil
		return m, invalidRequest("the id must be a string or a number")
	}
	switch {
	case m.Method == "" && m.Result == nil && m.Error == nil:
		return m, invalidRequest("the message is not a request, a notification or a response")
	case m.Error != nil && json.Unmarshal(m.Error, new(struct {
		Code    int
		Message string
	})) != nil:
		return envelope{}, invalidRequest("the error of a response needs a code and a message")
	}
	return m, nil
}

// misspelled returns a member whose name differs from a known one only in case.
// Go's decoder, and so the SDK, would accept it.
func misspelled(line []byte) string {
	for name := range strictjson.Members(line) {
		small := strings.ToLower(name)
		if small != name && slices.Contains([]string{"jsonrpc", "id", "method", "params", "result", "error"}, small) {
			return name
		}
	}
	return ""
}

// key normalizes an id, so that differently escaped strings compare equal, and a
// string differs from a number.
func key(id json.RawMessage) string {
	if text, ok := strictjson.Text(id); ok {
		return "text " + text
	}
	return string(id)
}

// refuse writes an error as the answer to an invalid line. The id is null if it
// could not be read.
func (w *wire) refuse(id json.RawMessage, problem error) error {
	if id == nil {
		id = json.RawMessage("null")
	}
	_, err := w.out.Write(refusal(id, problem)) // the outlet keeps the error for Run
	return err
}

// refusal is an error response as a line.
func refusal(id json.RawMessage, problem error) []byte {
	line, _ := json.Marshal(struct { // cannot fail: id is valid JSON
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   error           `json:"error"`
	}{"2.0", id, problem})
	return append(line, '\n')
}

// notification is how the SDK's notifications begin. They are by far the most
// common lines and answer nothing, so they need not be parsed.
var notification = []byte(`{"jsonrpc":"2.0","method":`)

// Write implements io.Writer for the SDK, which writes one whole line at a time.
func (w *wire) Write(line []byte) (int, error) {
	if !bytes.HasPrefix(line, notification) {
		defer w.answer(line)()
	}
	return w.out.Write(line)
}

// answer removes the request that a line answers from the unanswered ones, before
// the line is written: the editor may reuse the id as soon as it reads the answer.
// The caller must call written after the write.
func (w *wire) answer(line []byte) (written func()) {
	var m envelope
	if json.Unmarshal(line, &m) != nil || m.Method != "" {
		return func() {}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	id := key(m.ID)
	done := w.open[id]
	delete(w.open, id)
	return func() {
		if done != nil {
			close(done)
		}
	}
}
