package acp

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

// errEditorGone is returned by writes after the outlet was closed.
var errEditorGone = errors.New("the editor closed the connection")

// outlet writes lines to the editor, one at a time. A write waits until the line
// is written, so nothing piles up for a slow editor. close releases all waiting
// writers, even if the editor never reads again: the goroutine that is stuck in
// the write then stays behind until the process exits.
type outlet struct {
	turn   sync.Mutex  // held for a whole Write
	lines  chan []byte // unbuffered: from Write to run
	wrote  chan error  // the result of each line; buffered, so that run never waits for a writer that has left
	closed chan struct{}
	close  func() // may be called more than once

	mu  sync.Mutex
	err error // of the first failed write // of the first failed write
}

// newOutlet starts the writing goroutine. The caller must call close.
func newOutlet(out io.Writer) *outlet {
	o := &outlet{lines: make(chan []byte), wrote: make(chan error, 1), closed: make(chan struct{})}
	o.close = sync.OnceFunc(func() { close(o.closed) })
	go o.run(out)
	return o
}

// run writes lines until the outlet is closed.
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

// Write implements io.Writer. It returns errEditorGone once the outlet is closed;
// the line may have been written partly.
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

// failed returns the first error of writing to the editor, or nil.
func (o *outlet) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
