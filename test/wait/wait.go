// Package wait waits for what nothing tells of, such as what another process does.
package wait

import (
	"testing"
	"time"
)

// patience is how long anything may take before a test gives up on it.
const patience = 2 * time.Minute

// Until waits until something is so, and ends a test in which it never is.
func Until(t testing.TB, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}
