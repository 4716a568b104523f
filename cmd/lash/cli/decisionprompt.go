package cli

import (
	"bufio"
	"context"
	"os"
	"slices"
	"strings"

	"lashd/cmd/internal/console"
	"lashd/cmd/lash/chat"
	"lashd/rpc/protocol"
)

// asker asks the user at the terminal about open decisions, one at a time. It
// belongs to the goroutine of its turnRun. Other clients may answer as well: the
// first answer counts, and the question disappears here.
type asker struct {
	person bool                    // stdin and stderr are terminals
	open   []*protocol.Decision    // in the order in which they opened; the first is on the screen
	denied string                  // the tool of a denied call of a subagent
	lines  chan string             // lines of stdin; closed at its end; nil until the first question
	step   askStep                 // what the next line means
	choice protocol.DecisionChoice // of stepWidth
}

// newAsker returns an asker for the terminal, if there is one.
func newAsker() *asker {
	return &asker{person: console.Terminal(os.Stdin) && console.Terminal(os.Stderr)}
}

// opened asks about a decision of the turn or of a subagent. Without a terminal it
// answers with the default of the decision at once. Decisions that it has already,
// as after a reconnect, are ignored.
func (a *asker) opened(ctx context.Context, t *turnRun, d *protocol.Decision) {
	known := slices.ContainsFunc(a.open, func(o *protocol.Decision) bool { return o.ID == d.ID })
	if d.TurnID != t.turn && !t.below(d) || d.Answer != nil || known {
		return
	}
	if d.Kind == protocol.DecisionCompletion { // another program answers it
		t.view.waits(d)
		return
	}
	a.open = append(a.open, d)
	if len(a.open) == 1 {
		a.prompt(ctx, t)
	}
}

// resolved removes a decision that any client has answered, and shows the next
// one. It remembers a denied call of a subagent for the exit code.
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

// prompt shows the first open decision with all the arguments of its call, or
// answers it for --allow or without a terminal.
func (a *asker) prompt(ctx context.Context, t *turnRun) {
	d := a.open[0]
	a.step = stepChoice
	switch {
	case t.command.Allow && slices.Contains(d.Choices, protocol.ChooseAllowOnce):
		a.answer(ctx, t, d, protocol.DecisionRespondParams{Choice: protocol.ChooseAllowOnce})
		return
	case !a.person:
		p := protocol.DecisionRespondParams{Choice: d.Default}
		if d.Kind == protocol.DecisionApproval && d.Default == protocol.ChooseReject {
			p.Reason = noTerminal
		}
		a.answer(ctx, t, d, p)
		return
	}
	a.listen()
	text := chat.Question(d, &t.about) + "\n" + console.WrappedBetween(chat.Offers(d), "   ", console.Columns(os.Stderr)) + "\n"
	if left := chat.Until(d); left != "" {
		text += left + "\n"
	}
	t.view.question(text + "> ")
	t.view.counts(d)
}

// noTerminal is the reason of an answer that no person gave.
const noTerminal = "lash run has no terminal on which it could ask, so it denied the call"

// listen starts the goroutine that reads stdin, unless it runs.
func (a *asker) listen() {
	if a.lines == nil {
		a.lines = make(chan string)
		go a.readLines()
	}
}

// readLines sends the lines of stdin to a.lines until stdin ends. The goroutine
// may stay blocked in a read until the process exits.
func (a *asker) readLines() {
	defer close(a.lines)
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		a.lines <- strings.TrimSpace(in.Text())
	}
}

// answer sends an answer. If another client answers first, its answer counts; the
// event decision/resolved reports it. The call has the hash of the arguments that
// were shown.
func (a *asker) answer(ctx context.Context, t *turnRun, d *protocol.Decision, p protocol.DecisionRespondParams) {
	p.DecisionID, p.ArgsHash = d.ID, d.ArgsHash
	if err := t.call(ctx, "decision/respond", p, nil); err != nil {
		t.view.note("the answer was not stored: " + console.Explain(err))
	}
}
