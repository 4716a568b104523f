package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"lashd/rpc/protocol"
	"lashd/test/wait"
)

// twoCells returns the home of a daemon whose model writes a cell that makes three calls, then one that fails, and then a reply. The
// second call waits until the file "go" exists.
func twoCells(t *testing.T) *home {
	t.Helper()
	h := cells(t, func(int) string {
		return `first = tools.shell("echo one")
tools.shell("touch began; until [ -e go ]; do sleep 0.01; done")
gone = tools.read("gone.txt").ok
print("it was " + first.text[:3])
[1, gone]
</starlark>`
	}, 1)
	var script struct {
		Turns []struct {
			Match   json.RawMessage `json:"match"`
			Replies []scriptedReply `json:"replies"`
		} `json:"turns"`
	}
	path := filepath.Join(h.dir, "script.json")
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &script)
	}
	if err != nil {
		t.Fatal(err)
	}
	replies := &script.Turns[0].Replies
	*replies = []scriptedReply{(*replies)[0], {"<starlark>\nfor n in [1]:\n    oops(n)\n</starlark>\n"}, {"done"}}
	if text, err = json.Marshal(script); err != nil {
		t.Fatal(err)
	}
	h.write(path, string(text))
	return h
}

// began waits until the second call of twoCells runs.
func (h *home) began() {
	h.t.Helper()
	wait.Until(h.t, "the second call runs", func() bool {
		_, err := os.Stat(filepath.Join(h.work, "began"))
		return err == nil
	})
}

// goes lets the second call of twoCells end.
func (h *home) goes() {
	h.t.Helper()
	h.write(filepath.Join(h.work, "go"), "")
}

// durations matches the durations that people see.
var durations = regexp.MustCompile(`[0-9]+ ms|[0-9]+[.][0-9] s`)

// cellLines returns the lines of a text that show cells and their calls, with TIME in the place of durations.
func cellLines(text string) string {
	var lines strings.Builder
	for line := range strings.Lines(durations.ReplaceAllString(text, "TIME")) {
		if strings.HasPrefix(strings.TrimSpace(line), "[") {
			lines.WriteString(line)
		}
	}
	return lines.String()
}

func TestCellsAreShown(t *testing.T) {
	t.Run("issue/19-8 run prints cells, their calls with durations and their errors", func(t *testing.T) {
		h := twoCells(t)
		var out, notes bytes.Buffer
		cmd := h.command("run", "--driver", "rlm", "cycle 0.")
		cmd.Dir, cmd.Stdout, cmd.Stderr = h.work, &out, &notes
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		h.began()
		h.goes()
		if err := cmd.Wait(); err != nil || out.String() != "I run it.\ndone\n" {
			t.Errorf("run ended with %v and printed %q", err, out.String())
		}
		want := `[starlark first = tools.shell("echo one") tools.shell("touch began; until [ -e go ]; do sleep 0.01; done") gone = tools.read("gon…]
  [Ran echo one, TIME: one [Exit code 0.]]
  [Ran touch began; until [ -e go ]; do sleep 0.01; done, TIME: [Exit code 0.]]
  [Read gone.txt, TIME: failed: read gone.txt: file does not exist]
[starlark, TIME: it was one Value: [1,false]]
[starlark for n in [1]: oops(n)]
[starlark, TIME: failed: Error in line 2, column 5: undefined: oops (did you mean tools?) 2 | oops(n)]
`
		if got := cellLines(notes.String()); got != want {
			t.Errorf("stderr has\n%s\nwant\n%s", got, want)
		}
		cmd = h.command("session", "show", "--json")
		cmd.Dir = h.work
		text, err := cmd.Output()
		var shown struct{ Items []protocol.Item }
		if err == nil {
			err = json.Unmarshal(text, &shown)
		}
		var got []string
		for _, item := range shown.Items {
			if item.Cell != nil {
				for _, c := range item.Cell.Calls {
					got = append(got, fmt.Sprint(c.Index, " ", c.Tool, " ", c.Status))
				}
			}
		}
		if want := "1 shell completed,2 shell completed,3 read failed"; err != nil || strings.Join(got, ",") != want {
			t.Errorf("session show ends with %v and has the calls %q, want %s", err, got, want)
		}
	})
	t.Run("issue/19-8 a chat shows the calls of a cell while it runs, and then its result and the line of an error", func(t *testing.T) {
		h := twoCells(t)
		s := h.chat("--driver", "rlm")
		s.shows("idle")
		s.enters("cycle 0.")
		h.began()
		rows, next := uint16(40), time.Now()
		wait.Until(t, "a call has ended and another runs", func() bool {
			if time.Now().After(next) {
				rows, next = 81-rows, time.Now().Add(time.Second) // the chat draws everything again once the size rests
				if err := pty.Setsize(s.tty, &pty.Winsize{Rows: rows, Cols: 120}); err != nil {
					t.Fatal(err)
				}
			}
			return regexp.MustCompile(`▸starlark.*✓Ranechoone·[0-9]+ms▸Runningtouchbegan`).MatchString(s.letters())
		})
		h.goes()
		for _, text := range []string{
			"✓ starlark", `first = tools.shell("echo one")`, "[1, gone]", "✓ Ran echo one ·", "✓ Ran touch began; until [ -e go ]; do sleep 0.01; done ·",
			"✗ Read gone.txt ·", "it was one", "Value: [1,false]", "changed: first, gone",
			"✗ starlark", "for n in [1]:", "→     oops(n)", "Error in line 2, column 5: undefined: oops (did you mean tools?)", "done",
		} {
			s.shows(text)
		}
		s.enters("/quit")
		s.leaves()
		p := h.dial("after")
		id := ask[protocol.SessionListResult](p, "session/list", protocol.SessionListParams{}).Data[0].ID
		if seen := p.observed(id); !strings.Contains(seen, "undefined: oops") {
			t.Errorf("the model read %q", seen)
		}
	})
}
