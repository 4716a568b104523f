package chat

import (
	"context"
	"errors"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"lashd/cmd/lash/markdown"
	"lashd/cmd/lash/screen"
	"lashd/rpc/protocol"
)

// ErrGone means that the connection to the daemon was lost. Session returns it,
// wrapped or not. The chat reconnects and repeats requests that have no answer.
var ErrGone = errors.New("the connection to the daemon was lost")

// Options are the choices of the user about the screen.
type Options struct {
	// ScreenReader appends lines of plain text, and changes nothing else on the screen.
	ScreenReader bool
}

// Run shows a session on a terminal until the user quits or ctx is done. The
// session itself keeps running. Run returns the id of the last session on the
// screen, and whether that session has any input: the caller may delete one that
// was never used. An error means that the session could not be opened, or opened
// again.
func Run(ctx context.Context, s Session, keys Keys, in, out *os.File, o Options) (last protocol.SessionID, used bool, err error) {
	profile := colorprofile.Detect(out, os.Environ())
	u := &ui{ctx: ctx, session: s, keys: keys, talk: newTranscript(), width: 80, height: 24, profile: profile, style: markdown.Detect(out, os.Environ())}
	if o.ScreenReader {
		u.reader, u.style, u.paper.plain = &reader{}, markdown.Style{}, true
		u.paper.print("lash chat for screen readers. The session opens.")
	}
	u.notice = notice{off: os.Getenv("LASHD_NOTIFY") == "off", waits: true}
	u.style.File = func(path string, line int) string { return fileAddress(u.talk.session.Cwd, path, line) }
	err = screen.Run(ctx, u, in, out)
	return u.talk.session.ID, u.used || u.talk.session.TurnIndex > 0, errors.Join(err, u.failed)
}

// ui is the screen.Model of the chat. Only the event loop, which calls Update
// and Draw, may use its fields. Commands run on other goroutines: they get copies
// of the values they need, and return a message. Requests that change something
// stay in unsent until the daemon has answered them, so that a lost connection
// loses no input.
type ui struct {
	ctx     context.Context
	session Session
	keys    Keys
	stop    context.CancelFunc // ends the running listen command
	talk    *transcript        // of the session on the screen
	paper   paper              // what goes to the scrollback
	writing
	form    *form   // gets the key presses while it is open; nil: it is not
	lacking bool    // there is no session, because there was no model for it
	card    card    // of the open decision
	over    overlay // has the screen and gets the key presses while it is open; nil: none is
	reader  *reader // the mode for screen readers; nil: the screen is for the eyes
	trying  bool    // the session is opened again, after lacking a model

	width, height int
	style         markdown.Style       // of messages, code and diffs
	connected     bool                 // a session is open
	switching     bool                 // the user chose another session; events that still arrive belong to the old one
	next          switchMsg            // the session to open, if switching
	retries       int                  // failed attempts to open the session in a row
	unsent        []*outgoing          // requests without an answer, in order
	leaving       bool                 // the last key was Ctrl-C; another one quits
	wait          wait                 // what the turn waits for
	used          bool                 // the user has sent an input
	greeted       bool                 // the greeting was printed
	own           ownCalls             // calls of this chat, whose results it printed
	failed        error                // the error that ended the chat
	notice        notice               // rings the bell of the terminal
	ticking       bool                 // a tickMsg will come
	profile       colorprofile.Profile // the colors of the terminal
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
	// saidMsg is a note to show. tickMsg arrives every second while the screen shows
	// a time.
	saidMsg string
	tickMsg time.Time
)

// Init implements screen.Model. It opens the session.
func (u *ui) Init() tea.Cmd { return u.open }

// tick returns a command that sends a tickMsg after a second, if the screen shows a
// time that changes: how long the agent waits, or how long a question stays open.
// Otherwise the chat uses no processor time until something happens.
func tick(u *ui) tea.Cmd {
	timed := u.talk.turn != "" || len(u.talk.tasks) > 0 || len(u.talk.ends) > 0 || u.form != nil && u.form.stop != nil
	if u.ticking || !timed || u.reader != nil {
		return nil
	}
	u.ticking = true
	return tea.Tick(time.Second, func(t time.Time) tea.Msg { return tickMsg(t) })
}

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

// Update implements screen.Model. It never blocks: all work that waits is in the
// commands that it returns.
func (u *ui) Update(msg tea.Msg) tea.Cmd {
	cmd := u.handle(msg)
	u.followCard()
	cmd = tea.Batch(cmd, followInput(u, msg))
	u.notice.saw(msg, u.talk.turn != "" && u.talk.asked() == nil)
	u.reader.follow(u)
	return tea.Batch(cmd, tick(u))
}

// handle handles a message.
func (u *ui) handle(msg tea.Msg) tea.Cmd {
	switch m := msg.(type) {
	case tea.WindowSizeMsg:
		u.width, u.height, u.style.Width = m.Width, m.Height, m.Width
	case tea.BackgroundColorMsg:
		if u.reader != nil {
			return nil
		}
		u.style.Theme = markdown.ThemeFor(u.profile, new(m.IsDark()))
	case tea.PasteMsg:
		if u.form != nil {
			u.form.paste(m.Content)
			return nil
		}
		if u.over != nil {
			return overlayGets(u, m)
		}
		if u.search != nil {
			u.search.paste(u, m.Content)
			return nil
		}
		if cmd, ok := u.pasted(m.Content); ok {
			return cmd
		}
		u.in.Paste(m.Content)
	case tea.KeyPressMsg:
		if u.form != nil {
			return u.filled(m)
		}
		if u.over != nil {
			return overlayGets(u, m)
		}
		return u.pressed(m)
	case formMsg:
		u.form = m.form
	case storedMsg:
		return u.keyStored(m)
	case notesMsg:
		return u.notes(m)
	case openedMsg:
		return u.opened(m)
	case eventsMsg:
		return u.happened(m)
	case sentMsg:
		return u.sent(m)
	case switchMsg:
		return u.use(m)
	case clipboardMsg:
		return pasteClipboard(u, m)
	case plan:
		u.talk.plan = m
	case outputMsg:
		return unfold(u, m)
	case earlierMsg:
		return remember(u, m)
	case listMsg:
		if u.reader != nil {
			u.reader.present(u, m)
		}
	case faultMsg:
		if u.over == nil {
			return say("%s", string(m))
		}
		return overlayGets(u, m)
	case whereMsg:
		showWhere(u, m)
	case olderMsg:
		return tookOlder(u, m)
	case takenMsg:
		return taken(u, m)
	case goBackMsg:
		return goBack(u, m)
	case wentBackMsg:
		return wentBack(u, m)
	case argumentsMsg:
		return known(u, m)
	case pathsMsg:
		return listed(u, m)
	case resourcesMsg:
		return listedResources(u, m)
	case proposal:
		return proposed(u, m)
	case sourcesMsg:
		return foundSources(u, m)
	case offeredMsg:
		return offered(u, m)
	case saidMsg:
		return u.println(entry{note: string(m)}.shown(u.style))
	case textMsg:
		return u.println(string(m))
	case compactionMsg:
		return m.use(u)
	case refusedMsg:
		return m.use(u)
	case fileMsg:
		return m.use(u)
	case editedMsg:
		return m.use(u)
	case tickMsg:
		u.ticking = false
	default:
		return overlayGets(u, msg)
	}
	return nil
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
	if u.reader == nil && !u.greeted {
		u.paper.print(greeting(m.of.Session.Cwd, u.width))
	}
	first := !u.greeted
	u.greeted = true
	again := make([]tea.Cmd, 0, len(u.unsent))
	for _, o := range sendable(u) {
		again = append(again, u.send(o))
	}
	out := u.talk.attached(m.of)
	if first {
		again = append(again, readTrust(u))
	}
	return tea.Batch(u.print(out), readEarlier(u, false), readPlan(u), tea.Batch(again...))
}

// happened applies new events, or reconnects after the connection was lost.
func (u *ui) happened(m eventsMsg) tea.Cmd {
	if u.switching {
		u.switching = false
		u.session.Use(u.next.id, u.next.made)
		return u.open
	}
	var where tea.Cmd
	var refused []tea.Cmd
	for _, e := range m.events {
		if e.Type == protocol.EventSessionRewound {
			where = readWhere(u)
		}
		if e.Type == protocol.EventTaskCompleted && e.Task.Spec.Subagent != nil {
			refused = append(refused, readRefused(u, e.Task.Spec.Subagent))
		}
		out := u.talk.apply(e)
		if u.paper.cutOff(u.talk, e) {
			u.paper.endFlow(u.style)
		}
		u.paper.writeAll(u.talk, u.own.without(out, u.unsent), u.style)
	}
	if m.err == nil {
		return tea.Batch(u.listen(), where, tea.Batch(refused...))
	}
	if u.connected = false; u.ctx.Err() != nil {
		return tea.Quit
	}
	return u.open
}

// print puts finished entries on the paper, and returns the command that listens
// for more events.
func (u *ui) print(out []entry) tea.Cmd {
	u.paper.writeAll(u.talk, u.own.without(out, u.unsent), u.style)
	return u.listen()
}

// println puts a text on the paper. It returns no command.
func (u *ui) println(text string) tea.Cmd {
	u.paper.print(text)
	return nil
}

// use switches to another session. It ends the running listen command, whose
// result then opens the new session.
func (u *ui) use(m switchMsg) tea.Cmd {
	if !u.connected {
		return say("Not connected to the daemon; try again in a moment.")
	}
	u.over, u.talk, u.own, u.paper.flow, u.connected, u.switching, u.next, u.used = nil, newTranscript(), ownCalls{}, nil, false, true, m, u.used && !m.made
	u.stop()
	return u.println(entry{note: m.note}.shown(u.style))
}
