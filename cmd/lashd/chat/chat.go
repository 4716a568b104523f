package chat

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"lashd/rpc/protocol"
)

// ErrGone means that the connection to the daemon was lost. Session returns it,
// wrapped or not. The chat reconnects and repeats requests that have no answer.
var ErrGone = errors.New("the connection to the daemon was lost")

// Run shows a session on a terminal until the user quits or ctx is done. The
// session itself keeps running. Run returns the id of the last session on the
// screen, and whether that session has any input: the caller may delete one that
// was never used. An error means that the session could not be opened, or opened
// again.
func Run(ctx context.Context, s Session, keys Keys, in io.Reader, out io.Writer) (last protocol.SessionID, used bool, err error) {
	u := &ui{ctx: ctx, session: s, keys: keys, talk: newTranscript(), width: 80, height: 24, profile: colorprofile.Detect(out, os.Environ())}
	_, err = tea.NewProgram(u, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler()).Run()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		err = nil
	}
	return u.talk.session.ID, u.used || u.talk.session.TurnIndex > 0, errors.Join(err, u.failed)
}

// ui is the Bubble Tea model of the chat. Only the event loop, which calls Update
// and View, may use its fields. Commands run on other goroutines: they get copies
// of the values they need, and return a message. Requests that change something
// stay in unsent until the daemon has answered them, so that a lost connection
// loses no input.
type ui struct {
	ctx     context.Context
	session Session
	keys    Keys
	stop    context.CancelFunc // ends the running listen command
	talk    *transcript        // of the session on the screen
	in      editor
	form    *form // gets the key presses while it is open; nil: it is not
	lacking bool  // there is no session, because there was no model for it
	trying  bool  // the session is opened again, after lacking a model

	width, height int
	connected     bool                   // a session is open
	switching     bool                   // the user chose another session; events that still arrive belong to the old one
	next          protocol.SessionID     // the session to open, if switching
	retries       int                    // failed attempts to open the session in a row
	unsent        []*outgoing            // requests without an answer, in order
	leaving       bool                   // the last key was Ctrl-C; another one quits
	since         time.Time              // when doing last changed
	doing         string                 // what the turn waits for, such as "the model"
	used          bool                   // the user has sent an input
	files         []*protocol.Attachment // go with the next input
	failed        error                  // the error that ended the chat
	profile       colorprofile.Profile   // the colors of the terminal
}

// The messages of the event loop besides key presses. Each is the result of a
// command.
type (
	// openedMsg is the result of Session.Open.
	openedMsg struct {
		of  *protocol.SessionAttachResult
		err error
	}
	// eventsMsg is the result of Session.Next.
	eventsMsg struct {
		events []protocol.Event
		err    error
	}
	// saidMsg is a note to show. tickMsg arrives every second and refreshes the
	// status line.
	saidMsg string
	tickMsg time.Time
)

// Init implements tea.Model. It opens the session and starts the clock.
func (u *ui) Init() tea.Cmd { return tea.Batch(u.open, tick()) }

// tick returns a command that sends a tickMsg after a second.
func tick() tea.Cmd { return tea.Tick(time.Second, func(t time.Time) tea.Msg { return tickMsg(t) }) }

// open is the command that opens the session. At most one open or listen command
// runs at a time, because Session allows only one.
func (u *ui) open() tea.Msg {
	r, err := u.session.Open(u.ctx)
	return openedMsg{r, err}
}

// listen returns a command that waits for the next events. Only one listen command
// runs at a time. u.stop ends it early; it then returns an error, and happened
// decides what to open.
func (u *ui) listen() tea.Cmd {
	ctx, stop := context.WithCancel(u.ctx)
	u.stop = stop
	return func() tea.Msg {
		defer stop()
		events, err := u.session.Next(ctx)
		return eventsMsg{events, err}
	}
}

// Update implements tea.Model. It never blocks: all work that waits is in the
// commands that it returns.
func (u *ui) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch m := msg.(type) {
	case tea.WindowSizeMsg:
		u.width, u.height = m.Width, m.Height
	case tea.PasteMsg:
		if u.form != nil {
			u.form.paste(m.Content)
			return u, nil
		}
		if cmd, ok := u.pasted(m.Content); ok {
			return u, cmd
		}
		u.in.insert(m.Content)
	case tea.KeyPressMsg:
		if u.form != nil {
			return u, u.filled(m)
		}
		return u, u.pressed(m)
	case formMsg:
		u.form = m.form
	case storedMsg:
		return u, u.keyStored(m)
	case notesMsg:
		return u, u.notes(m)
	case openedMsg:
		return u, u.opened(m)
	case eventsMsg:
		return u, u.happened(m)
	case sentMsg:
		return u, u.sent(m)
	case switchMsg:
		return u, u.use(m)
	case saidMsg:
		return u, u.println(entry{note: string(m)}.shown(u.width))
	case textMsg:
		return u, u.println(string(m))
	case tickMsg:
		return u, tick()
	}
	return u, nil
}

// The chat tries to open a session openTries times, openPause apart, while the
// connection is refused or lost.
const (
	openTries = 20
	openPause = 500 * time.Millisecond
)

// opened handles the result of Session.Open. It applies the state of the session
// and sends unacknowledged requests again. Their idempotency keys keep them from
// being executed twice.
func (u *ui) opened(m openedMsg) tea.Cmd {
	u.trying = false
	switch {
	case u.ctx.Err() != nil:
		return tea.Quit
	case errors.Is(m.err, ErrGone) && u.retries < openTries:
		u.retries++
		return tea.Tick(openPause, func(time.Time) tea.Msg { return u.open() })
	case m.err != nil:
		if no, ok := errors.AsType[*NoModelError](m.err); ok {
			return u.lacks(no)
		}
		if u.lacking {
			return say("%v", m.err)
		}
		u.failed = m.err
		return tea.Quit
	}
	u.connected, u.lacking, u.retries = true, false, 0
	again := make([]tea.Cmd, 0, len(u.unsent))
	for _, o := range u.unsent {
		again = append(again, u.send(o))
	}
	return tea.Batch(u.print(u.talk.attached(m.of)), tea.Batch(again...))
}

// happened applies new events, or reconnects after the connection was lost.
func (u *ui) happened(m eventsMsg) tea.Cmd {
	if u.switching {
		u.switching = false
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
	if u.connected = false; u.ctx.Err() != nil {
		return tea.Quit
	}
	return u.open
}

// print writes finished entries to the scrollback and then listens for more
// events. Listening starts after the print, which keeps the entries in order.
// Scrollback cannot be changed later, so only finished entries are printed.
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
	return tea.Sequence(u.println(text.String()[:len(text.String())-1]), u.listen())
}

// println writes text to the scrollback. Bubble Tea removes colors that the terminal lacks, or that NO_COLOR refuses, only from what
// it draws itself, so println does it here.
func (u *ui) println(text string) tea.Cmd {
	if u.profile == colorprofile.ASCII || u.profile == colorprofile.NoTTY {
		var plain strings.Builder
		w := colorprofile.Writer{Forward: &plain, Profile: u.profile}
		_, _ = w.WriteString(text) // to memory
		text = plain.String()
	}
	return tea.Println(text)
}

// use switches to another session. It ends the running listen command, whose
// result then opens the new session.
func (u *ui) use(m switchMsg) tea.Cmd {
	if !u.connected {
		return say("Not connected to the daemon; try again in a moment.")
	}
	u.talk, u.connected, u.switching, u.next = newTranscript(), false, true, m.id
	u.stop()
	return u.println(entry{note: m.note}.shown(u.width))
}
