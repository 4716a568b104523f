package background

import (
	"cmp"
	"errors"
	"io"
	"os"
	"time"

	"github.com/creack/pty"

	"lashd/engine/proc"
	"lashd/rpc/protocol"
)

// stream is the input of a command: a pipe or a terminal. Only begun and close are called
// exactly once.
type stream interface {
	io.Writer
	// begun is called after the command was started, or failed to start. It closes the
	// command's end.
	begun()
	// end closes the input.
	end() error
	// abortWrite makes a blocked Write return.
	abortWrite()
	// resize sets the size of the terminal in characters.
	resize(columns, rows uint16) error
	// interrupt sends an interrupt to the command.
	interrupt(*proc.Process) error
	// held reports, after the command has ended, whether a process still has its terminal
	// open.
	held() bool
	// close releases the stream after the command and its processes have ended.
	close()
}

// attach connects a command's input and output, and returns the stream. size is nil for a
// pipe. Output goes to out; with a terminal a goroutine copies it until close.
func attach(c *proc.Command, size *protocol.TaskTerminal, out io.Writer) (stream, error) {
	if size == nil {
		in, feed := io.Pipe()
		c.Stdin, c.Stdout, c.Stderr = in, out, out
		return pipe{in, feed}, nil
	}
	master, slave, err := pty.Open()
	if err != nil {
		return nil, err
	}
	t := &terminal{master: master, slave: slave, drained: make(chan struct{})}
	if err := errors.Join(unblock(master), t.resize(size.Columns, size.Rows)); err != nil {
		return nil, errors.Join(err, master.Close(), slave.Close())
	}
	c.Terminal, c.Stdin, c.Stdout, c.Stderr = true, slave, slave, slave
	go func() {
		io.Copy(out, master) // ends when the last process closes the terminal
		close(t.drained)
	}()
	return t, nil
}

// pipe is the stream of a command without a terminal.
type pipe struct {
	in *io.PipeReader
	*io.PipeWriter
}

func (pipe) begun()                          {}
func (p pipe) end() error                    { return p.Close() }
func (p pipe) abortWrite()                   { p.CloseWithError(ErrInputTimeout) }
func (pipe) resize(uint16, uint16) error     { return pty.ErrUnsupported }
func (pipe) interrupt(c *proc.Process) error { c.Interrupt(); return nil }
func (pipe) held() bool                      { return false }

func (p pipe) close() {
	p.CloseWithError(io.ErrClosedPipe)
	p.in.Close()
}

// Control characters that a person types for the end of the input and for an interrupt.
const (
	typedEnd       = "\x04"
	typedInterrupt = "\x03"
)

// terminal is the stream of a command with a pseudo terminal. lashd has the master, the
// command the slave.
type terminal struct {
	master, slave *os.File
	// drained is closed when all output has been copied.
	drained chan struct{}
}

// Write writes what a person would type. It fails with a deadline error after stdinTimeout;
// a later Write may succeed.
func (t *terminal) Write(p []byte) (int, error) {
	t.master.SetWriteDeadline(time.Now().Add(stdinTimeout))
	return t.master.Write(p)
}

func (t *terminal) begun()      { t.slave.Close() }
func (t *terminal) abortWrite() { t.master.SetWriteDeadline(time.Now()) }

func (t *terminal) end() error {
	_, err := io.WriteString(t, typedEnd)
	return err
}

// resize sets the size in characters. Zero means the default of 80 by 24.
func (t *terminal) resize(columns, rows uint16) error {
	return setSize(t.master, cmp.Or(columns, 80), cmp.Or(rows, 24))
}

// interrupt types ^C, so the terminal interrupts the processes in its foreground.
func (t *terminal) interrupt(*proc.Process) error {
	_, err := io.WriteString(t, typedInterrupt)
	return err
}

// drain is how long the rest of the output may take after the command has ended, on a busy
// machine.
const drain = 2 * time.Second

// held waits up to drain for the end of the output.
func (t *terminal) held() bool {
	select {
	case <-t.drained:
		return false
	case <-time.After(drain):
		return true
	}
}

func (t *terminal) close() {
	t.slave.Close()
	t.held() // wait for the last output of the processes that were swept
	t.master.Close()
	<-t.drained
}
