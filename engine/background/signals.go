package background

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"lashd/engine/proc"
	"lashd/rpc/protocol"
)

// Signal is a request to a running command. Done receives nil if the command got it, else
// the reason why not; it must have room for one value.
type Signal struct {
	Name string
	// By is the client or session that sends the signal.
	By      string
	Payload json.RawMessage
	Done    chan<- error
}

// Signals returns the signals that a command accepts, with the schemas of their payloads.
func Signals(s *protocol.TaskShell) []protocol.TaskSignalType {
	all := []protocol.TaskSignalType{
		{Name: "stdin", Schema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string","maxLength":1048576}},"required":["text"],"additionalProperties":false}`)},
		{Name: "closeStdin"},
		{Name: "interrupt"},
	}
	if s.PTY == nil {
		return all
	}
	return append(all, protocol.TaskSignalType{Name: "resize", Schema: json.RawMessage(`{"type":"object","properties":{` +
		`"columns":{"type":"integer","minimum":1,"maximum":65535},"rows":{"type":"integer","minimum":1,"maximum":65535}},` +
		`"required":["columns","rows"],"additionalProperties":false}`)})
}

// receiver delivers signals to a command, one at a time. A command that does not read its
// input delays only later signals, not its own exit.
type receiver struct {
	process *proc.Process
	in      stream
	// interruptedBy is the sender of the last interrupt.
	interruptedBy string
}

// receive delivers signals until the command has ended. It runs in a goroutine of its own.
func (t *receiver) receive(signals <-chan Signal) {
	for {
		select {
		case <-t.process.Done():
			return
		case s := <-signals:
			s.Done <- t.deliver(s)
		}
	}
}

// stdinTimeout is how long a command may leave its input unread.
const stdinTimeout = 10 * time.Second

var (
	// ErrInputTimeout means that the command did not read its input in time. It may have
	// read a part of it.
	ErrInputTimeout = errors.New("the command did not read its input within 10 seconds")
	// ErrClosed means that the input of the command is closed, by closeStdin or by the
	// command's end.
	ErrClosed = errors.New("the input of the command is closed")
)

// payload is the union of the payloads of all signals.
type payload struct {
	Text    string `json:"text"`
	Columns uint16 `json:"columns"`
	Rows    uint16 `json:"rows"`
}

// deliver delivers one signal. A payload has been checked against the schema of Signals.
func (t *receiver) deliver(s Signal) error {
	var p payload
	if len(s.Payload) > 0 {
		if err := json.Unmarshal(s.Payload, &p); err != nil {
			return err
		}
	}
	switch s.Name {
	case "closeStdin":
		return t.in.end()
	case "interrupt":
		t.interruptedBy = s.By
		return t.in.interrupt(t.process)
	case "resize":
		return t.in.resize(p.Columns, p.Rows)
	}
	return t.write(p.Text)
}

// write writes text to the command's input and waits until it is read, the command ends, or
// stdinTimeout has passed.
func (t *receiver) write(text string) error {
	written := make(chan error, 1)
	go func() { // ends when the stream is closed or the command has ended
		_, err := io.WriteString(t.in, text)
		written <- err
	}()
	limit := time.NewTimer(stdinTimeout)
	defer limit.Stop()
	select {
	case err := <-written:
		return writeError(err)
	case <-t.process.Done():
		t.in.abortWrite()
		return writeError(<-written) // the command may have read all of it and then ended
	case <-limit.C:
		t.in.abortWrite()
		return ErrInputTimeout
	}
}

// writeError converts the error of a write to ErrInputTimeout or ErrClosed.
func writeError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ErrInputTimeout
	}
	return ErrClosed
}

// outcome returns how the command ended. If it died of an interrupt, the sender of the
// interrupt stopped it.
func (t *receiver) outcome(exit proc.Exit) *protocol.TaskOutcome {
	o := Outcome(exit)
	if o.Kind == protocol.TaskSignal && o.Signal == "SIGINT" && t.interruptedBy != "" {
		o.Kind, o.By = protocol.TaskStopped, t.interruptedBy
	}
	return o
}
