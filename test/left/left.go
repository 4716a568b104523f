// Package left finds the processes that tests have left behind.
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

// Process is one that is there.
type Process struct {
	PID     int
	Line    string   // what it was started with
	Environ []string // that it was started with
}

// String is what the process was started with.
func (p Process) String() string { return p.Line }

// Marked are the processes that have all these texts in their environment, where every variable ends with a zero byte. There
// are none where the system has no /proc. What has lost its environment, as a process that has ended has, is none.
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

// Childless runs the tests of a package, and fails if children are left after all of them, or processes that are marked.
type Childless struct {
	*testing.M
	Mark string // as for Marked; empty: only children count
}

// Run implements the interface that goleak runs tests by.
func (c Childless) Run() int {
	code := c.M.Run()
	if n := proc.Alive(); n > 0 {
		fmt.Printf("%d children are left\n", n)
		return 1
	}
	if c.Mark == "" {
		return code
	}
	if left := Marked(c.Mark); len(left) > 0 {
		fmt.Printf("processes are left: %q\n", left)
		return 1
	}
	return code
}
