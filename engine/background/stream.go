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

// stream is what feeds a command: a pipe, or a terminal.
type stream interface {
	io.Writer
	begun()     // the command has its end, or was not started
	end() error // nothing more will be written
	deafen()    // what is being written is given up
	resize(columns, rows uint16) error
	interrupt(*proc.Process) error
	held() bool // once the command has ended: somebody still has the other end of its terminal
	close()
}

// attach gives a command what it reads from, and writes to.
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
		io.Copy(out, master) // fails when the last process has let go of the terminal
		close(t.drained)
	}()
	return t, nil
}

type pipe struct {
	in *io.PipeReader
	*io.PipeWriter
}

func (pipe) begun()                          {}
func (p pipe) end() error                    { return p.Close() }
func (p pipe) deafen()                       { p.CloseWithError(ErrDeaf) }
func (pipe) resize(uint16, uint16) error     { return pty.ErrUnsupported }
func (pipe) interrupt(c *proc.Process) error { c.Interrupt(); return nil }
func (pipe) held() bool                      { return false }

func (p pipe) close() {
	p.CloseWithError(io.ErrClosedPipe)
	p.in.Close()
}

// What a person types for these.
const (
	typedEnd       = "\x04"
	typedInterrupt = "\x03"
)

type terminal struct {
	master, slave *os.File
	drained       chan struct{}
}

// Write fails by itself when it takes too long; a later one may be read again.
func (t *terminal) Write(p []byte) (int, error) {
	t.master.SetWriteDeadline(time.Now().Add(stdinPatience))
	return t.master.Write(p)
}

func (t *terminal) begun()  { t.slave.Close() }
func (t *terminal) deafen() { t.master.SetWriteDeadline(time.Now()) }

func (t *terminal) end() error {
	_, err := io.WriteString(t, typedEnd)
	return err
}

func (t *terminal) resize(columns, rows uint16) error {
	return setSize(t.master, cmp.Or(columns, 80), cmp.Or(rows, 24))
}

// interrupt reaches whom the terminal says: what runs in its foreground.
func (t *terminal) interrupt(*proc.Process) error {
	_, err := io.WriteString(t, typedInterrupt)
	return err
}

// drain is how long the rest of the output may take, on a machine that is busy.
const drain = 2 * time.Second

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
	t.held() // what was swept up has let go of it by now
	t.master.Close()
	<-t.drained
}
