package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"lashd/rpc/protocol"
)

// BenchmarkChanges measures the search after a command in a workspace with 10,000 files in 1,000 directories.
func BenchmarkChanges(b *testing.B) {
	work := b.TempDir()
	p := Places{State: filepath.Join(work, "state"), Scratch: b.TempDir()}
	for i := range 1000 {
		dir := filepath.Join(work, "work", fmt.Sprint("a", i%10), fmt.Sprint("b", i))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			b.Fatal(err)
		}
		for j := range 10 {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(j)), nil, 0o600); err != nil {
				b.Fatal(err)
			}
		}
	}
	box, err := p.For(protocol.SandboxWorkspace, filepath.Join(work, "work"))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if text := box.Changes(); text != "" {
			b.Fatal(text)
		}
	}
}
