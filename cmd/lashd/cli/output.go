package cli

import (
	"cmp"
	"os"
	"sync"
)

// stdout is where results go. MainWith tells what could not be written to it, so that not everyone who prints has to.
var stdout = new(output)

type output struct {
	mu  sync.Mutex
	err error // the first one
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	n, err := os.Stdout.Write(p)
	if err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.err = cmp.Or(o.err, err)
	}
	return n, err
}

func (o *output) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
