package bench

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lashd/test/fakemodel"
)

// reading is a scripted turn that reads a small file n times, one call after the other.
func (d *doer) reading(n int) model {
	read := call("read", `{"path":"a.txt"}`)
	if d.driver == "standard" {
		return func(step int, _ []result) fakemodel.Step {
			if step < n {
				return use(read)
			}
			return fakemodel.Say("done")
		}
	}
	return func(step int, _ []result) fakemodel.Step {
		if step == 0 {
			return cell("I read it.", fmt.Sprintf("for i in range(%d):\n    tools.read(\"a.txt\").unwrap()", n))
		}
		return fakemodel.Say("done")
	}
}

// batch is a scripted turn that reads a small file n times at the same time.
func (d *doer) batch(n int) model {
	if d.driver == "standard" {
		calls := slices.Repeat([][2]string{call("read", `{"path":"a.txt"}`)}, n)
		return func(step int, _ []result) fakemodel.Step {
			if step == 0 {
				return use(calls...)
			}
			return fakemodel.Say("done")
		}
	}
	return oneCell("I read it.", fmt.Sprintf("x = parallel([tools.read.later(\"a.txt\") for i in range(%d)])\nprint(len(x))", n))
}

// own runs a turn and returns its duration without the time of the model's replies.
func (d *doer) own(b *testing.B, sid string, m model) time.Duration {
	d.model.Reset()
	d.model.Think(func(c fakemodel.Chat) fakemodel.Step { return m(newest(ofTurn(c.Messages))) })
	took := run(b, d.peer, sid, "go").Total
	for _, r := range d.model.Requests() {
		if !r.End.IsZero() {
			took -= r.End.Sub(r.Start)
		}
	}
	return took
}

// ofTurn returns the messages after the last prompt.
func ofTurn(all []fakemodel.Message) []fakemodel.Message {
	for i, m := range slices.Backward(all) {
		if m.Role == "user" && m.Content == "go" {
			return all[i+1:]
		}
	}
	return all
}

// session creates a session with the file a.txt that has run one turn.
func (d *doer) session(b *testing.B) string {
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one line\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	sid, err := d.peer.CreateIn(dir)
	if err != nil {
		b.Fatal(err)
	}
	d.own(b, sid, d.reading(1))
	return sid
}

// BenchmarkCellCall measures one call of a cell and one of a turn of the driver standard, in daemons and with the time of the model
// taken off: the difference between 20 calls and one, for calls one after the other and for a batch.
func BenchmarkCellCall(b *testing.B) {
	const calls = 20
	took := map[string][]time.Duration{}
	sides := []*doer{newDoer(b, "standard"), newDoer(b, "rlm")}
	for b.Loop() {
		for _, d := range sides {
			sid := d.session(b)
			for range 5 {
				least := d.own(b, sid, d.reading(1))
				took[d.driver] = append(took[d.driver], (d.own(b, sid, d.reading(1+calls))-least)/calls)
				least = d.own(b, sid, d.batch(1))
				took["batch "+d.driver] = append(took["batch "+d.driver], (d.own(b, sid, d.batch(1+calls))-least)/calls)
			}
		}
	}
	for kind, unit := range map[string]string{"": "call", "batch ": "batched"} {
		native, cell := median(took[kind+"standard"]), median(took[kind+"rlm"])
		b.ReportMetric(native.Seconds()*1e6, "native-"+unit+"-us")
		b.ReportMetric(cell.Seconds()*1e6, "cell-"+unit+"-us")
		b.ReportMetric(cell.Seconds()/native.Seconds(), "x-"+unit)
	}
}

// BenchmarkCellFirstTurn measures the first turn of a session with five cells, which starts the worker, next to that of a session
// with five steps of one tool call, and the memory of the worker after it.
func BenchmarkCellFirstTurn(b *testing.B) {
	took := map[string][]time.Duration{}
	var memory []int
	sides := []*doer{newDoer(b, "standard"), newDoer(b, "rlm")}
	five := map[string]model{"standard": sides[0].reading(5), "rlm": func(step int, _ []result) fakemodel.Step {
		if step < 5 {
			return cell("I read it.", "text = tools.read(\"a.txt\").text")
		}
		return fakemodel.Say("done")
	}}
	for b.Loop() {
		for _, d := range sides {
			dir := b.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one line\n"), 0o600); err != nil {
				b.Fatal(err)
			}
			sid, err := d.peer.CreateIn(dir)
			if err != nil {
				b.Fatal(err)
			}
			took[d.driver] = append(took[d.driver], d.own(b, sid, five[d.driver]))
		}
		memory = append(memory, newestWorker())
	}
	calls, cells := median(took["standard"]), median(took["rlm"])
	b.ReportMetric(calls.Seconds()*1e3, "calls-ms")
	b.ReportMetric(cells.Seconds()*1e3, "cells-ms")
	b.ReportMetric(cells.Seconds()/calls.Seconds(), "x-calls")
	b.ReportMetric(float64(median(memory))/1024, "worker-MB")
}

// newestWorker returns the resident memory of the worker that started last, in KiB; 0 if there is none.
func newestWorker() (kib int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	newest := ""
	for _, path := range dirs {
		text, _ := os.ReadFile(path) // a process that has ended counts as none
		if args := bytes.Split(text, []byte{0}); len(args) > 1 && string(args[len(args)-2]) == "worker" && strings.HasSuffix(string(args[len(args)-3]), "/lashd") {
			if dir := filepath.Dir(path); len(dir) > len(newest) || len(dir) == len(newest) && dir > newest {
				newest = dir
			}
		}
	}
	text, _ := os.ReadFile(filepath.Join(newest, "status"))
	_, rest, _ := bytes.Cut(text, []byte("VmRSS:"))
	_, _ = fmt.Sscan(string(rest), &kib) // stays 0
	return kib
}
