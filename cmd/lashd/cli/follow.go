package cli

import (
	"context"
	"encoding/json"
	"errors"

	"lashd/rpc/client"
	"lashd/rpc/protocol"
)

// errGone says that the connection to the daemon was lost.
var errGone error = &exitError{exitNoDaemon, errors.New("the connection to the daemon was lost")}

// follower reads a session's events across daemons: each durable event once, in order.
type follower struct {
	env     *environment
	start   bool   // a daemon if there is none
	named   string // a unique beginning of the session's id, until connect has looked it up; empty: session is known, or made later
	session protocol.SessionID
	seen    protocol.Seq // of the newest durable event that was handed out
	epoch   int64        // in which it was seen
	link    *link
	news    *client.Inbox
	plugins *pluginWatch // nil: changes of plugins are not reported
}

// connect makes a new connection; the caller closes it.
func (f *follower) connect(ctx context.Context) error {
	f.news = client.NewInbox(0)
	l, err := f.env.dialWatching(context.WithoutCancel(ctx), f.start, func(e json.RawMessage) { f.news.Put(e) }, f.plugins)
	if err != nil {
		return err
	}
	f.link = l
	if f.named != "" {
		if f.session, err = l.sessionID(ctx, f.named); err != nil {
			return errors.Join(err, l.Close())
		}
		f.named = ""
	}
	if f.start {
		return f.env.handKeys(ctx, l)
	}
	return nil
}

// attach asks for everything after what was seen. If that cannot be replayed, the answer has a gap, and what follows it comes.
func (f *follower) attach(ctx context.Context) (*protocol.SessionAttachResult, error) {
	p := protocol.SessionAttachParams{SessionID: f.session, AfterSeq: &f.seen, Epoch: f.epoch}
	if f.epoch == 0 {
		p.Epoch = f.link.daemon.Epoch
	}
	var r protocol.SessionAttachResult
	if err := f.call(ctx, "session/attach", p, &r); err != nil {
		return nil, err
	}
	f.epoch = f.link.daemon.Epoch
	if r.Gap != nil {
		f.seen = r.Seq
	}
	return &r, nil
}

// snapshot asks for the session as it is, and for everything after that.
func (f *follower) snapshot(ctx context.Context) (*protocol.SessionAttachResult, error) {
	var r protocol.SessionAttachResult
	if err := f.call(ctx, "session/attach", protocol.SessionAttachParams{SessionID: f.session}, &r); err != nil {
		return nil, err
	}
	f.epoch, f.seen = f.link.daemon.Epoch, r.Seq
	return &r, nil
}

// call tells a lost connection from other errors. Ctrl-C does not leave it, as it takes no time and may have an effect.
func (f *follower) call(ctx context.Context, method string, params, result any) error {
	return f.link.reason(f.link.Call(context.WithoutCancel(ctx), method, params, result))
}

// fresh tells whether a durable event was not handed out before.
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
