package engine

import (
	"bufio"
	"encoding/json"
	"os"
	"sync"
	"sync/atomic"

	"lashd/rpc/protocol"
)

// TraceVersion is the version of trace records.
const TraceVersion = 1

// TraceRecord is one line of a trace: what happened, in which context.
type TraceRecord struct {
	Version   int                `json:"v"`
	Number    int64              `json:"n"`
	AtMs      int64              `json:"atMs"`
	SessionID protocol.SessionID `json:"sessionId,omitempty"`
	TurnID    protocol.TurnID    `json:"turnId,omitempty"`
	Iteration int                `json:"iteration,omitempty"`
	CallID    protocol.CallID    `json:"callId,omitempty"`
	Frame     protocol.FrameID   `json:"frame,omitempty"`
	Type      TraceKind          `json:"type"`
	Body      json.RawMessage    `json:"body,omitempty"`
}

// Trace writes records to a file, one JSON value a line: what happened, with sizes and fingerprints instead of what was
// said. A record that cannot be written is counted and dropped: a trace never fails a turn. Safe for concurrent use; nil is
// a trace that keeps nothing.
type Trace struct {
	lost atomic.Int64

	mu   sync.Mutex
	file *os.File
	out  *bufio.Writer
	n    int64
}

// OpenTrace appends to a file, which is private to the user. The caller closes it.
func OpenTrace(path string) (*Trace, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &Trace{file: f, out: bufio.NewWriter(f)}, nil
}

// Append adds a record.
func (t *Trace) Append(r TraceRecord) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n++
	r.Version, r.Number, r.AtMs = TraceVersion, t.n, now()
	line, err := json.Marshal(r)
	if err != nil {
		t.lost.Add(1)
		return
	}
	t.out.Write(line)
	t.out.WriteByte('\n')
	if t.out.Flush() != nil { // a bufio.Writer keeps its first error: begin again with the next record
		t.lost.Add(1)
		t.out.Reset(t.file)
	}
}

// append adds a record with a body of ours.
func (t *Trace) append(kind TraceKind, r TraceRecord, body any) {
	if t == nil {
		return
	}
	raw, err := json.Marshal(body)
	if err != nil {
		t.lost.Add(1)
		return
	}
	r.Type, r.Body = kind, raw
	t.Append(r)
}

// Lost counts the records that could not be written.
func (t *Trace) Lost() int64 {
	if t == nil {
		return 0
	}
	return t.lost.Load()
}

// Close ends the trace.
func (t *Trace) Close() error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.file.Close()
}
