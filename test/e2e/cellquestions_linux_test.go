package e2e

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lashd/rpc/protocol"
)

// TestCellQuestionsSurviveSIGKILL kills the daemon while a person is asked about a call that a cell makes.
func TestCellQuestionsSurviveSIGKILL(t *testing.T) {
	for _, c := range []struct {
		name   string
		choice protocol.DecisionChoice
		want   string // what the model reads
		ran    string
	}{
		{"runtime/R10 a cell whose question was open at SIGKILL makes its call once, after the answer", protocol.ChooseAllowOnce, "7 True\nNone", "once\n"},
		{"runtime/R10 a cell whose question was open at SIGKILL reads that a person rejected its call", protocol.ChooseReject, `7 False
struct(code = "denied", kind = "permissionDenied", message = "tools.shell failed: The call was not allowed: the approval request was denied.")`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := cells(t, func(int) string {
				return "kept = 7\nr = tools.shell('echo once >> ran')\nprint(kept, r.ok)\nprint(r.error)"
			}, 1)
			config := filepath.Join(h.dir, "config.toml")
			h.write(config, strings.Replace(readText(t, config), `"allow"`, `"ask"`, 1))
			d := h.serve()
			p := h.dial("first")
			id := p.newCells(h)
			p.attach(id, 0)
			turn := p.start(id, "cycle 0.").TurnID
			asked := p.event("the question", opened).Decision
			d.kill()
			d = h.serve()
			p = h.dial("second")
			p.attach(id, 0)
			open := ask[protocol.DecisionListResult](p, "decision/list", protocol.DecisionListParams{SessionID: id}).Data
			if len(open) != 1 || open[0].ID != asked.ID || open[0].ArgsHash != asked.ArgsHash {
				t.Fatalf("after the restart the open questions are %+v, before it there was %+v", open, asked)
			}
			ask[protocol.DecisionRespondResult](p, "decision/respond", protocol.DecisionRespondParams{DecisionID: asked.ID, Choice: c.choice, ArgsHash: asked.ArgsHash})
			if r := p.wait(turn); r.State != protocol.TurnCompleted || r.Outcome.Text != "done" {
				t.Fatalf("the turn ended as %s: %+v", r.State, r.Issues)
			}
			if seen := p.observed(id); seen != c.want {
				t.Errorf("the model read %q", seen)
			}
			if ran, err := os.ReadFile(filepath.Join(h.work, "ran")); string(ran) != c.ran || err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the command wrote %q, %v", ran, err)
			}
			if out := h.lashd("session", "show", string(id)); !strings.Contains(out, "rlm (code cells in starlark)\n") {
				t.Errorf("runtime/S06 session show prints %s", out)
			}
			d.stop()
		})
	}
}
