package chat

import (
	"errors"

	tea "charm.land/bubbletea/v2"

	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// outgoing is a wish that is to become durable, however often it has to be asked for.
type outgoing struct {
	method string
	params any
	result any    // what is answered; nil: nobody wants it
	text   string // what the person gets back if it is refused
	done   func() tea.Msg
}

type sentMsg struct {
	of  *outgoing
	err error
}

// ask sends a wish, and keeps it until it is answered. Its params have an idempotency key.
func (u *ui) ask(o *outgoing) tea.Cmd {
	u.unsent = append(u.unsent, o)
	if !u.there {
		return nil // it is sent when the daemon is there
	}
	return u.send(o)
}

func (u *ui) send(o *outgoing) tea.Cmd {
	return func() tea.Msg { return sentMsg{o, u.session.Call(u.ctx, o.method, o.params, o.result)} }
}

// sent forgets a wish that was answered. One that was refused is given back.
func (u *ui) sent(m sentMsg) tea.Cmd {
	if errors.Is(m.err, ErrGone) {
		return nil // it is sent again
	}
	for i, o := range u.unsent {
		if o == m.of {
			u.unsent = append(u.unsent[:i:i], u.unsent[i+1:]...)
			break
		}
	}
	switch {
	case m.err != nil:
		if m.of.text != "" && u.in.value() == "" {
			u.in.set(again(m.of.text))
		}
		return tea.Println(bad.Render("✗ ") + entry{note: m.err.Error()}.shown(u.width))
	case m.of.done != nil:
		return m.of.done
	}
	return nil
}

// input gives the session something to do. The first input of a session without a title becomes its title.
func (u *ui) input(text string, busy protocol.WhenBusy) tea.Cmd {
	first := !u.used && u.talk.session.TurnIndex == 0 && u.talk.session.Title == ""
	u.used = true
	sent := u.start(text, busy)
	if !first {
		return sent
	}
	return tea.Batch(sent, u.title(termtext.OneLine(text, titleWidth)))
}

// titleWidth is how many columns of the first input a title has; lashd run gives its sessions titles of the same width.
const titleWidth = 60

func (u *ui) start(text string, busy protocol.WhenBusy) tea.Cmd {
	return u.ask(&outgoing{method: "turn/start", text: text, params: protocol.TurnStartParams{
		Mutation: key(), SessionID: u.talk.session.ID, WhenBusy: busy,
		Input: []protocol.InputPart{{Type: protocol.InputText, Text: text}},
	}})
}

// key makes a wish one, however often it is sent.
func key() protocol.Mutation {
	return protocol.Mutation{IdempotencyKey: string(protocol.NewInputID())}
}

func (u *ui) respond(d *protocol.Decision, choice protocol.DecisionChoice, text string) tea.Cmd {
	p := protocol.DecisionRespondParams{Mutation: key(), DecisionID: d.ID, Choice: choice, ArgsHash: d.ArgsHash}
	if choice == protocol.ChooseAnswer {
		p.Value = answer(d.Form, text)
	}
	return u.ask(&outgoing{method: "decision/respond", text: text, params: p})
}

// stopReason is the reason that the chat gives when it interrupts a turn.
const stopReason = "stopped by the user"

func (u *ui) interrupt() tea.Cmd {
	return u.ask(&outgoing{method: "turn/interrupt", params: protocol.TurnInterruptParams{Mutation: key(), TurnID: u.talk.turn, Reason: stopReason}})
}
