package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"lashd/cmd/lash/chat"
	"lashd/rpc/protocol"
)

// askStep is what the next line of stdin means while a decision is on the screen.
type askStep int

const (
	stepChoice askStep = iota // a letter or a word
	stepWidth                 // the number of what the answer covers
	stepEdit                  // the command or the arguments to run instead
	stepReason                // why the call is denied
)

// entered handles a line of stdin for the decision on the screen. Some answers need a
// second line. more is false at the end of stdin; from then on there is no person to
// ask. A line without a question is dropped.
func (a *asker) entered(ctx context.Context, t *turnRun, line string, more bool) {
	if !more {
		a.lines, a.person = nil, false
	}
	if len(a.open) == 0 {
		return
	}
	d := a.open[0]
	t.view.counted = nil // the cursor is below the line of the answer
	switch {
	case !more:
		a.answer(ctx, t, d, protocol.DecisionRespondParams{Choice: d.Default})
	case a.step == stepChoice:
		a.chose(ctx, t, d, line)
	default:
		a.completed(ctx, t, d, line)
	}
}

// chose handles the first line of an answer. An unknown answer rejects.
func (a *asker) chose(ctx context.Context, t *turnRun, d *protocol.Decision, line string) {
	choice := choose(d, line)
	hunks, some := hunksIn(d, line)
	approval := d.Kind == protocol.DecisionApproval && slices.Contains(d.Choices, protocol.ChooseReject)
	switch {
	case some:
		a.answer(ctx, t, d, protocol.DecisionRespondParams{Choice: protocol.ChooseAllowOnce, Hunks: hunks})
	case approval && (line == "r" || line == "N"):
		a.next(t, stepReason, "  The agent reads the reason.\nreason> ")
	case line == "e" && chat.Editable(d):
		a.next(t, stepEdit, "  Enter what to run instead; an empty line returns to the question.\n$ ")
	case chat.Lasting(choice) && len(chat.Widths(d)) > 1:
		a.choice = choice
		a.next(t, stepWidth, widthList(d, choice))
	default:
		a.answer(ctx, t, d, protocol.DecisionRespondParams{Choice: choice})
	}
}

// choose returns the choice that a line stands for. An unknown answer rejects.
func choose(d *protocol.Decision, line string) protocol.DecisionChoice {
	choice := chat.Chosen(d, line)
	switch {
	case choice != "":
		return choice
	case slices.Contains(d.Choices, protocol.ChooseReject):
		return protocol.ChooseReject
	}
	return d.Default
}

// hunksIn reads an answer such as "y 1 3", which takes only these changes.
func hunksIn(d *protocol.Decision, line string) (all []int, ok bool) {
	words := strings.Fields(strings.ReplaceAll(line, ",", " "))
	if len(words) < 2 || strings.ToLower(words[0]) != "y" || chat.Hunks(d) == 0 {
		return nil, false
	}
	for _, word := range words[1:] {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > chat.Hunks(d) || slices.Contains(all, n-1) {
			return nil, false
		}
		all = append(all, n-1)
	}
	return all, true
}

// widthList asks what an answer covers.
func widthList(d *protocol.Decision, choice protocol.DecisionChoice) string {
	lines := []string{"  " + chat.WidthTitle(choice)}
	for i, w := range chat.Widths(d) {
		lines = append(lines, fmt.Sprintf("  %d %s", i+1, w.Text))
	}
	return strings.Join(lines, "\n") + "\nnumber (Enter takes 1)> "
}

// next asks for the second line of an answer.
func (a *asker) next(t *turnRun, step askStep, ask string) {
	a.step = step
	t.view.question(ask)
}

// completed handles the second line of an answer. A line that is no answer returns to
// the question.
func (a *asker) completed(ctx context.Context, t *turnRun, d *protocol.Decision, line string) {
	step, p := a.step, protocol.DecisionRespondParams{Choice: protocol.ChooseAllowOnce}
	a.step = stepChoice
	switch all := chat.Widths(d); step {
	case stepReason:
		p.Choice, p.Reason = protocol.ChooseReject, line
	case stepWidth:
		n := 1
		if line != "" {
			n, _ = strconv.Atoi(line) // 0 is no number of a width
		}
		if n < 1 || n > len(all) {
			a.prompt(ctx, t)
			return
		}
		p.Choice, p.Width = a.choice, all[n-1].Index
	case stepEdit:
		if p.Args = edited(d, line); p.Args == nil {
			a.prompt(ctx, t)
			return
		}
	}
	a.answer(ctx, t, d, p)
}

// edited returns the arguments that a line stands for: a command, or else JSON. It
// returns nil if the line is neither.
func edited(d *protocol.Decision, line string) json.RawMessage {
	switch {
	case line == "":
		return nil
	case d.Detail.Command != nil:
		return chat.WithCommand(d.Call.Args, line)
	case json.Valid([]byte(line)):
		return json.RawMessage(line)
	}
	return nil
}
