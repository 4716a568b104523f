package acp

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

var errEditorGone = errors.New("the editor closed the connection")

// outlet writes to the editor, a line after the other. Who writes waits until it is written, or nobody reads any more: so nothing piles
// up for an editor that is slow, and one that never reads again holds nobody who has closed the outlet.
type outlet struct {
	turn   sync.Mutex // of who writes
	lines  chan []byte
	wrote  chan error
	closed chan struct{}
	close  func()

	mu  sync.Mutex
	err error
}

func newOutlet(out io.Writer) *outlet {
	o := &outlet{lines: make(chan []byte), wrote: make(chan error, 1), closed: make(chan struct{})}
	o.close = sync.OnceFunc(func() { close(o.closed) })
	go o.run(out)
	return o
}

// run ends when the outlet is closed. A line that nobody reads it leaves behind with its process.
func (o *outlet) run(out io.Writer) {
	for {
		select {
		case line := <-o.lines:
			_, err := out.Write(line)
			o.wrote <- err
		case <-o.closed:
			return
		}
	}
}

// Write implements io.Writer.
func (o *outlet) Write(line []byte) (int, error) {
	o.turn.Lock()
	defer o.turn.Unlock()
	select {
	case o.lines <- line:
	case <-o.closed:
		return 0, errEditorGone
	}
	select {
	case err := <-o.wrote:
		if err != nil {
			o.fail(err)
			return 0, err
		}
		return len(line), nil
	case <-o.closed:
		return 0, errEditorGone
	}
}

func (o *outlet) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = fmt.Errorf("write to the editor: %w", err)
	}
}

// failed is why the editor could not be written to, if it could not.
func (o *outlet) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
