// Package e2e drives the real binary from outside, as editors, scripts and people do.
package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	_ "lashd/cmd/lashd/cli" // the tests run its binary; the import makes go test rerun them when it changes
)

// rewrite updates the transcripts in testdata with the current output. Review the changes before you
// commit them.
var rewrite = flag.Bool("update", false, "rewrite docs/plugin-transcript.md and testdata/clients.golden")

// bin is the directory of the binary under test.
var bin string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "lashd-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	bin = dir
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "lashd"), "lashd/cmd/lashd")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build lashd:", err)
		return 1
	}
	return m.Run()
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", bin+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("LASHD_HOME", filepath.Join(env.WorkDir, "data"))
			env.Setenv("LASHD_LOG", "error")
			env.Setenv("LASHD_SOCKET", filepath.Join(env.WorkDir, "run", "s"))
			env.Defer(func() { stop(env) })
			return os.MkdirAll(filepath.Join(env.WorkDir, "run"), 0o700)
		},
	})
}

// stop stops a daemon that a script left running; usually there is none.
func stop(env *testscript.Env) {
	if _, err := os.Stat(env.Getenv("LASHD_SOCKET")); err != nil {
		return
	}
	cmd := exec.Command(filepath.Join(bin, "lashd"), "call", "shutdown", `{"daemon":true}`)
	cmd.Env = env.Vars
	cmd.Run()
}
