package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"lashd/rpc/protocol"
)

// requests are those of a client that have no answer yet.
type requests struct {
	out io.Writer

	mu      sync.Mutex
	open    []json.RawMessage // their ids, as they were written
	headers bool              // the client frames with headers
	left    bool              // the client wants the connection to end
}

func newRequests(out io.Writer) *requests { return &requests{out: out} }

// envelope is what of a message is looked at on the way.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
}

// envelopes are those of a message, which may be a batch. What is not JSON-RPC has none: the daemon will answer it.
func envelopes(body []byte) []envelope {
	var one envelope
	if json.Unmarshal(body, &one) == nil {
		return []envelope{one}
	}
	var many []envelope
	if json.Unmarshal(body, &many) != nil {
		return nil
	}
	return many
}

// sent notes what the client asks for.
func (r *requests) sent(body []byte, headers bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.headers = headers
	for _, e := range envelopes(body) {
		if e.Method == "exit" || e.Method == "shutdown" {
			r.left = true
		}
		if e.Method != "" && len(e.ID) > 0 {
			r.open = append(r.open, bytes.Clone(e.ID))
		}
	}
}

// eventPrefix begins the messages of which there are most; they answer nothing.
var eventPrefix = []byte(`{"jsonrpc":"2.0","method":`)

// answered notes what the daemon answers.
func (r *requests) answered(body []byte, _ bool) {
	if !bytes.HasPrefix(body, eventPrefix) {
		r.settle(envelopes(body))
	}
}

func (r *requests) settle(answers []envelope) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range answers {
		for i, id := range r.open {
			if bytes.Equal(id, e.ID) {
				r.open = append(r.open[:i], r.open[i+1:]...)
				break
			}
		}
	}
}

func (r *requests) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = true
}

func (r *requests) leaving() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left
}

// failure is the answer to a request whose answer is lost.
type failure struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   failureError    `json:"error"`
}

type failureError struct {
	Code    int                `json:"code"`
	Message string             `json:"message"`
	Data    protocol.ErrorData `json:"data"`
}

// codeState is the code of requests that are refused in the present state.
const codeState = -32010

// fail answers all that is open in place of the daemon.
func (r *requests) fail(message string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range r.open {
		body, err := json.Marshal(failure{"2.0", id, failureError{codeState, message, protocol.ErrorData{
			Kind: protocol.KindShuttingDown, Retry: protocol.RetryNow, Outcome: protocol.EffectUnknown,
		}}})
		if err != nil {
			return err
		}
		if err := r.write(body); err != nil {
			return err
		}
	}
	r.open = nil
	return nil
}

func (r *requests) write(body []byte) error {
	format := "%s\n"
	if r.headers {
		format = fmt.Sprintf("Content-Length: %d\r\n\r\n%%s", len(body))
	}
	_, err := fmt.Fprintf(r.out, format, body)
	return err
}
