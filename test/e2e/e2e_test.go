// Package e2e drives the real binary from outside, as editors, scripts and people do.
package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	_ "lashd/cmd/lash/cli"  // the tests run its binary; the import makes go test rerun them when it changes
	_ "lashd/cmd/lashd/cli" // as well
)

// rewrite updates the transcripts in testdata with the current output. Review the changes before you
// commit them.
var rewrite = flag.Bool("update", false, "rewrite docs/plugin-transcript.md and testdata/clients.golden")

// bin is the directory of the programs under test, lash and lashd.
var bin string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

// builtIn names a directory that has lashd, for a test binary that another one starts.
const builtIn = "LASHD_TEST_BIN"

func run(m *testing.M) int {
	if bin = os.Getenv(builtIn); bin != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "lashd-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	bin = dir
	build := exec.Command("go", "build", "-o", dir, "lashd/cmd/lash", "lashd/cmd/lashd")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build lash and lashd:", err)
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

// ofMachines are the commands of lashd, which come first or after flags. All others are those of lash.
var ofMachines = []string{"serve", "stdio", "acp", "check", "schema", "demo"}

// programOf returns the path of the program that has the command in args.
func programOf(args []string) string {
	if i := slices.IndexFunc(args, func(arg string) bool { return slices.Contains(ofMachines, arg) }); i >= 0 && (i == 0 || strings.HasPrefix(args[0], "-")) {
		return filepath.Join(bin, "lashd")
	}
	return filepath.Join(bin, "lash")
}

// stop stops a daemon that a script left running; usually there is none.
func stop(env *testscript.Env) {
	if _, err := os.Stat(env.Getenv("LASHD_SOCKET")); err != nil {
		return
	}
	cmd := exec.Command(filepath.Join(bin, "lash"), "call", "shutdown", `{"daemon":true}`)
	cmd.Env = env.Vars
	cmd.Run()
}
