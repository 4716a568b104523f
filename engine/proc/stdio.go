package proc

import (
	"io"
	"os"
	"reflect"
	"sync"
	"time"
)

// output copies a child's output to the writers of its Command. os/exec could do that too, but its Wait hangs on a
// Stdin that does not end, and it does not say whether a pipe had to be closed by force.
type output struct {
	in    *os.File // our end of the child's stdin, if we feed it
	pipes []pipe
	ends  []*os.File     // the child's ends; closed here after the start
	done  sync.WaitGroup // waits for the copying goroutines

	mu   sync.Mutex
	err  error // the first failed Write
	held bool  // another process held a pipe when Drain ran out
}

// pipe is one output stream that is copied.
type pipe struct {
	from *os.File
	to   io.Writer
}

// connect returns the three streams for the child, nil for the null device. The function that it returns, if any,
// copies Stdin to the child.
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

// open returns the child's stream for w: nil, w itself if it is a file, or the write end of a new pipe.
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

// input returns the child's stdin. Do not wait for the function feed, since r may block forever; finish closes the pipe
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
		io.Copy(w, r) // a child may ignore its input, so a broken pipe is no failure
		w.Close()
	}, nil
}

// abandon closes all files of a child that did not start.
func (o *output) abandon() {
	o.closeEnds()
	o.closePipes()
}

// begin starts to feed the child, and to copy its output until the last process that holds a pipe has closed it. Call
// it after the child has started.
func (o *output) begin(feed func()) {
	o.closeEnds()
	if feed != nil {
		go feed()
	}
	for _, p := range o.pipes {
		o.done.Go(func() { o.copy(p) })
	}
}

// copy copies one stream to its end. After a failed Write it drops the rest.
func (o *output) copy(p pipe) {
	_, err := io.Copy(p.to, p.from)
	if err != nil && !stoppedReading(err) {
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

// failed keeps the first error.
func (o *output) failed(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
	}
}

// finish waits for the rest of the output, at most for limit, and closes the pipes. held reports whether another
// process still held a pipe then. Data that is already in a pipe is copied even after limit: possibly only the writer
// or this process is slow.
func (o *output) finish(limit time.Duration) (held bool, err error) {
	force := time.AfterFunc(limit, func() {
		for _, p := range o.pipes {
			stopReading(p.from)
		}
	})
	o.done.Wait()
	force.Stop()
	o.closePipes()
	return o.held, o.err
}

// closeEnds closes the child's ends. Errors do not matter: they are our own files.
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

// sameWriter reports whether a and b are the same writer. Writers that cannot be compared count as different.
func sameWriter(a, b io.Writer) bool {
	if a == nil || b == nil {
		return false
	}
	t := reflect.TypeOf(a)
	return t == reflect.TypeOf(b) && t.Comparable() && a == b
}
