package chat

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// accepted handles the event that a turn was accepted. It returns the input of a
// turn that starts at once. The event of a queued turn is kept until the turn
// starts. Several inputs of one turn are returned by began instead, each as its
// own entry.
func (t *transcript) accepted(e protocol.Event) []entry {
	switch {
	case t.turn != "" && t.turn != e.TurnID:
		t.later[e.TurnID] = append(t.later[e.TurnID], e)
	case len(e.Causes) > 0:
		return nil // the items of the wakes show them
	case len(e.InputIDs) < 2:
		return t.input(e.TurnID, e.Input)
	}
	return nil
}

// began handles the start of a turn. It returns the inputs of the turn in the
// order in which the model reads them.
func (t *transcript) began(turn protocol.TurnID) (out []entry) {
	t.turn, t.doing, t.refused = turn, "the model", nil
	out = t.give(turn, t.starting, func(q protocol.QueuedInput) bool { return q.TurnID == turn })
	t.starting = nil
	for _, e := range t.later[turn] {
		out = append(out, t.accepted(e)...)
	}
	delete(t.later, turn)
	return out
}

// steers reports whether a queued input waits for a checkpoint of the running
// turn, rather than for a turn of its own.
func steers(q protocol.QueuedInput) bool { return q.State == protocol.InputPendingActive }

// requeued replaces the queue. The inputs of a turn leave the queue together just
// before the turn starts; requeued moves them to t.starting, where began finds
// them.
func (t *transcript) requeued(queue []protocol.QueuedInput) {
	t.starting = append(t.starting, slices.DeleteFunc(t.queue, func(old protocol.QueuedInput) bool {
		return steers(old) || slices.ContainsFunc(queue, func(q protocol.QueuedInput) bool { return q.TurnID == old.TurnID })
	})...)
	t.queue = slices.Clone(queue)
}

// entered returns the inputs that the running turn has read at a checkpoint.
func (t *transcript) entered(e protocol.Event) []entry {
	out := t.give(e.TurnID, t.queue, func(q protocol.QueuedInput) bool { return slices.Contains(e.InputIDs, q.ID) })
	return append(out, t.input(e.TurnID, e.Input)...)
}

// give returns the entries of those inputs that match. Wakes are skipped: the item
// of a wake shows it.
func (t *transcript) give(turn protocol.TurnID, inputs []protocol.QueuedInput, which func(protocol.QueuedInput) bool) (out []entry) {
	for _, q := range inputs {
		if which(q) && q.Wake == nil {
			out = append(out, t.input(turn, q.Input)...)
		}
	}
	return out
}

// input returns the entry of an input, unless the entry of an equal input of the
// turn was returned before. Inputs are shown before their items arrive, so that
// the user sees them at once.
func (t *transcript) input(turn protocol.TurnID, parts []protocol.InputPart) []entry {
	text := inputText(parts)
	if text == "" || slices.Contains(t.said[turn], text) {
		return nil
	}
	t.said[turn] = append(t.said[turn], text)
	return []entry{{item: &protocol.Item{Kind: protocol.ItemUserMessage, Text: text}}}
}

// inputText returns the text parts of an input, one per line.
func inputText(parts []protocol.InputPart) string {
	var texts []string
	for _, p := range parts {
		if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// turnEnded handles the end of a turn. It returns a note unless the turn finished.
// A queued turn that was withdrawn has a note with its input. If another turn
// follows at once, the session stays busy.
func (t *transcript) turnEnded(e protocol.Event) (out []entry) {
	delete(t.said, e.TurnID)
	if waited := t.waited(e.TurnID); waited != "" && e.Outcome != nil {
		if t.withdrawn[e.TurnID] {
			return nil // the prompt shows it
		}
		return []entry{{note: "Not started: " + waited + " (" + cmp.Or(reason(e.Outcome), string(e.Outcome.Kind)) + ")"}}
	}
	if e.TurnID == t.turn || t.turn == "" {
		t.turn, t.open, t.doing = "", nil, ""
	}
	if e.Total != nil {
		t.total = *e.Total
	}
	if e.Follower != "" {
		t.turn = e.Follower
		return nil
	}
	if o := e.Outcome; o != nil && !o.Finished() {
		out = append(out, entry{note: stopped(o)})
		if slices.ContainsFunc(e.Issues, func(i protocol.Issue) bool { return i.Auth }) {
			out = append(out, entry{note: t.wayToKey()})
		}
	}
	return out
}

// wayToKey says how to store another key for the session's model. A provider without a name of its own, which is
// shown by its address, takes its key from elsewhere.
func (t *transcript) wayToKey() string {
	owner := t.session.Config.Model.Provider
	if owner == "" || strings.Contains(owner, "/") {
		return "/login stores an API key of a provider; /model uses another model."
	}
	return "/login " + termtext.OneLine(owner, 40) + " stores another API key. Then send your message again."
}

// waited returns the input of a queued turn that ended before it started, or "" if
// the turn had started.
func (t *transcript) waited(turn protocol.TurnID) string {
	delete(t.later, turn)
	i := slices.IndexFunc(t.queue, func(q protocol.QueuedInput) bool { return q.TurnID == turn && !steers(q) })
	if i < 0 {
		return ""
	}
	return inputText(t.queue[i].Input)
}

// stopped describes the end of a turn that did not finish, such as "Stopped." for
// one that the user stopped.
func stopped(o *protocol.TurnOutcome) string {
	if o.Kind != protocol.OutcomeCancelled {
		return Failed("Turn failed", o, "")
	}
	if why := reason(o); why != "" && why != stopReason {
		return "Stopped: " + why
	}
	return "Stopped."
}

// Failed describes the outcome of a turn that did not finish: what failed, why,
// and the kind of the outcome. fallback is the reason if the outcome has none.
func Failed(what string, o *protocol.TurnOutcome, fallback string) string {
	if why := cmp.Or(reason(o), fallback); why != "" {
		what += ": " + why
	}
	return fmt.Sprintf("%s (%s)", what, o.Kind)
}

// reason returns why a turn did not finish, or "" if the outcome has no text.
func reason(o *protocol.TurnOutcome) string {
	if o.Text == "" && o.Cancel != nil {
		return o.Cancel.Reason
	}
	return o.Text
}
