package background

import (
	"io"
	"testing"

	"lashd/rpc/protocol"
)

func TestCharactersStayWhole(t *testing.T) {
	o := NewOutputs(t.TempDir())
	task := &protocol.Task{ID: "tsk_x", State: protocol.TaskRunning}
	w, err := o.Writer(task)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	reads := func(at int64, limit int, want string, next int64) {
		t.Helper()
		r, err := o.Read(task, at, limit)
		if err != nil || r.Text != want || r.NextOffset != next {
			t.Errorf("issue/5-1 at %d, of %d bytes at most, there is %q up to %d: %v; want %q up to %d", at, limit, r.Text, r.NextOffset, err, want, next)
		}
	}
	io.WriteString(w, "a雲\xe9") // the last byte begins a character of three bytes
	reads(0, 100, "a雲", 4)
	reads(0, 3, "a", 1)
	reads(1, 2, "\uFFFD", 3)
	reads(4, 100, "", 4)
	io.WriteString(w, "\x9b\xb2")
	reads(4, 100, "雲", 7)
	io.WriteString(w, "\xff\xe9")
	reads(7, 100, "\uFFFD", 8)
	task.State = protocol.TaskFailed // the rest of the character will never arrive
	reads(7, 100, "\uFFFD", 9)
	reads(8, 1, "\uFFFD", 9)
}
