package chat

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"lashd/rpc/protocol"
)

// planned is a plan of n steps with the first done of them completed and the next in progress.
func planned(done, n int) (p plan) {
	for i := range n {
		s := planStep{Text: "step " + string(rune('a'+i)), Status: "pending"}
		if i < done {
			s.Status = stepDone
		} else if i == done {
			s.Status = stepNow
		}
		p = append(p, s)
	}
	return p
}

func TestPlanLines(t *testing.T) {
	for _, c := range []struct {
		name    string
		plan    plan
		room    int
		working bool
		want    string
	}{
		{"a short plan has a line for each step", planned(1, 3), 8, true, "  ✓ step a|  ▸ step b|  · step c"},
		{"a long one is folded", planned(1, 9), 20, true, "  plan: 1 of 9 done, now: step b, next: step c"},
		{"one without room is folded", planned(1, 3), 2, true, "  plan: 1 of 3 done, now: step b, next: step c"},
		{"nobody works on it", planned(1, 3), 8, false, "  plan: 1 of 3 done, next: step b"},
		{"it is done", planned(3, 3), 8, true, ""},
		{"there is none", nil, 8, true, ""},
		{"there is no room", planned(1, 3), 0, true, ""},
	} {
		if got := ansi.Strip(strings.Join(c.plan.lines(60, c.room, c.working), "|")); got != c.want {
			t.Errorf("issue/21-2 plan: %s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestPlanFollowsEvents(t *testing.T) {
	tr := newTranscript()
	tr.apply(protocol.Event{Type: protocol.EventPluginCustom, Plugin: planID, Name: planID, Body: []byte(`{"steps":[{"text":"look","status":"inProgress"}]}`)})
	tr.apply(protocol.Event{Type: protocol.EventPluginCustom, Plugin: "other", Name: planID, Body: []byte(`{"steps":[]}`)})
	if len(tr.plan) != 1 || tr.plan[0] != (planStep{"look", stepNow}) {
		t.Errorf("issue/21-2 plan: it is %v", tr.plan)
	}
}

func TestTaskLine(t *testing.T) {
	began := func(ago time.Duration) int64 { return time.Now().Add(-ago).UnixMilli() }
	tr := newTranscript()
	for _, task := range []protocol.Task{
		{ID: "tsk_1", Spec: protocol.TaskSpec{Command: &protocol.TaskShell{Script: "npm run dev"}}},
		{ID: "tsk_2", StartedAtMs: began(4 * time.Second), Spec: protocol.TaskSpec{Label: "tests", Command: &protocol.TaskShell{Script: "go test"}}},
		{ID: "tsk_3", StartedAtMs: began(time.Hour), Spec: protocol.TaskSpec{Kind: protocol.TaskSubagent}},
	} {
		tr.apply(protocol.Event{Type: protocol.EventTaskStarted, Task: &task})
	}
	tr.apply(protocol.Event{Type: protocol.EventTaskChanged, Task: &protocol.Task{ID: "tsk_1", StartedAtMs: began(192 * time.Second), Spec: tr.tasks[0].Spec}})
	if got := ansi.Strip(strings.Join(taskLine(tr.tasks, 80, 5), "|")); got != "  3 running: npm run dev 3:12, tests 0:04, subagent 1:00:00" {
		t.Errorf("issue/21-2 tasks: %q", got)
	}
	if got := taskLine(tr.tasks, 40, 5); len(got) != 1 || ansi.StringWidth(got[0]) > 40 {
		t.Errorf("issue/21-2 tasks: on 40 columns %q", got)
	}
	for _, id := range []protocol.TaskID{"tsk_1", "tsk_2", "tsk_3"} {
		tr.apply(protocol.Event{Type: protocol.EventTaskCompleted, Task: &protocol.Task{ID: id}})
	}
	if got := taskLine(tr.tasks, 80, 5); got != nil {
		t.Errorf("issue/21-2 tasks: without any %q", got)
	}
}
