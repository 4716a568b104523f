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

// Signal is something for a running command; why it was not taken goes to Done, which has room for it.
type Signal struct {
	Name    string
	By      string // who sends it
	Payload json.RawMessage
	Done    chan<- error
}

// Signals are those that a command takes.
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

// taker gives a command what is sent to it, one thing at a time: a command that does not read holds up only who writes to it.
type taker struct {
	process       *proc.Process
	in            stream
	interruptedBy string
}

// take takes signals until the command has ended.
func (t *taker) take(signals <-chan Signal) {
	for {
		select {
		case <-t.process.Done():
			return
		case s := <-signals:
			s.Done <- t.deliver(s)
		}
	}
}

// stdinPatience is how long a command may leave what is written to it unread.
const stdinPatience = 10 * time.Second

var (
	// ErrDeaf means that what was written to a command may be read by it, or not.
	ErrDeaf = errors.New("the command does not read its input")
	// ErrClosed means that nothing can be written to a command any more.
	ErrClosed = errors.New("the input of the command is closed")
)

// payload is what comes with signals.
type payload struct {
	Text    string `json:"text"`
	Columns uint16 `json:"columns"`
	Rows    uint16 `json:"rows"`
}

func (t *taker) deliver(s Signal) error {
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

func (t *taker) write(text string) error {
	written := make(chan error, 1)
	go func() { // ends at the latest when the stream is closed, or the command has ended
		_, err := io.WriteString(t.in, text)
		written <- err
	}()
	limit := time.NewTimer(stdinPatience)
	defer limit.Stop()
	select {
	case err := <-written:
		return refused(err)
	case <-t.process.Done():
		t.in.deafen()
		return refused(<-written) // it may have read that, and ended for it
	case <-limit.C:
		t.in.deafen()
		return ErrDeaf
	}
}

func refused(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ErrDeaf
	}
	return ErrClosed
}

// outcome is how the command ended. An interrupt that it died of is who sent that.
func (t *taker) outcome(exit proc.Exit) *protocol.TaskOutcome {
	o := Outcome(exit)
	if o.Kind == protocol.TaskSignal && o.Signal == "SIGINT" && t.interruptedBy != "" {
		o.Kind, o.By = protocol.TaskStopped, t.interruptedBy
	}
	return o
}
