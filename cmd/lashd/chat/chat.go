package chat

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"lashd/rpc/protocol"
)

// ErrGone means that the connection to the daemon was lost.
var ErrGone = errors.New("the connection to the daemon was lost")

// Run shows a session on a terminal until the person leaves, or ctx is done. The session goes on without it. It reports which session
// was shown last, and whether it has an input.
func Run(ctx context.Context, s Session, in io.Reader, out io.Writer) (last protocol.SessionID, used bool, err error) {
	u := &ui{ctx: ctx, session: s, talk: newTranscript(), width: 80, height: 24}
	_, err = tea.NewProgram(u, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler()).Run()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		err = nil
	}
	return u.talk.session.ID, u.used || u.talk.session.TurnIndex > 0, errors.Join(err, u.failed)
}

// ui is the state of the program. Only its event loop touches it.
type ui struct {
	ctx     context.Context
	session Session
	stop    context.CancelFunc // of the listening
	talk    *transcript
	in      editor

	width, height int
	there         bool // the session is open
	moved         bool // another one is wanted, and what still comes is of the one before
	next          protocol.SessionID
	retries       int         // of opening it
	unsent        []*outgoing // not acknowledged yet
	leaving       bool        // Ctrl-C was the last key; a second one leaves
	since         time.Time   // of what is waited for
	doing         string
	used          bool // an input was sent
	failed        error
}

// What the event loop is told, besides keys.
type (
	openedMsg struct {
		of  *protocol.SessionAttachResult
		err error
	}
	eventsMsg struct {
		events []protocol.Event
		err    error
	}
	saidMsg string    // a note to the person
	tickMsg time.Time // time has passed
)

// Init implements tea.Model.
func (u *ui) Init() tea.Cmd { return tea.Batch(u.open, tick()) }

func tick() tea.Cmd { return tea.Tick(time.Second, func(t time.Time) tea.Msg { return tickMsg(t) }) }

func (u *ui) open() tea.Msg {
	r, err := u.session.Open(u.ctx)
	return openedMsg{r, err}
}

// listen waits for what happens next.
func (u *ui) listen() tea.Cmd {
	ctx, stop := context.WithCancel(u.ctx)
	u.stop = stop
	return func() tea.Msg {
		defer stop()
		events, err := u.session.Next(ctx)
		return eventsMsg{events, err}
	}
}

// Update implements tea.Model.
func (u *ui) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch m := msg.(type) {
	case tea.WindowSizeMsg:
		u.width, u.height = m.Width, m.Height
	case tea.PasteMsg:
		u.in.insert(m.Content)
	case tea.KeyPressMsg:
		return u, u.pressed(m)
	case openedMsg:
		return u, u.opened(m)
	case eventsMsg:
		return u, u.happened(m)
	case sentMsg:
		return u, u.sent(m)
	case switchMsg:
		return u, u.use(m)
	case saidMsg:
		return u, tea.Println(entry{note: string(m)}.shown(u.width))
	case textMsg:
		return u, tea.Println(string(m))
	case tickMsg:
		return u, tick()
	}
	return u, nil
}

const (
	openTries = 20
	openPause = 500 * time.Millisecond
)

// opened goes on with the session, and asks again for what nobody has acknowledged.
func (u *ui) opened(m openedMsg) tea.Cmd {
	switch {
	case u.ctx.Err() != nil:
		return tea.Quit
	case errors.Is(m.err, ErrGone) && u.retries < openTries:
		u.retries++
		return tea.Tick(openPause, func(time.Time) tea.Msg { return u.open() })
	case m.err != nil:
		u.failed = m.err
		return tea.Quit
	}
	u.there, u.retries = true, 0
	again := make([]tea.Cmd, 0, len(u.unsent))
	for _, o := range u.unsent {
		again = append(again, u.send(o))
	}
	return tea.Batch(u.print(u.talk.attached(m.of)), tea.Batch(again...))
}

// happened takes events, or the loss of the connection.
func (u *ui) happened(m eventsMsg) tea.Cmd {
	if u.moved {
		u.moved = false
		u.session.Use(u.next)
		return u.open
	}
	var out []entry
	for _, e := range m.events {
		out = append(out, u.talk.apply(e)...)
	}
	if m.err == nil {
		return u.print(out)
	}
	if u.there = false; u.ctx.Err() != nil {
		return tea.Quit
	}
	return u.open
}

// print puts finished entries above what is still moving, and listens on: so they stand in order.
func (u *ui) print(out []entry) tea.Cmd {
	var text strings.Builder
	for _, e := range out {
		if shown := e.shown(u.width); shown != "" {
			text.WriteString(shown + "\n\n")
		}
	}
	if text.String() == "" {
		return u.listen()
	}
	return tea.Sequence(tea.Println(text.String()[:len(text.String())-1]), u.listen())
}

// use goes on with another session.
func (u *ui) use(m switchMsg) tea.Cmd {
	if !u.there {
		return say("Not connected to the daemon; try again in a moment.")
	}
	u.talk, u.there, u.moved, u.next = newTranscript(), false, true, m.id
	u.stop() // and who listens opens it
	return tea.Println(entry{note: m.note}.shown(u.width))
}
