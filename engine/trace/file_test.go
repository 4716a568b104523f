package trace

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func open(t *testing.T, path string) *File {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestRecordsAreLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the clock begins at 2000-01-01
		path := filepath.Join(t.TempDir(), "trace")
		f := open(t, path)
		f.Add(ToolStarted, Record{SessionID: "ses_a", TurnID: "trn_a", Iteration: 2, CallID: "c1"}, map[string]int{"size": 3})
		time.Sleep(1500 * time.Millisecond)
		f.Append(Record{Type: Custom, Frame: "frm_a"})
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		want := `{"v":1,"n":1,"atMs":946684800000,"sessionId":"ses_a","turnId":"trn_a","iteration":2,"callId":"c1","type":"tool_call_started","body":{"size":3}}
{"v":1,"n":2,"atMs":946684801500,"frame":"frm_a","type":"custom"}
`
		if got := read(t, path); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}

func TestTraceIsPrivateAndAppended(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace")
	for range 2 {
		f := open(t, path)
		f.Append(Record{Type: Issue})
		f.Close()
	}
	if got := strings.Count(read(t, path), "\n"); got != 2 {
		t.Errorf("%d records after two runs, want 2", got)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); runtime.GOOS != "windows" && got&0o077 != 0 {
		t.Errorf("mode %o lets others read", got)
	}
}

func TestRecordThatCannotBeWrittenIsCounted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace")
	f := open(t, path)
	f.Add(Custom, Record{}, func() {})                               // cannot be encoded
	f.Append(Record{Type: Custom, Body: json.RawMessage(`{broken`)}) // invalid
	f.Append(Record{Type: Issue})
	if got := f.Lost(); got != 2 {
		t.Errorf("%d records lost, want 2", got)
	}
	if got := strings.Count(read(t, path), "\n"); got != 1 {
		t.Errorf("%d records written, want 1", got)
	}
	f.Close()
	f.Append(Record{Type: Issue})
	f.Append(Record{Type: Issue})
	if got := f.Lost(); got != 4 {
		t.Errorf("%d records lost after the file was closed, want 4", got)
	}
}

func TestNoTraceKeepsNothing(t *testing.T) {
	var f *File
	f.Append(Record{})
	f.Add(Custom, Record{}, 1)
	if err := f.Close(); err != nil || f.Lost() != 0 {
		t.Errorf("got %v, %d lost; want none", err, f.Lost())
	}
}

func TestRecordsOfManyGoroutinesAreWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace")
	f := open(t, path)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				f.Add(Custom, Record{}, strings.Repeat("x", 500))
			}
		})
	}
	all.Wait()
	f.Close()
	seen := map[int64]bool{}
	for line := range strings.Lines(read(t, path)) {
		var r Record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		seen[r.Number] = true
	}
	if len(seen) != 400 || !seen[1] || !seen[400] {
		t.Errorf("%d numbers, want 1 to 400", len(seen))
	}
}
