package chat

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"lashd/cmd/lash/prompt"
	"lashd/rpc/protocol"
)

// writing is what the user writes, and what helps with it.
type writing struct {
	in      prompt.Editor
	suggest suggest                           // completes what is in the prompt
	entered prompt.Draft                      // the line that Enter took last, while its command runs
	drafts  map[protocol.InputID]prompt.Draft // lines that became inputs of the session, as they were typed
	search  *search                           // gets the key presses while it is open; nil: it is not
	earlier earlier                           // where the inputs of other sessions come from
	escaped bool                              // the last key was Esc in the empty prompt; another one opens the list of turns
	taking  protocol.InputID                  // the queued input that returns to the prompt; "": none does
}

// enter handles the Enter key. A backslash before the cursor makes it a newline.
// Otherwise the input is a command, the answer to the open decision, or an input for
// the session, in this order. A message to the agent is possible while a decision is
// open, unless the decision accepts text.
func (u *ui) enter() tea.Cmd {
	if u.in.Continue() {
		return nil
	}
	u.entered = u.in.Take()
	text, literal := u.entered.Text(), u.entered.BeginsWithBlock()
	if escaped, ok := strings.CutPrefix(text, "//"); ok && !literal { // "//" escapes an input that begins with a slash
		text, literal = "/"+escaped, true
	}
	d := u.talk.asked()
	if u.card.mode == cardWriting {
		u.card.mode = cardChoosing
	}
	if cmd, ok := u.reader.chose(u, text); ok {
		return cmd
	}
	switch {
	case text == "":
		return nil
	case strings.HasPrefix(text, "/") && !literal:
		return u.command(text)
	case u.talk.session.ID == "":
		u.in.SetDraft(u.entered) // the session is not open yet
		if u.lacking {
			return u.tryAgain() // there may be a model now
		}
		return nil
	case d != nil && Chosen(d, text) != "": // only a whole line counts: the user may be typing when the decision opens
		return u.question().chosen(Chosen(d, text))
	case d != nil && slices.Contains(d.Choices, protocol.ChooseAnswer):
		if len(u.entered.Files()) > 0 {
			u.in.SetDraft(u.entered)
			return say("An answer has no files. Delete their labels, and send them in a message later.")
		}
		return u.respond(d, protocol.DecisionRespondParams{Choice: protocol.ChooseAnswer, Value: answer(d.Form, text)}, u.entered)
	}
	return u.input(text, protocol.BusySteer)
}
