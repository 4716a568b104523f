package chat

import (
	"encoding/json"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// plan is the plan of the agent, which it keeps with update_plan.
type plan []planStep

// planStep is a step of a plan.
type planStep struct {
	Text   string     `json:"text"`
	Status stepStatus `json:"status"`
}

// stepStatus is the status of a step: pending, inProgress or completed.
type stepStatus string

const (
	stepNow  stepStatus = "inProgress"
	stepDone stepStatus = "completed"
)

// planID is the id of the plugin that keeps the plan, and the name of its operation and of
// its event.
const planID = "plan"

// planTool is the tool that changes the plan.
const planTool = "update_plan"

// planOf reads a plan. A plan that cannot be read has no steps.
func planOf(raw json.RawMessage) plan {
	var body struct{ Steps plan }
	_ = json.Unmarshal(raw, &body) // another plugin may have the name
	return body.Steps
}

// planIn returns the plan that a call writes; nil: the call is another one.
func planIn(item *protocol.Item) plan {
	if item.Tool != planTool {
		return nil
	}
	return planOf(item.Args)
}

// applied returns the plan after an event of a plugin.
func (p plan) applied(e protocol.Event) plan {
	if e.Plugin != planID || e.Name != planID {
		return p
	}
	return planOf(e.Body)
}

// readPlan returns a command that reads the plan of a session that was opened. A
// session without the plugin has none.
func readPlan(u *ui) tea.Cmd {
	p := protocol.OperationQueryParams{SessionID: u.talk.session.ID, Name: planID}
	return func() tea.Msg {
		var r protocol.OperationQueryResult
		if u.session.Call(u.ctx, "operation/query", p, &r) != nil {
			return nil
		}
		return planOf(r.Output)
	}
}

// done returns the number of completed steps, and the index of the step in progress or,
// without one, of the first that is left.
func (p plan) done() (n, now int) {
	now = -1
	for i, s := range p {
		if s.Status == stepDone {
			n++
		} else if now < 0 || s.Status == stepNow && p[now].Status != stepNow {
			now = i
		}
	}
	return n, now
}

// summary describes a plan on one line, such as "1 of 3 done, now: run the tests". If
// no turn works on it, it says what is next.
func (p plan) summary(working bool) string {
	n, now := p.done()
	text := fmt.Sprintf("%d of %d done", n, len(p))
	if now < 0 {
		return text
	}
	verb := "next"
	if working && p[now].Status == stepNow {
		verb = "now"
	}
	text += ", " + verb + ": " + termtext.OneLine(p[now].Text, 200)
	if next := p.after(now); verb == "now" && next >= 0 {
		text += ", next: " + termtext.OneLine(p[next].Text, 200)
	}
	return text
}

// after returns the index of the first step below another one that is left, or -1.
func (p plan) after(at int) int {
	for i := at + 1; i < len(p); i++ {
		if p[i].Status != stepDone {
			return i
		}
	}
	return -1
}

// planSteps is the largest number of steps that have a line each.
const planSteps = 5

// lines renders the plan for the live area: while the agent works on a short one a line
// for each step, else one line. A plan that is done needs none.
func (p plan) lines(width, room int, working bool) (lines []string) {
	_, now := p.done()
	switch {
	case now < 0 || room < 1:
		return nil
	case !working || len(p) > planSteps || len(p) > room:
		return []string{faint.Render("  " + termtext.OneLine("plan: "+p.summary(working), max(width-3, 20)))}
	}
	for _, s := range p {
		lines = append(lines, s.line(max(width-5, 20)))
	}
	return lines
}

// line renders a step.
func (s planStep) line(width int) string {
	text := termtext.OneLine(s.Text, width)
	switch s.Status {
	case stepDone:
		return good.Render("  ✓ ") + faint.Render(text)
	case stepNow:
		return asking.Render("  ▸ ") + text
	}
	return faint.Render("  · " + strings.TrimSpace(text))
}
