package plugins_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSDKsAreShort sees to it that an author can read what is copied into a plugin.
func TestSDKsAreShort(t *testing.T) {
	for name, pattern := range map[string]string{
		"go": "sdk/go/lashdplugin/*.go", "python": "sdk/python/*.py", "typescript": "sdk/typescript/*.*ts",
	} {
		t.Run("issue/4-9 an SDK has fewer than 540 lines, in "+name, func(t *testing.T) {
			files, err := filepath.Glob(pattern)
			if err != nil || len(files) == 0 {
				t.Fatalf("there is no %s: %v", pattern, err)
			}
			lines := 0
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if !strings.HasSuffix(file, "_test.go") {
					lines += bytes.Count(text, []byte("\n"))
				}
			}
			if lines >= 540 {
				t.Errorf("it has %d lines", lines)
			}
		})
	}
}
