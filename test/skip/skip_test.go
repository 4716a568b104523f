package skip_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"lashd/test/skip"
)

// called is a testing.TB that records how a test would end.
type called struct {
	testing.TB
	how string
}

func (c *called) Helper()                   {}
func (c *called) Skip(...any)               { c.how = "skipped" }
func (c *called) Fatalf(f string, _ ...any) { c.how = "failed" }

func TestUnless(t *testing.T) {
	for _, c := range []struct {
		variable string
		have     bool
		want     string
	}{{"", true, ""}, {"", false, "failed"}, {"1", true, "skipped"}, {"1", false, "skipped"}} {
		t.Setenv("LASHD_SKIP_MOON", c.variable)
		got := &called{}
		skip.Unless(got, "MOON", c.have, "there is no moon")
		if got.how != c.want {
			t.Errorf("with variable %q and have %t the test ends as %q, want %q", c.variable, c.have, got.how, c.want)
		}
	}
}

var skips = regexp.MustCompile(`\b[tb]\.Skip(f|Now)?\(`)

// TestSkipsGoThroughThisPackage checks that all tests of the project use this package to skip.
func TestSkipsGoThroughThisPackage(t *testing.T) {
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".cache") {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if at := skips.FindIndex(text); at != nil {
			t.Errorf("%s:%d calls Skip: use skip.Unless", path, 1+strings.Count(string(text[:at[0]]), "\n"))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
