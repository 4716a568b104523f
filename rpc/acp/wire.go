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

// maxOpen is how many requests of the editor may wait for their answers.
const maxOpen = 64

// maxLine is how long a message may be: what the SDK takes at most.
const maxLine = 10<<20 - 1

// wire is the editor's stream of lines, between it and the SDK. It answers what is no message, which the SDK would pass over in
// silence. It hands the SDK, which handles each request on a goroutine of its own, one message only when the one before has been
// admitted, so that messages take effect in the order in which they came. It tells when an answer has been written.
type wire struct {
	in       *bufio.Reader
	rest     []byte        // of the line that is being handed over
	admitted chan struct{} // has a value once the message that was handed over is; nil: nobody waits for that
	out      *outlet

	mu   sync.Mutex
	next string                   // id of the request that is being handed over
	open map[string]chan struct{} // requests that have not been answered, by id; closed once they have been
}

func newWire(in io.Reader, out io.Writer) *wire {
	return &wire{in: bufio.NewReaderSize(in, 64<<10), out: newOutlet(out), open: map[string]chan struct{}{}}
}

// request is what a handler knows of the message that it handles.
type request struct {
	wire  *wire
	id    string // a key; empty: it is a notification
	admit func() // lets the next message in
}

// take is called first by whoever handles the message that was handed over.
func (w *wire) take() *request {
	w.mu.Lock()
	defer w.mu.Unlock()
	admitted := w.admitted
	return &request{wire: w, id: w.next, admit: sync.OnceFunc(func() { close(admitted) })}
}

// answered returns a channel that is closed once the answer has been written.
func (r *request) answered() <-chan struct{} {
	r.wire.mu.Lock()
	defer r.wire.mu.Unlock()
	return r.wire.open[r.id]
}

// Read implements io.Reader for the SDK.
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

// line waits for the next message that the SDK can handle.
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
			problem = w.hand(m)
		}
		if problem == nil {
			w.rest = append(line, '\n')
			return nil
		}
		if err := w.refuse(m.ID, problem); err != nil {
			return err
		}
		if id := answered(line); id != nil {
			w.admitted, w.rest = nil, refusal(id, problem) // whoever waits for the answer has that
			return nil
		}
	}
}

// answered is the id of the request that a line answers which is no message, as far as that can be read; or nil.
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

// hand makes ready that a message is handled, or says why it cannot be. The SDK takes answers and cancellations in by itself, at once.
func (w *wire) hand(m envelope) error {
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

// raw reads a line that is not empty. Of one that is too long it is the beginning.
func (w *wire) raw() (line []byte, long bool, err error) {
	for {
		part, err := w.in.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxLine; !long {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil:
			return nil, false, err // a last line without an end is cut off: it is no message
		case long:
			return line, true, nil
		case len(bytes.TrimSpace(line)) > 0:
			return bytes.TrimSpace(line), false, nil
		default:
			line = line[:0]
		}
	}
}

// envelope is what of a message decides who gets it.
type envelope struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
}

// parse says what is wrong with a line, if it is no message.
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
	if name := misspelt(line); name != "" {
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

// misspelt is a member that the SDK would take for another one.
func misspelt(line []byte) string {
	for name := range strictjson.Members(line) {
		small := strings.ToLower(name)
		if small != name && slices.Contains([]string{"jsonrpc", "id", "method", "params", "result", "error"}, small) {
			return name
		}
	}
	return ""
}

// key is an id, however it is written.
func key(id json.RawMessage) string {
	if text, ok := strictjson.Text(id); ok {
		return "text " + text
	}
	return string(id)
}

// refuse answers a line that is no message.
func (w *wire) refuse(id json.RawMessage, problem error) error {
	if id == nil {
		id = json.RawMessage("null")
	}
	_, err := w.out.Write(refusal(id, problem)) // that it failed is kept
	return err
}

func refusal(id json.RawMessage, problem error) []byte {
	line, _ := json.Marshal(struct { // an id that was read, and texts
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   error           `json:"error"`
	}{"2.0", id, problem})
	return append(line, '\n')
}

// notification begins the messages of which there are most; they answer nothing.
var notification = []byte(`{"jsonrpc":"2.0","method":`)

// Write implements io.Writer for the SDK, which writes whole lines.
func (w *wire) Write(line []byte) (int, error) {
	if !bytes.HasPrefix(line, notification) {
		defer w.answer(line)()
	}
	return w.out.Write(line)
}

// answer takes a request from those in flight: its id is free as soon as the editor may have the answer. It returns what is to be done
// once that is written.
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
