package bench

import (
	"fmt"
	"sync"
)

// tail keeps the end of what a process writes to stderr, to explain its failures.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const tailSize = 2000

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	t.b = t.b[max(0, len(t.b)-tailSize):]
	return len(p), nil
}

// String is empty when nothing was written, else made to follow an error text.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.b) == 0 {
		return ""
	}
	return fmt.Sprintf("; stderr: %s", t.b)
}
