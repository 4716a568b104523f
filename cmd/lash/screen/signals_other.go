//go:build !unix

package screen

import (
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"
)

// sizeTime is the time between two looks at the size of a terminal that sends no
// signal when it is resized.
const sizeTime = 250 * time.Millisecond

// watch sends p the new size of the terminal, until the returned function is
// called.
func (l *loop) watch(p *tea.Program) (end func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		width, height := l.terminal.size()
		for tick := time.NewTicker(sizeTime); ; {
			select {
			case <-done:
				tick.Stop()
				return
			case <-tick.C:
			}
			if w, h := l.terminal.size(); w != width || h != height {
				width, height = w, h
				p.Send(tea.WindowSizeMsg{Width: w, Height: h})
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// stop fails: this system stops no jobs.
func (*loop) stop() error { return errors.New("this system cannot stop a program") }
