package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"lashd/rpc/protocol"
)

// requests tracks the requests of a stdio client that have no answer yet, so that
// they can be failed when the daemon dies. sent sees the client's messages and
// answered those of the daemon, each on its own goroutine. It is safe for
// concurrent use.
type requests struct {
	out io.Writer // the client; used by fail, after all forwarding has ended

	mu      sync.Mutex
	open    []json.RawMessage // ids of open requests, as the client wrote them
	headers bool              // the client uses Content-Length headers
	left    bool              // the client has closed stdin or asked for the end of the connection
}

// newRequests returns a tracker without open requests. out is the client's stream.
func newRequests(out io.Writer) *requests { return &requests{out: out} }

// envelope has the fields of a message that the tracking needs.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
}

// envelopes returns the envelopes of a message or a batch. Other text has none:
// the daemon answers it with an error.
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

// sent records the requests in a message of the client. headers is its framing,
// which fail uses as well. A shutdown or exit means that the connection may end.
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

// eventPrefix is the beginning of an event. Events are the most frequent messages
// and contain no answers.
var eventPrefix = []byte(`{"jsonrpc":"2.0","method":`)

// answered records the answers in a message of the daemon. Requests that the
// daemon sends are not answers: their ids are its own.
func (r *requests) answered(body []byte, _ bool) {
	if !bytes.HasPrefix(body, eventPrefix) {
		r.settle(envelopes(body))
	}
}

// settle removes the answered requests.
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

// leave records that the client has closed stdin.
func (r *requests) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = true
}

// leaving reports whether the client wants the connection to end.
func (r *requests) leaving() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left
}

// failure is the error that a client gets for a request whose answer is lost. Its
// data has the form that the daemon's errors have.
type failure struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   failureError    `json:"error"`
}

// failureError is the error object of a failure, in the wire format of the daemon.
type failureError struct {
	Code    int                `json:"code"`
	Message string             `json:"message"`
	Data    protocol.ErrorData `json:"data"`
}

// codeState is the JSON-RPC error code for requests that the current state does not allow.
const codeState = -32010

// fail answers all open requests with an error in place of the daemon. The error
// says that the outcome is unknown and that the client may retry.
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

// write writes a message in the framing of the client.
func (r *requests) write(body []byte) error {
	format := "%s\n"
	if r.headers {
		format = fmt.Sprintf("Content-Length: %d\r\n\r\n%%s", len(body))
	}
	_, err := fmt.Fprintf(r.out, format, body)
	return err
}
