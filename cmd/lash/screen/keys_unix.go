//go:build unix

package screen

import (
	"io"
	"os"
	"sync"

	"github.com/muesli/cancelreader"
)

// keys reads what the user types. Bubble Tea would close its reader of a terminal while another
// goroutine reads from it, if a program is killed or the machine is busy. It does not close this one.
type keys struct {
	in      *os.File
	reading sync.Mutex                // held during a read
	mu      sync.Mutex                // guards reader
	reader  cancelreader.CancelReader // nil while stopped
}

// newKeys returns the keys of a terminal. Call start before the first Read.
func newKeys(in *os.File) *keys { return &keys{in: in} }

// start lets Read read from the terminal.
func (k *keys) start() error {
	r, err := cancelreader.NewReader(k.in)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reader = r
	return nil
}

// stop ends a Read that waits, and returns when no goroutine reads from the terminal any more.
func (k *keys) stop() {
	k.mu.Lock()
	r := k.reader
	k.reader = nil
	k.mu.Unlock()
	if r == nil {
		return
	}
	r.Cancel()
	k.reading.Lock()
	defer k.reading.Unlock()
	_ = r.Close()
}

// Read implements io.Reader. While stopped, it returns io.EOF, which Bubble Tea takes as the end of its read loop.
func (k *keys) Read(b []byte) (int, error) {
	k.reading.Lock()
	defer k.reading.Unlock()
	k.mu.Lock()
	r := k.reader
	k.mu.Unlock()
	if r == nil {
		return 0, io.EOF
	}
	return r.Read(b)
}
