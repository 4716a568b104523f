package attachment_test

import (
	"strings"
	"testing"

	"lashd/engine/attachment"
)

// TestFileThatGrows reads a file whose size is 0 until it is read.
func TestFileThatGrows(t *testing.T) {
	if _, err := attachment.ReadFile("/proc/self/maps", 10); err == nil || err.Error() != "/proc/self/maps has more than 10 bytes" {
		t.Errorf("runtime/S15 a file with more bytes than it claims: %v", err)
	}
	a, err := attachment.ReadFile("/proc/self/status", 1<<20)
	if err != nil || a.Type != "text/plain" || !strings.HasPrefix(string(a.Data), "Name:") {
		t.Errorf("runtime/S15 a text that claims to be empty: %+v, %v", a, err)
	}
}
