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

	_ "lashd/cmd/lashd/cli" // what is built below: so no result is kept that is not of it
)

// rewrite puts into transcripts what is told and printed now; that is read before it is committed.
var rewrite = flag.Bool("update", false, "write docs/plugin-transcript.md and testdata/clients.golden anew")

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

// stop ends a daemon that a script left; usually there is none.
func stop(env *testscript.Env) {
	if _, err := os.Stat(env.Getenv("LASHD_SOCKET")); err != nil {
		return
	}
	cmd := exec.Command(filepath.Join(bin, "lashd"), "call", "shutdown", `{"daemon":true}`)
	cmd.Env = env.Vars
	cmd.Run()
}
