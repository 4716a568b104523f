package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"lashd/rpc/protocol"
)

type tailCommand struct {
	Session string `arg:"" help:"Session to follow; lashd session lists them."`
	After   uint64 `help:"Replay only what came after this seq." default:"0" placeholder:"SEQ"`
}

// Help is shown by --help.
func (tailCommand) Help() string {
	return `Replays the session's events, then prints each one as it comes, until Ctrl-C. Events with a seq are durable: each comes once and in
order, also when the daemon is started anew meanwhile. Those without show text as it streams; they are not replayed.

Exit codes: 0 stopped by Ctrl-C, 1 no such session, 5 no daemon at the beginning.

Example: lashd tail ses_01a1fcf3708472b29ab5e2b2aa8e328f --after 12`
}

func (c tailCommand) Run(ctx context.Context, e *environment) error {
	f := &follower{env: e, named: c.Session, seen: protocol.Seq(c.After)}
	if err := f.connect(ctx); err != nil {
		return err
	}
	for {
		err := f.tail(ctx)
		if !errors.Is(err, errGone) {
			return err
		}
		e.note("the daemon went away after event %d; waiting for another one", f.seen)
		if err := f.reconnect(ctx); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// tail prints events until the connection is lost, ctx is done, or they cannot be written any more.
func (f *follower) tail(ctx context.Context) error {
	defer f.link.Close()
	r, err := f.attach(ctx)
	if err != nil {
		return err
	}
	if r.Gap != nil {
		f.env.note("events %d to %d cannot be replayed (%s); what follows is after event %d", r.Gap.FromSeq, r.Gap.ToSeq, r.Gap.Reason, r.Seq)
	}
	for {
		select {
		case <-f.news.More():
			f.print()
			if err := stdout.failed(); err != nil {
				return err
			}
		case <-f.link.Gone():
			f.print()
			return errGone
		case <-ctx.Done():
			return nil
		}
	}
}

func (f *follower) print() {
	for _, raw := range f.news.Take() {
		var ev protocol.Event
		if json.Unmarshal(raw, &ev) == nil && f.fresh(ev) {
			fmt.Fprintln(stdout, printable(string(raw)))
		}
	}
}

// reconnect waits for a daemon; nothing tells when one comes up.
func (f *follower) reconnect(ctx context.Context) error {
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := f.connect(ctx)
		if exit, ok := errors.AsType[*exitError](err); !ok || exit.code != exitNoDaemon {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
	}
}
