package proc

import (
	"io"
	"os"
	"reflect"
	"sync"
	"time"
)

// output carries what a child writes to the writers of its Command. os/exec would do it too, but its Wait hangs on a Stdin
// that does not end, and hides behind the exit status whether a pipe had to be closed by force.
type output struct {
	in    *os.File // our end of the child's input, if it is fed
	pipes []pipe
	ends  []*os.File // the child's ends, ours only until it has started
	done  sync.WaitGroup

	mu   sync.Mutex
	err  error // first failed Write
	held bool  // somebody had a pipe when the rest of the output was not waited for any more
}

type pipe struct {
	from *os.File
	to   io.Writer
}

// connect gives the three streams that the child shall have, nil for the null device. The function it returns, if any, writes
// to the child's input.
func (o *output) connect(c Command) (files [3]*os.File, feed func(), err error) {
	if files[1], err = o.open(c.Stdout); err != nil {
		return files, nil, err
	}
	if sameWriter(c.Stdout, c.Stderr) {
		files[2] = files[1]
	} else if files[2], err = o.open(c.Stderr); err != nil {
		return files, nil, err
	}
	files[0], feed, err = o.input(c.Stdin)
	return files, feed, err
}

// open returns what the child shall have in place of w: nothing, w itself when it is a file, or the end of a new pipe.
func (o *output) open(w io.Writer) (*os.File, error) {
	if w == nil {
		return nil, nil
	}
	if f, ok := w.(*os.File); ok {
		return f, nil
	}
	from, end, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	o.pipes = append(o.pipes, pipe{from, w})
	o.ends = append(o.ends, end)
	return end, nil
}

// input gives the child's stdin. Nobody waits for the function it returns, since r may block for ever; finish closes the pipe
// that it writes to.
func (o *output) input(r io.Reader) (end *os.File, feed func(), err error) {
	if r == nil {
		return nil, nil, nil
	}
	if f, ok := r.(*os.File); ok {
		return f, nil, nil
	}
	end, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	o.in, o.ends = w, append(o.ends, end)
	return end, func() {
		io.Copy(w, r) // a child need not read its input, so a broken pipe is no failure
		w.Close()
	}, nil
}

// abandon closes everything, for a child that never started.
func (o *output) abandon() {
	o.closeEnds()
	o.closePipes()
}

// begin feeds the child, and copies until the last process that holds a pipe has closed it.
func (o *output) begin(feed func()) {
	o.closeEnds()
	if feed != nil {
		go feed()
	}
	for _, p := range o.pipes {
		o.done.Go(func() { o.copy(p) })
	}
}

func (o *output) copy(p pipe) {
	_, err := io.Copy(p.to, p.from)
	if err != nil && !givenUp(err) {
		o.failed(err)
		p.to = io.Discard
		_, err = io.Copy(p.to, p.from) // ends with the pipe, which is all that matters now
	}
	if err == nil {
		return
	}
	held, err := rest(p)
	o.mu.Lock()
	o.held = o.held || held
	o.mu.Unlock()
	o.failed(err)
}

func (o *output) failed(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
	}
}

// finish waits for the rest of the output, at most for limit, and reports whether someone still held a pipe then. What is in a pipe by
// then is carried all the same: it may be only the writer, or this process, that takes its time.
func (o *output) finish(limit time.Duration) (held bool, err error) {
	force := time.AfterFunc(limit, func() {
		for _, p := range o.pipes {
			giveUp(p.from)
		}
	})
	o.done.Wait()
	force.Stop()
	o.closePipes()
	return o.held, o.err
}

// The files are ours, and closing a pipe has no outcome to report.
func (o *output) closeEnds() {
	for _, end := range o.ends {
		end.Close()
	}
}

func (o *output) closePipes() {
	if o.in != nil {
		o.in.Close()
	}
	for _, p := range o.pipes {
		p.from.Close()
	}
}

func sameWriter(a, b io.Writer) bool {
	if a == nil || b == nil {
		return false
	}
	t := reflect.TypeOf(a)
	return t == reflect.TypeOf(b) && t.Comparable() && a == b
}
