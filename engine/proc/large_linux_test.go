package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkViewLargeHome measures the rules for a home directory of 5,000 entries with the usual number of hidden paths.
func BenchmarkViewLargeHome(b *testing.B) {
	home, err := os.MkdirTemp("/var/tmp", "lashd-home-") // not in /tmp, which a View replaces
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(home) })
	for i := range 5000 {
		if err := os.WriteFile(filepath.Join(home, fmt.Sprint("entry", i)), nil, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	s := &Sandbox{View: &View{}}
	for i := range 80 {
		s.View.Hide = append(s.View.Hide, filepath.Join(home, fmt.Sprint(".secret", i)))
	}
	for b.Loop() {
		rules, err := s.ruleset(Confines().Sandbox)
		if err == nil {
			err = s.View.allow(rules, rights(Confines().Sandbox))
		}
		if err != nil {
			b.Fatal(err)
		}
		os.NewFile(uintptr(rules), "rules").Close()
	}
}
