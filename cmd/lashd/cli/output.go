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

// inJSON says how results are printed.
type inJSON struct {
	JSON *bool `help:"Print JSON; the default unless stdout is a terminal." negatable:""`
}

// wantsJSON tells whether a result is printed as JSON.
func wantsJSON(flag *bool) bool {
	if flag != nil {
		return *flag
	}
	return !terminal(os.Stdout)
}
