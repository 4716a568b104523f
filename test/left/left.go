// Package left finds processes that tests leave behind.
package left

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"lashd/engine/proc"
)

// Process is a running process.
type Process struct {
	PID     int
	Line    string   // command line
	Environ []string // environment at its start
}

// String returns the command line.
func (p Process) String() string { return p.Line }

// Marked returns the processes whose environment at their start contains all these texts. Every
// variable in it ends with a zero byte. It returns none on systems without /proc, and skips processes
// that have ended, which have no environment any more.
func Marked(texts ...string) (found []Process) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		env, err := os.ReadFile(file)
		if err != nil || !hasAll(env, texts) {
			continue
		}
		dir := filepath.Dir(file)
		pid, _ := strconv.Atoi(filepath.Base(dir))
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		found = append(found, Process{PID: pid, Line: strings.ReplaceAll(string(line), "\x00", " "), Environ: strings.Split(string(env), "\x00")})
	}
	return found
}

func hasAll(env []byte, texts []string) bool {
	for _, text := range texts {
		if !bytes.Contains(env, []byte(text)) {
			return false
		}
	}
	return true
}

// Childless runs the tests of a package and fails if child processes or marked processes are left
// after them.
type Childless struct {
	*testing.M
	Mark string // a text as for Marked; if empty, only children count
}

// Run implements goleak.TestingM.
func (c Childless) Run() int {
	code := c.M.Run()
	if n := proc.Alive(); n > 0 {
		fmt.Printf("%d child processes are left\n", n)
		return 1
	}
	if c.Mark == "" {
		return code
	}
	if left := Marked(c.Mark); len(left) > 0 {
		fmt.Printf("marked processes are left: %q\n", left)
		return 1
	}
	return code
}
