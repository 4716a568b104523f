package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/cmd/lash/chat"
	"lashd/rpc/client"
	"lashd/rpc/protocol"
)

// chatCommand implements lash chat. The screen is in package chat; this file
// connects it to the daemon.
type chatCommand struct {
	Session      string `arg:"" optional:"" help:"Session to continue; lash session lists the ids (default a new session)." placeholder:"ID"`
	Continue     bool   `short:"c" help:"Continue the session that you last used in the directory." xor:"continue"`
	Resume       bool   `short:"r" help:"Choose the session to continue from a list." xor:"continue"`
	Model        string `help:"Model of the new session; lash model lists the names." placeholder:"NAME"`
	Effort       string `help:"Reasoning effort of the new session; the model must support it." placeholder:"NAME"`
	Driver       string `help:"How the new session drives the model: standard, which calls tools natively, or rlm, which writes code cells." placeholder:"NAME"`
	Sandbox      string `help:"Sandbox of the commands in the new session: readOnly or workspace, which need no questions, or fullAccess for none (default: config.toml)." enum:",readOnly,workspace,fullAccess" default:"" placeholder:"MODE"`
	ScreenReader bool   `help:"Write for a screen reader: only append plain lines, ask questions as numbered lists, and ring the bell at the end." env:"LASH_SCREEN_READER"`
	Cwd          string `help:"Workspace (default the current directory)." placeholder:"DIR"`
}

// Help is shown by --help.
func (chatCommand) Help() string {
	return `Press Enter to send a message. During a turn, Enter steers the turn. Esc stops it. Ctrl-C clears the input or stops the
turn; press it again to quit. /help lists the commands.

If no rule allows a tool call, lashd asks you. You can also allow later calls with the same arguments, in this session or always in
this workspace. For write and edit, that covers later changes to the same file.

The session keeps running after you quit. If the daemon dies, lashd restarts it.

Examples:
  lash chat
  lash chat -c
  lash chat -r
  lash chat ses_01a1fcf3708472b29ab5e2b2aa8e328f`
}

// Run shows the chat until the user quits. A session that was created for this
// chat and never got an input is deleted; for all others Run prints how to
// continue.
func (c chatCommand) Run(ctx context.Context, e *daemon.Environment) error {
	if c.Session != "" && c.Resume {
		return console.Exit(console.ExitUsage, errors.New("--resume chooses a session from a list; omit it or the id"))
	}
	if (c.Session != "" || c.Continue || c.Resume) && c.Driver != "" {
		return console.Exit(console.ExitUsage, errors.New("--driver cannot be combined with a session to continue: a session keeps its driver"))
	}
	if !console.Terminal(os.Stdin) || !console.Terminal(os.Stdout) {
		return console.Exit(console.ExitUsage, errors.New("lash chat needs a terminal; use lash run without one"))
	}
	cwd, err := filepath.Abs(c.Cwd)
	if err != nil {
		return err
	}
	if c.Resume {
		if c.Session, err = c.pickSession(ctx, e, cwd); err != nil || c.Session == "" {
			return err
		}
	}
	s := &chatSession{follower: follower{env: e, start: true, named: c.Session, plugins: newPluginWatch()}, chatCommand: c, cwd: cwd, key: string(protocol.NewInputID())}
	defer s.close()
	last, used, err := s.show(ctx)
	switch {
	case err != nil:
		return err
	case !used && s.made && last == s.session:
		s.close()
		return dropEmpty(context.WithoutCancel(ctx), e, last)
	case last != "":
		fmt.Fprintf(console.Stdout, "To continue this session: lash chat %s\n", shortID(last))
	}
	return nil
}

// pickSession shows the list of sessions and returns the id of the one that the user takes; empty if the user takes none.
func (c chatCommand) pickSession(ctx context.Context, e *daemon.Environment, cwd string) (string, error) {
	l, err := e.Dial(ctx, true, nil)
	if err != nil {
		return "", err
	}
	defer l.Close()
	id, err := chat.PickSession(ctx, l.Call, cwd, os.Stdin, os.Stdout, chat.Options{ScreenReader: c.ScreenReader})
	return string(id), err
}

// show runs the chat until the user quits or the terminal is closed. SIGHUP ends
// the chat like quitting, unless the user has it ignored, as nohup does.
func (s *chatSession) show(ctx context.Context) (last protocol.SessionID, used bool, err error) {
	if !signal.Ignored(syscall.SIGHUP) {
		open, stop := signal.NotifyContext(ctx, syscall.SIGHUP)
		defer stop()
		ctx = open
	}
	return chat.Run(ctx, s, keySetup{env: s.env}, os.Stdin, os.Stdout, chat.Options{ScreenReader: s.ScreenReader})
}

// dropEmpty deletes a session that the chat created and that has no input. It
// reads the session first: another client may have started to use it.
func dropEmpty(ctx context.Context, e *daemon.Environment, id protocol.SessionID) error {
	l, err := e.Dial(ctx, true, nil)
	if err != nil {
		return err
	}
	defer l.Close()
	var r protocol.SessionReadResult
	err = l.Call(ctx, "session/read", protocol.SessionReadParams{SessionID: id, Limit: 1}, &r)
	if err != nil || len(r.Data) > 0 || r.Session.TurnIndex > 0 || r.Session.State != protocol.SessionIdle {
		return err
	}
	return l.Call(ctx, "session/delete", protocol.SessionMutationParams{SessionID: id}, nil)
}

// chatSession implements chat.Session on a follower. Open, Next and Use are called
// by one goroutine at a time; Call may run beside them on any goroutine, so it
// reads only link, under mu.
type chatSession struct {
	chatCommand
	// cwd is the workspace of a new session. key is the idempotency key of
	// session/new, so that a retry does not create a second session.
	cwd, key string
	made     bool       // the chat created the session
	whole    bool       // Open has returned the whole session; the next Open returns changes
	mu       sync.Mutex // guards link, which Call reads concurrently
	follower
}

// Open implements chat.Session. The first call also chooses or creates the
// session. Later calls attach after the last event that was returned.
func (s *chatSession) Open(ctx context.Context) (*protocol.SessionAttachResult, error) {
	if err := s.dial(ctx); err != nil {
		return nil, gone(err)
	}
	if s.session == "" {
		if err := s.choose(ctx); err != nil {
			return nil, gone(err)
		}
	}
	attach, first := s.snapshot, !s.whole
	if s.whole {
		attach = s.attach
	}
	r, err := attach(ctx)
	s.whole = err == nil
	if err == nil {
		s.plugins.begin(ctx, r.Session.Cwd, s.call)
	}
	if err == nil && first {
		err = s.recall(ctx, &r.Session)
	}
	return r, gone(err)
}

// recall lets Next return the end of the newest turn of an idle session if it failed or was stopped: the items do not say so.
func (s *chatSession) recall(ctx context.Context, about *protocol.Session) error {
	if about.State != protocol.SessionIdle || about.TurnIndex == 0 {
		return nil
	}
	var r protocol.TurnListResult
	if err := s.call(ctx, "turn/list", protocol.TurnListParams{SessionID: about.ID, Limit: 1}, &r); err != nil {
		return err
	}
	if len(r.Data) == 0 || r.Data[0].Outcome == nil || r.Data[0].Outcome.Finished() {
		return nil
	}
	last := r.Data[0]
	raw, err := json.Marshal(protocol.Event{Type: protocol.EventTurnCompleted, SessionID: about.ID, TurnID: last.TurnID, Outcome: last.Outcome, Issues: last.Issues})
	s.news.Put(raw)
	return err
}

// dial opens a new connection and passes API keys to the daemon. It closes the
// previous connection first.
func (s *chatSession) dial(ctx context.Context) error {
	s.close()
	news := client.NewInbox(0)
	l, err := s.env.DialWatching(context.WithoutCancel(ctx), s.start, func(e json.RawMessage) { news.Put(e) }, s.plugins.sink())
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.link, s.news = l, news
	s.mu.Unlock()
	return handKeys(ctx, s.env, l)
}

// choose sets s.session to the named session, to the one last used in the directory
// for --continue, or to a new one.
func (s *chatSession) choose(ctx context.Context) (err error) {
	if s.named != "" {
		s.session, err = sessionID(ctx, s.link, s.named)
		return err
	}
	if s.Continue {
		call := func(method string, params, result any) error { return s.call(ctx, method, params, result) }
		if s.session, err = lastSession(call, s.cwd); err == nil && s.session == "" {
			err = fmt.Errorf("there is no session of %s yet; lash chat begins one", s.cwd)
		}
		return err
	}
	var r protocol.SessionNewResult
	err = s.call(ctx, "session/new", protocol.SessionNewParams{Mutation: protocol.Mutation{IdempotencyKey: s.key}, Cwd: s.cwd, Driver: s.Driver, Model: s.Model, Effort: effortParam(s.Effort), Approval: approvalParam(s.Sandbox, false)}, &r)
	if lacksModel(err, s.Model) {
		return &chat.NoModelError{Ways: waysInChat(ctx, s.env)}
	}
	s.session, s.made = r.SessionID, err == nil
	return err
}

// Next implements chat.Session. It returns the events that are left before it
// reports a lost connection, so that none of them is skipped.
func (s *chatSession) Next(ctx context.Context) ([]protocol.Event, error) {
	for {
		select {
		case <-s.news.More():
		case <-s.plugins.more():
		case <-s.link.Gone():
			if events := s.taken(); len(events) > 0 {
				return events, nil
			}
			return nil, chat.ErrGone
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if events := s.taken(); len(events) > 0 {
			return events, nil
		}
	}
}

// taken returns the new events and the notes about plugins. It may return nothing,
// if all events were repetitions.
func (s *chatSession) taken() (events []protocol.Event) {
	for _, raw := range s.news.Take() {
		var e protocol.Event
		if json.Unmarshal(raw, &e) == nil && s.fresh(e) {
			events = append(events, e)
		}
	}
	for _, line := range s.plugins.lines() {
		events = append(events, protocol.Event{Type: chat.EventNote, Text: line})
	}
	return events
}

// Call implements chat.Session. Errors of the daemon come back as the text that
// lashd prints for them.
func (s *chatSession) Call(ctx context.Context, method string, params, result any) error {
	s.mu.Lock()
	l := s.link
	s.mu.Unlock()
	if l == nil {
		return chat.ErrGone
	}
	if err := gone(l.Reason(l.Call(ctx, method, params, result))); err != nil {
		if errors.Is(err, chat.ErrGone) {
			return err
		}
		return errors.New(console.Explain(err))
	}
	return nil
}

// Use implements chat.Session. The next Open returns the whole other session.
func (s *chatSession) Use(id protocol.SessionID, made bool) {
	s.session, s.seen, s.epoch, s.whole, s.made = id, 0, 0, false, made
}

// Choose implements chat.Session.
func (s *chatSession) Choose(model string) { s.Model = model }

// close closes the connection, if there is one. A Next that waits on it, or a later
// one, returns chat.ErrGone: when the chat ends, it does not wait for its commands.
func (s *chatSession) close() {
	s.mu.Lock()
	l := s.link
	s.mu.Unlock()
	if l != nil {
		l.Close()
	}
}

// gone converts errGone to chat.ErrGone.
func gone(err error) error {
	if errors.Is(err, daemon.ErrGone) {
		return chat.ErrGone
	}
	return err
}
