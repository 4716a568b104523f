package console

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

const (
	progressDelay  = time.Second // time after which a running command says what it does
	defaultColumns = 80          // width of the line where the terminal tells none
)

// Progress says on a terminal what a command does, how far it is and how to stop it. It is a line on stderr that appears after a second,
// changes, and is removed by End. Elsewhere it prints nothing. It is safe for concurrent use.
type Progress struct {
	out   io.Writer // nil: not a terminal
	doing string
	stop  string
	since time.Time
	end   chan struct{}
	group sync.WaitGroup

	mu    sync.Mutex
	far   string
	shown bool
}

// Begin starts a progress line: what the command does, such as "copying the data", and how to stop that. The caller calls End.
func Begin(doing, stop string) *Progress {
	if !Terminal(os.Stderr) {
		return &Progress{}
	}
	return begin(os.Stderr, doing, stop)
}

// begin does the same on any terminal.
func begin(out io.Writer, doing, stop string) *Progress {
	p := &Progress{out: out, doing: doing, stop: stop, since: time.Now(), end: make(chan struct{})}
	p.group.Go(p.run)
	return p
}

// run updates the line once a second until End.
func (p *Progress) run() {
	tick := time.NewTicker(progressDelay)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.show()
		case <-p.end:
			return
		}
	}
}

// Far sets how far the command is, such as "3 of 12 sessions". It appears with the next update of the line.
func (p *Progress) Far(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.far = fmt.Sprintf(": "+format, args...)
}

// show writes the line over the previous one.
func (p *Progress) show() {
	p.mu.Lock()
	defer p.mu.Unlock()
	line := fmt.Sprintf("[%s] %s%s (%s)", time.Since(p.since).Round(time.Second), p.doing, p.far, p.stop)
	fmt.Fprint(p.out, "\r"+OneLine(line, cmp.Or(Columns(os.Stderr), defaultColumns)-1)+"\x1b[K")
	p.shown = true
}

// End removes the line. The command then prints what came of its work. Further calls do nothing.
func (p *Progress) End() {
	if p.out == nil {
		return
	}
	close(p.end)
	p.group.Wait()
	if p.shown {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
	p.out = nil
}
