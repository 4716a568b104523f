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
	Type      string             `json:"type"`
	Body      json.RawMessage    `json:"body,omitempty"`
}

// Trace writes records to a file, one JSON value a line. A record that cannot be written is counted and dropped: a
// trace never fails a turn. Safe for concurrent use; nil is a trace that keeps nothing.
type Trace struct {
	mu   sync.Mutex
	file *os.File
	out  *bufio.Writer
	n    int64
	lost atomic.Int64
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
	if err == nil {
		t.out.Write(line)
		t.out.WriteByte('\n')
		err = t.out.Flush()
	}
	if err != nil {
		t.lost.Add(1)
	}
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

// trace records something about a turn.
func (r *run) trace(kind string, body any) {
	if r.eng.Trace == nil {
		return
	}
	raw, err := json.Marshal(body)
	if err != nil {
		r.eng.Trace.lost.Add(1)
		return
	}
	r.eng.Trace.Append(TraceRecord{SessionID: r.session.id, TurnID: r.id, Type: kind, Body: raw})
}
