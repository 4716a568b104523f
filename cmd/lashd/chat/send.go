package chat

import (
	"errors"

	tea "charm.land/bubbletea/v2"

	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// outgoing is a request that the chat repeats until the daemon answers. Its params
// have an idempotency key, so that the daemon executes it once, even if the first
// answer was lost.
type outgoing struct {
	method string
	params any
	result any                    // filled with the result; nil to ignore it
	text   string                 // goes back into the editor if the daemon rejects the request
	done   func() tea.Msg         // runs after success; may be nil
	files  []*protocol.Attachment // are attached again if the daemon rejects the request
}

// sentMsg is the answer to a request.
type sentMsg struct {
	of  *outgoing
	err error
}

// ask sends a request and keeps it in u.unsent until it is answered. Without a
// connection it is sent after the next Open, in the order in which the user
// entered it.
func (u *ui) ask(o *outgoing) tea.Cmd {
	u.unsent = append(u.unsent, o)
	if !u.connected {
		return nil
	}
	return u.send(o)
}

// send returns a command that calls the daemon once.
func (u *ui) send(o *outgoing) tea.Cmd {
	return func() tea.Msg { return sentMsg{o, u.session.Call(u.ctx, o.method, o.params, o.result)} }
}

// sent handles the answer to a request. A rejected request shows the error, and
// its text goes back into the editor if that is empty. After ErrGone the request
// stays in u.unsent.
func (u *ui) sent(m sentMsg) tea.Cmd {
	if errors.Is(m.err, ErrGone) {
		return nil // opened sends it again
	}
	for i, o := range u.unsent {
		if o == m.of {
			u.unsent = append(u.unsent[:i:i], u.unsent[i+1:]...)
			break
		}
	}
	switch {
	case m.err != nil:
		if len(u.files) == 0 {
			u.files = m.of.files
		}
		if m.of.text != "" && u.in.value() == "" {
			u.in.set(again(m.of.text))
		}
		return u.println(bad.Render("✗ ") + entry{note: m.err.Error()}.shown(u.width))
	case m.of.done != nil:
		return m.of.done
	}
	return nil
}

// input sends text to the session. busy decides whether it steers a running turn
// or waits for its own. The first input of a session without a title also becomes
// its title.
func (u *ui) input(text string, busy protocol.WhenBusy) tea.Cmd {
	first := !u.used && u.talk.session.TurnIndex == 0 && u.talk.session.Title == ""
	u.used = true
	sent := u.start(text, busy)
	if !first {
		return sent
	}
	return tea.Batch(sent, u.title(termtext.OneLine(text, titleWidth)))
}

// titleWidth is the maximum length of a title in characters. lashd run uses the
// same length.
const titleWidth = 60

// start sends text and the attached files as an input. busy says what happens if a turn is running.
func (u *ui) start(text string, busy protocol.WhenBusy) tea.Cmd {
	files := u.files
	u.files = nil
	return u.ask(&outgoing{method: "turn/start", text: text, files: files, params: protocol.TurnStartParams{
		Mutation: key(), SessionID: u.talk.session.ID, WhenBusy: busy, Input: parts(text, files),
	}})
}

// key returns a new idempotency key.
func key() protocol.Mutation {
	return protocol.Mutation{IdempotencyKey: string(protocol.NewInputID())}
}

// respond answers a decision. text is the answer if choice is ChooseAnswer. The
// hash of the arguments makes sure that the answer counts only for the call that
// was shown.
func (u *ui) respond(d *protocol.Decision, choice protocol.DecisionChoice, text string) tea.Cmd {
	p := protocol.DecisionRespondParams{Mutation: key(), DecisionID: d.ID, Choice: choice, ArgsHash: d.ArgsHash}
	if choice == protocol.ChooseAnswer {
		p.Value = answer(d.Form, text)
	}
	return u.ask(&outgoing{method: "decision/respond", text: text, params: p})
}

// stopReason is the reason that the chat gives when it interrupts a turn.
const stopReason = "stopped by the user"

// interrupt stops the running turn.
func (u *ui) interrupt() tea.Cmd {
	return u.ask(&outgoing{method: "turn/interrupt", params: protocol.TurnInterruptParams{Mutation: key(), TurnID: u.talk.turn, Reason: stopReason}})
}
