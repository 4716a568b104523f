// Package wait polls for conditions that send no notification, such as the effect of another process.
package wait

import (
	"testing"
	"time"
)

// patience is the limit for a single wait.
const patience = 2 * time.Minute

// Until polls so every 5 ms and fails the test if it does not become true within
// patience. what names the condition, such as "the plugin is loaded".
func Until(t testing.TB, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}
