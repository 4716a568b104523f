// The race detector maps a multiple of the memory that a worker may have, so these tests run without it.

//go:build linux && !race

package worker_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"lashd/engine/starlark"
	"lashd/engine/starlark/worker"
	"lashd/test/wait"
)

// residentMiB returns the memory of the worker that is in RAM.
func (d *daemon) residentMiB() int {
	d.t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", d.cmd.Process.Pid))
	if err != nil {
		d.t.Fatal(err)
	}
	var size, resident int
	if _, err := fmt.Sscan(string(data), &size, &resident); err != nil {
		d.t.Fatal(err)
	}
	return resident * os.Getpagesize() >> 20
}

func TestHostileCells(t *testing.T) {
	d := starts(t, `{"steps":20000000,"timeMs":5000,"memory":134217728,"output":20000}`)
	d.serve = func(string, json.RawMessage) any { return map[string]any{"unixNs": 1} }
	d.cell("kept = [1]")
	before := d.residentMiB()
	for _, c := range []struct{ name, source, text string }{
		{"a loop without end", "while True: pass", "steps"},
		{"a repeated string", "x = 'x' * 900000000", "memory"},
		{"a list of a long range", "x = list(range(50000000))", "range: 50000000 elements"},
		{"a recursion without end", "def f(n): return f(n + 1) + 1\nf(0)", "nested more than 1000 deep"},
		{"a huge string", "x = 'x' * 100000000\ny = x + x", "memory"},
		{"a huge print", "print('x' * 10000000)", "printed more than"},
		{"a regular expression on a huge text", "re.findall('(a|b)*c', 'ab' * 20000000)", "too many for this pattern"},
		{"a sort of 1e7 values", "x = sorted(range(10000000))", "limit"},
		{"a dict with 1e7 keys", "x = {i: i for i in range(10000000)}", "limit"},
		{"text that is not UTF-8", "x = 'é'[:1]\nfail(x)", "\uFFFD"},
		{"values that are nested 100,000 deep", "x = []\nfor i in range(100000): x = [x]\nprint(x)", "nested more than 1000 levels"},
		{"many values", "x = []\nwhile True: x.append(list(range(100)))", "memory"},
	} {
		t.Run("runtime/R07 "+c.name+" is an error of the cell, and the worker continues", func(t *testing.T) {
			r := d.cell(c.source)
			want := c.text
			if want == "limit" {
				want = "The globals are as they were before the cell."
			}
			if !strings.Contains(r.Error, want) {
				t.Errorf("error %q, want %q", r.Error, want)
			}
			if r := d.cell("x, y = 0, 0\nkept"); string(r.Value) != "[1]" {
				t.Errorf("kept is %s, error %s", r.Value, r.Error)
			}
		})
	}
	t.Run("runtime/R07 a loop of 1,000 calls works", func(t *testing.T) {
		if r := d.cell("n = 0\nfor i in range(1000): n += 1 if time.now() == 0 else 0\nn"); string(r.Value) != "1000" {
			t.Errorf("value %s, error %s", r.Value, r.Error)
		}
	})
	t.Run("runtime/R07 the worker gives its memory back", func(t *testing.T) {
		wait.Until(t, "the memory to return", func() bool { return d.residentMiB() < before+20 })
	})
	t.Run("runtime/R07 a cell that cannot be stopped ends the process", func(t *testing.T) {
		d := starts(t, `{"timeMs":100}`)
		start := time.Now()
		// Each match looks for a b up to the end of the text.
		_, err := d.await(d.begin("code/execute", cellParams("x = re.findall('a(?:.*b)?', 'a' * 500000)", "")))
		if err == nil {
			t.Fatal("the cell ended by itself, so nothing is shown")
		}
		_ = d.cmd.Wait() // checked below
		if code := d.cmd.ProcessState.ExitCode(); code != 3 || !strings.Contains(d.stderr.String(), "the cell was active for more than 100ms") {
			t.Errorf("exit code %d after %v, stderr %s", code, time.Since(start), d.stderr)
		}
	})
	t.Run("runtime/R07 an allocation beyond the limit of the process ends it", func(t *testing.T) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), roleVariable+"=allocate")
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "out of memory") || strings.Contains(string(out), "allocated") {
			t.Errorf("%v: %s", err, out)
		}
	})
}

// allocate limits this process as a worker with cells of 64 MiB, and allocates more.
func allocate() {
	if err := worker.LimitProcess(starlark.Limits{Memory: 64 << 20}); err != nil {
		fmt.Println("limit:", err)
		return
	}
	data := make([]byte, 200<<20)
	fmt.Println(len(data))
	data = make([]byte, 1<<30)
	fmt.Println("allocated", len(data))
}
