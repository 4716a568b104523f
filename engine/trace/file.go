// Package trace writes a file of what happens in sessions, to find out why a turn went as it did. The engine adds records from
// any goroutine. The code that opened the file closes it after the engine has stopped.
package trace

import (
	"bufio"
	"encoding/json"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"lashd/rpc/protocol"
)

// Version is the version of the record format.
const Version = 1

// Record is one line of a trace: what happened, and in which context.
type Record struct {
	Version   int                `json:"v"`
	Number    int64              `json:"n"` // 1, 2, ... in this run of the daemon
	AtMs      int64              `json:"atMs"`
	SessionID protocol.SessionID `json:"sessionId,omitempty"`
	TurnID    protocol.TurnID    `json:"turnId,omitempty"`
	Iteration int                `json:"iteration,omitempty"`
	CallID    protocol.CallID    `json:"callId,omitempty"`
	Frame     protocol.FrameID   `json:"frame,omitempty"`
	Type      Kind               `json:"type"`
	Body      json.RawMessage    `json:"body,omitempty"`
}

// File is a trace with one JSON value per line. Records contain sizes and fingerprints instead of conversation text. A
// record that cannot be written is counted and dropped: a trace never fails a turn. Safe for concurrent use; a nil File
// discards everything.
type File struct {
	lost atomic.Int64 // records that could not be written

	mu   sync.Mutex
	file *os.File
	out  *bufio.Writer
	n    int64 // number of the last record
}

// Append writes a record, and fills in version, number and time.
func (t *File) Append(r Record) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n++
	r.Version, r.Number, r.AtMs = Version, t.n, time.Now().UnixMilli()
	line, err := json.Marshal(r)
	if err != nil {
		t.lost.Add(1)
		return
	}
	t.out.Write(line)
	t.out.WriteByte('\n')
	if t.out.Flush() != nil { // a bufio.Writer keeps its first error: reset it for the next record
		t.lost.Add(1)
		t.out.Reset(t.file)
	}
}

// Add appends a record of the given kind, with body encoded as JSON.
func (t *File) Add(kind Kind, r Record, body any) {
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

// Lost returns the number of records that could not be written.
func (t *File) Lost() int64 {
	if t == nil {
		return 0
	}
	return t.lost.Load()
}

// Close closes the file. Later records are lost.
func (t *File) Close() error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.file.Close()
}

// Open opens a trace for appending. A new file is readable only by the user. The caller must call Close.
func Open(path string) (*File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &File{file: f, out: bufio.NewWriter(f)}, nil
}
