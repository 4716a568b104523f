package cli

import (
	"bufio"
	"context"
	"os"
	"slices"
	"strings"

	"lashd/cmd/lashd/chat"
	"lashd/rpc/protocol"
)

// asker puts open decisions to the person at the terminal, one after another.
type asker struct {
	person bool // somebody is there
	open   []*protocol.Decision
	denied string      // a call of a session below that was not allowed
	lines  chan string // what the person enters; closed at the end of stdin
}

func newAsker() *asker { return &asker{person: terminal(os.Stdin) && terminal(os.Stderr)} }

// opened asks about a decision of the turn, or of a session that works for this one. If nobody is there, its default holds at once.
func (a *asker) opened(ctx context.Context, t *turnRun, d *protocol.Decision) {
	known := slices.ContainsFunc(a.open, func(o *protocol.Decision) bool { return o.ID == d.ID })
	if d.TurnID != t.turn && !t.below(d) || d.Answer != nil || known {
		return
	}
	if d.Kind == protocol.DecisionCompletion { // no person is asked
		t.view.waits(d)
		return
	}
	a.open = append(a.open, d)
	if len(a.open) == 1 {
		a.prompt(ctx, t)
	}
}

// resolved forgets a decision, whoever answered it.
func (a *asker) resolved(ctx context.Context, t *turnRun, d *protocol.Decision) {
	i := slices.IndexFunc(a.open, func(o *protocol.Decision) bool { return o.ID == d.ID })
	if i < 0 {
		return
	}
	a.open = slices.Delete(a.open, i, i+1)
	t.view.answered(d)
	if t.below(d) && d.Call != nil && d.Answer != nil && d.Answer.Choice == protocol.ChooseReject {
		a.denied = d.Call.Name
	}
	if i == 0 && len(a.open) > 0 {
		a.prompt(ctx, t)
	}
}

// prompt shows the first of the open decisions. The person must see all of what is to be allowed.
func (a *asker) prompt(ctx context.Context, t *turnRun) {
	d := a.open[0]
	switch {
	case t.command.Allow && slices.Contains(d.Choices, protocol.ChooseAllowOnce):
		a.answer(ctx, t, d, protocol.ChooseAllowOnce)
		return
	case !a.person:
		a.answer(ctx, t, d, d.Default)
		return
	}
	if a.lines == nil {
		a.lines = make(chan string)
		go a.readLines()
	}
	t.view.question(chat.Question(d) + "\n" + strings.Join(chat.Offers(d), "\n") + "\n> ")
}

func (a *asker) readLines() {
	defer close(a.lines)
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		a.lines <- strings.TrimSpace(in.Text())
	}
}

// entered takes a line as the answer to the decision that is shown.
func (a *asker) entered(ctx context.Context, t *turnRun, line string, more bool) {
	if !more {
		a.lines, a.person = nil, false
	}
	if len(a.open) > 0 {
		a.answer(ctx, t, a.open[0], choose(a.open[0], line, more))
	}
}

// choose is what a line means. What is not understood allows nothing.
func choose(d *protocol.Decision, line string, more bool) protocol.DecisionChoice {
	choice := chat.Chosen(d, line)
	switch {
	case !more:
		return d.Default
	case choice != "":
		return choice
	case slices.Contains(d.Choices, protocol.ChooseReject):
		return protocol.ChooseReject
	}
	return d.Default
}

// answer responds; the event that follows tells which answer counts.
func (a *asker) answer(ctx context.Context, t *turnRun, d *protocol.Decision, choice protocol.DecisionChoice) {
	p := protocol.DecisionRespondParams{DecisionID: d.ID, Choice: choice, ArgsHash: d.ArgsHash}
	if err := t.call(ctx, "decision/respond", p, nil); err != nil {
		t.view.note("the answer was not stored: " + explain(err))
	}
}
