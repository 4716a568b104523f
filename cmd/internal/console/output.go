package console

import (
	"cmp"
	"os"
	"sync"
)

// Stdout receives the results of commands. It remembers write errors and MainWith
// reports them, so that callers need not check each write. Nothing else may write
// to os.Stdout, except for the protocols of stdio and acp.
var Stdout = new(output)

// output writes to os.Stdout. It is safe for concurrent use.
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

// Failed returns the first write error.
func (o *output) Failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
