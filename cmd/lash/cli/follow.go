package cli

import (
	"context"
	"encoding/json"
	"errors"

	"lashd/cmd/internal/daemon"
	"lashd/rpc/client"
	"lashd/rpc/protocol"
)

// follower reads the events of a session: each durable event once, in order, even
// if the daemon restarts in between. After errGone the caller calls connect and
// attach again. A follower belongs to one goroutine.
//
// It remembers the sequence number of the last durable event and the epoch of the
// database. The daemon replays what came after it, or reports a gap if it cannot,
// for instance after the database was restored from a copy.
type follower struct {
	env     *daemon.Environment
	start   bool   // start a daemon if none is running
	named   string // prefix of the id of the session until connect has looked it up; "" if session is known or created later
	session protocol.SessionID
	seen    protocol.Seq  // number of the newest durable event that fresh has accepted
	epoch   int64         // epoch of the daemon that sent it; 0 before the first attach
	link    *daemon.Link  // the current connection; closed by the caller
	news    *client.Inbox // unread events of that connection
	plugins *pluginWatch  // nil to ignore changes of plugins
}

// connect opens a new connection and looks the session up. With f.start it also
// passes API keys to the daemon. The caller closes f.link. After an error there is
// nothing to close.
func (f *follower) connect(ctx context.Context) error {
	f.news = client.NewInbox(0)
	l, err := f.env.DialWatching(context.WithoutCancel(ctx), f.start, func(e json.RawMessage) { f.news.Put(e) }, f.plugins.sink())
	if err != nil {
		return err
	}
	f.link = l
	if f.named != "" {
		if f.session, err = sessionID(ctx, l, f.named); err != nil {
			return errors.Join(err, l.Close())
		}
		f.named = ""
	}
	if f.start {
		return handKeys(ctx, f.env, l)
	}
	return nil
}

// attach subscribes to all events after f.seen, and replays those that exist. If
// they cannot be replayed, the result has a gap, and the events after the gap
// follow.
func (f *follower) attach(ctx context.Context) (*protocol.SessionAttachResult, error) {
	p := protocol.SessionAttachParams{SessionID: f.session, AfterSeq: &f.seen, Epoch: f.epoch}
	if f.epoch == 0 {
		p.Epoch = f.link.Daemon.Epoch
	}
	var r protocol.SessionAttachResult
	if err := f.call(ctx, "session/attach", p, &r); err != nil {
		return nil, err
	}
	f.epoch = f.link.Daemon.Epoch
	if r.Gap != nil {
		f.seen = r.Seq
	}
	return &r, nil
}

// snapshot reads the state of the session and subscribes to all later events.
// Earlier events count as seen.
func (f *follower) snapshot(ctx context.Context) (*protocol.SessionAttachResult, error) {
	var r protocol.SessionAttachResult
	if err := f.call(ctx, "session/attach", protocol.SessionAttachParams{SessionID: f.session}, &r); err != nil {
		return nil, err
	}
	f.epoch, f.seen = f.link.Daemon.Epoch, r.Seq
	return &r, nil
}

// call calls a method and returns errGone if the connection is lost. It ignores
// the end of ctx: a call is short, and it may have an effect whose result the
// caller needs.
func (f *follower) call(ctx context.Context, method string, params, result any) error {
	return f.link.Reason(f.link.Call(context.WithoutCancel(ctx), method, params, result))
}

// fresh reports whether an event is new. It returns true once for each durable
// event, and always for streamed events.
func (f *follower) fresh(ev protocol.Event) bool {
	if ev.Seq == 0 {
		return true
	}
	if ev.Seq <= f.seen {
		return false
	}
	f.seen = ev.Seq
	return true
}
