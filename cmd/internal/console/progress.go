package console

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
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
	p.far = fmt.Sprintf(format, args...)
}

// show writes the line over the previous one.
func (p *Progress) show() {
	p.mu.Lock()
	defer p.mu.Unlock()
	line := progressLine(time.Since(p.since), p.doing, p.far, p.stop, cmp.Or(Columns(os.Stderr), defaultColumns)-1)
	fmt.Fprint(p.out, "\r"+line+"\x1b[K")
	p.shown = true
}

// progressLine returns the line in at most width characters. If not all fits, it leaves out first what stop says after a semicolon, then
// what the command does if far says how far it is, and then the end.
func progressLine(since time.Duration, doing, far, stop string, width int) string {
	head := fmt.Sprintf("[%s] ", since.Round(time.Second))
	brief, _, _ := strings.Cut(stop, ";")
	both := doing
	if far != "" {
		both += ": " + far
	}
	for _, text := range []string{both + " (" + stop + ")", both + " (" + brief + ")", cmp.Or(far, doing) + " (" + brief + ")"} {
		if len(head+text) <= width {
			return head + text
		}
	}
	return OneLine(head+cmp.Or(far, doing), width)
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
