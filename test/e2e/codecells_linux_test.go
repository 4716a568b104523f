package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lashd/rpc/protocol"
)

// scriptedReply is a reply of the scripted model.
type scriptedReply struct {
	Text string `json:"text"`
}

// cells returns the home of a daemon whose model answers "cycle N." with the cell of N, and then with "done".
func cells(t *testing.T, source func(n int) string, turns int) *home {
	t.Helper()
	var script struct {
		Turns []any `json:"turns"`
	}
	for n := range turns {
		script.Turns = append(script.Turns, map[string]any{
			"match":   map[string]string{"lastUserContains": fmt.Sprintf("cycle %d.", n)},
			"replies": []scriptedReply{{"I run it.\n<starlark>\n" + source(n) + "\n</starlark>\n"}, {"done"}},
		})
	}
	text, err := json.Marshal(script)
	if err != nil {
		t.Fatal(err)
	}
	h := newHome(t, map[string]string{"script.json": string(text)})
	h.write(filepath.Join(h.dir, "config.toml"), fmt.Sprintf("script = %q\ndriver = \"rlm\"\napproval = \"allow\"\n", filepath.Join(h.dir, "script.json")))
	return h
}

// observed returns what the model read of the newest cell.
func (p *peer) observed(id protocol.SessionID) string {
	p.t.Helper()
	text := ""
	for _, n := range ask[protocol.GraphReadResult](p, "graph/read", protocol.GraphReadParams{SessionID: id}).Data {
		if n.Message != nil && n.Message.Parts[0].Kind == protocol.PartOutput {
			text = n.Message.Parts[0].Text
		}
	}
	return text
}

// newCells creates a session in which an interrupted call is reported to the model at once.
func (p *peer) newCells(h *home) protocol.SessionID {
	p.t.Helper()
	return ask[protocol.SessionNewResult](p, "session/new", protocol.SessionNewParams{
		Cwd: h.work, Unknown: &protocol.UnknownOutcomeRule{DeadlineMs: new(int64)},
	}).SessionID
}

// TestCellsUnderSIGKILL kills the daemon at random moments while a cell runs 20 commands and sets a variable. LASHD_LONG=1 kills 100
// times.
func TestCellsUnderSIGKILL(t *testing.T) {
	t.Run("runtime/R10 runtime/R07 cells continue after SIGKILL, no command runs twice, and variables survive", func(t *testing.T) {
		t.Parallel()
		kills := 6
		if os.Getenv("LASHD_LONG") != "" {
			kills = 100
		}
		h := cells(t, func(n int) string {
			return fmt.Sprintf(`results = {}
if %d == 0:
    cycles = []
cycles.append(%d)
for i in range(20):
    results["%d-%%d" %% i] = tools.shell("echo %d-%%d >> ran" %% i).ok
print(cycles, "ok: " + ",".join([k for k in results if results[k]]))`, n, n, n, n)
		}, kills)
		d := h.serve()
		p := h.dial("first")
		id := p.newCells(h)
		want := []string{}
		for n := range kills {
			turn := p.start(id, fmt.Sprintf("cycle %d.", n)).TurnID
			time.Sleep(time.Duration(rand.IntN(150)) * time.Millisecond) // the moment of the kill is what varies
			d.kill()
			d = h.serve()
			p = h.dial(fmt.Sprintf("after %d", n))
			if r := p.wait(turn); r.State != protocol.TurnCompleted {
				t.Fatalf("cycle %d ended as %s: %+v", n, r.State, r.Issues)
			}
			want = append(want, fmt.Sprint(n))
			seen := p.observed(id)
			if !strings.HasPrefix(seen, "["+strings.Join(want, ", ")+"] ok: ") {
				t.Fatalf("in cycle %d the model read %q", n, seen)
			}
			h.ranAsSaid(seen)
		}
		d.stop()
	})
}

// ranAsSaid checks that each command that the cell saw succeed ran once, and no other one more often.
func (h *home) ranAsSaid(seen string) {
	h.t.Helper()
	text, err := os.ReadFile(filepath.Join(h.work, "ran"))
	if err != nil {
		h.t.Fatal(err)
	}
	times := map[string]int{}
	for key := range strings.FieldsSeq(string(text)) {
		times[key]++
		if times[key] > 1 {
			h.t.Errorf("the command %s ran %d times", key, times[key])
		}
	}
	_, list, _ := strings.Cut(strings.TrimSpace(seen), "ok: ")
	for key := range strings.SplitSeq(list, ",") {
		if times[key] != 1 {
			h.t.Errorf("the command %s succeeded in the cell and ran %d times", key, times[key])
		}
	}
}

// TestHostileCells runs cells that go on for ever or use too much. Each ends in an error that the model reads, with the variables from
// before it, and the daemon's memory returns to its start.
func TestHostileCells(t *testing.T) {
	t.Run("runtime/R06 a hostile cell ends in an error, and the next one has the old variables", func(t *testing.T) {
		t.Parallel()
		hostile := []struct{ source, want string }{
			{"kept = 41", ""},
			{"kept = 1\nwhile True: pass", "Error in line"},
			{"kept = 2\nx = []\nwhile True: x.append('y' * 1000000)", "Error"},
			{"kept = 3\ndef f(n): return f(n + 1)\nf(0)", "Error in line"},
			{"kept = 4\nx = 'x' * 900000000", "Error in line 2"},
			{"kept = 5\nwhile True: print('a' * 10000)", "aaaa"},
			{"x = list(range(50000000))", "Error in line 1"},
			{"re.search('(a*)*b', 'a' * 100000000)", "Error in line 1"},
			{"kept = 6\nx = re.findall('a(?:.*b)?', 'a' * 500000)", "Error: The process that ran the code ended"}, // no step limit stops it
			{"print(kept + 1)", "42"},
		}
		h := cells(t, func(n int) string { return hostile[n].source }, len(hostile))
		config := filepath.Join(h.dir, "config.toml")
		h.write(config, readText(t, config)+"[code]\ntime = \"2s\"\n")
		d := h.serve()
		p := h.dial("user")
		id := p.newCells(h)
		before := 0
		for n, c := range hostile {
			r := p.turn(id, fmt.Sprintf("cycle %d.", n))
			if r.State != protocol.TurnCompleted {
				t.Fatalf("%q ended the turn as %s: %+v", c.source, r.State, r.Issues)
			}
			if seen := p.observed(id); !strings.HasPrefix(seen, c.want) {
				t.Errorf("after %q the model read %.300q", c.source, seen)
			}
			if n == 0 {
				before = residentKiB(t, d.cmd.Process.Pid)
			}
		}
		eventually(t, "the memory of the daemon has returned to its start", func() error {
			if now := residentKiB(t, d.cmd.Process.Pid); now > before+32<<10 {
				return fmt.Errorf("%d KiB, %d KiB after the first cell", now, before)
			}
			return nil
		})
		d.stop()
	})
}

// residentKiB returns the memory of a process.
func residentKiB(t *testing.T, pid int) (kib int) {
	t.Helper()
	for line := range strings.SplitSeq(readText(t, fmt.Sprintf("/proc/%d/status", pid)), "\n") {
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kib); err == nil {
			return kib
		}
	}
	t.Fatal("no VmRSS")
	return 0
}
