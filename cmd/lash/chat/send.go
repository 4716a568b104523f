package chat

import (
	"errors"
	"slices"

	tea "charm.land/bubbletea/v2"

	"lashd/cmd/lash/prompt"
	"lashd/internal/mcpinput"
	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// outgoing is a request that the chat repeats until the daemon answers. Its params
// have an idempotency key, so that the daemon executes it once, even if the first
// answer was lost.
type outgoing struct {
	method string
	params any
	result any            // filled with the result; nil to ignore it
	draft  prompt.Draft   // returns to the prompt if the daemon rejects the request
	done   func() tea.Msg // runs after success; may be nil
	tried  bool           // it was sent at least once; the daemon may have it

	mentions bool // it is a turn/start whose text may mention resources; they are found before it is sent
}

// sentMsg is the answer to a request.
type sentMsg struct {
	of  *outgoing
	err error
}

// ask sends a request and keeps it in u.unsent until it is answered. Without a
// connection it is sent after the next Open, in the order in which the user
// entered it. An input also waits for the resources of the inputs before it.
func (u *ui) ask(o *outgoing) tea.Cmd {
	u.unsent = append(u.unsent, o)
	if !u.connected || !slices.Contains(sendable(u), o) {
		return nil
	}
	return u.send(o)
}

// sendable returns the requests without an answer, apart from inputs behind one whose resources are not known yet.
func sendable(u *ui) (all []*outgoing) {
	waits := false
	for _, o := range u.unsent {
		if o.method != "turn/start" || !waits {
			all = append(all, o)
		}
		waits = waits || o.mentions
	}
	return all
}

// sendInputs returns a command that sends the inputs that were not sent yet.
func sendInputs(u *ui) tea.Cmd {
	var all []tea.Cmd
	for _, o := range sendable(u) {
		if u.connected && o.method == "turn/start" && !o.tried {
			all = append(all, u.send(o))
		}
	}
	return tea.Batch(all...)
}

// send returns a command that calls the daemon once.
func (u *ui) send(o *outgoing) tea.Cmd {
	if o.mentions {
		return findSources(u, o)
	}
	o.tried = true
	return func() tea.Msg { return sentMsg{o, u.session.Call(u.ctx, o.method, o.params, o.result)} }
}

// sent handles the answer to a request. A rejected request shows the error, and
// its draft returns to the prompt if that is empty. After ErrGone the request
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
	called(u, m)
	switch {
	case m.err != nil:
		if _, ok := m.of.result.(*protocol.QueueCancelResult); ok {
			u.taking = ""
		}
		if u.in.Empty() {
			u.in.SetDraft(m.of.draft)
		}
		return u.println(bad.Render("✗ ") + entry{note: m.err.Error()}.shown(u.style))
	case m.of.done != nil:
		return m.of.done
	}
	keepDraft(u, m.of)
	return nil
}

// input sends text to the session. busy decides whether it steers a running turn
// or waits for its own. The first input of a session without a title also becomes
// its title.
func (u *ui) input(text string, busy protocol.WhenBusy) tea.Cmd { return inputWith(u, text, busy, nil) }

// inputWith is input for a slash command of a plugin; nil: it is none.
func inputWith(u *ui, text string, busy protocol.WhenBusy, command *protocol.CommandCall) tea.Cmd {
	first := !u.used && u.talk.session.TurnIndex == 0 && u.talk.session.Title == ""
	u.used = true
	sent := u.start(text, busy, command)
	if !first {
		return sent
	}
	return tea.Batch(sent, u.rename(termtext.OneLine(text, titleWidth)))
}

// titleWidth is the maximum length of a title in characters. lash run uses the
// same length.
const titleWidth = 60

// start sends text and the files of the entered line as an input. busy says what happens if a turn is running.
func (u *ui) start(text string, busy protocol.WhenBusy, command *protocol.CommandCall) tea.Cmd {
	return u.ask(&outgoing{method: "turn/start", draft: u.entered, result: new(protocol.TurnStartResult), mentions: mcpinput.Mentions(text), params: protocol.TurnStartParams{
		Mutation: key(), SessionID: u.talk.session.ID, WhenBusy: busy, Command: command, Input: parts(text, u.entered.Files()),
	}})
}

// key returns a new idempotency key.
func key() protocol.Mutation {
	return protocol.Mutation{IdempotencyKey: string(protocol.NewInputID())}
}

// respond answers a decision. draft returns to the prompt if the daemon rejects the
// answer. The hash of the arguments makes sure that the answer counts only for the
// call that was shown.
func (u *ui) respond(d *protocol.Decision, p protocol.DecisionRespondParams, draft prompt.Draft) tea.Cmd {
	p.Mutation, p.DecisionID, p.ArgsHash = key(), d.ID, d.ArgsHash
	u.card.mode = cardChoosing
	return u.ask(&outgoing{method: "decision/respond", draft: draft, params: p})
}

// stopReason is the reason that the chat gives when it interrupts a turn.
const stopReason = "stopped by the user"

// interrupt stops the running turn.
func (u *ui) interrupt() tea.Cmd {
	return u.ask(&outgoing{method: "turn/interrupt", params: protocol.TurnInterruptParams{Mutation: key(), TurnID: u.talk.turn, Reason: stopReason}})
}
