package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/rpc/protocol"
)

// tailCommand implements lash tail, for scripts that follow a session.
type tailCommand struct {
	Session string `arg:"" help:"Session to follow; lash session lists the ids."`
	After   uint64 `help:"Replay only events after this sequence number." default:"0" placeholder:"SEQ"`
}

// Help is shown by --help.
func (tailCommand) Help() string {
	return `Replays the events of the session, then prints new events until you press Ctrl-C. Events with a sequence number (seq) are
durable: each is printed once and in order, even if the daemon restarts. Events without one are streamed text and are not replayed.

Exit codes: 0 stopped by Ctrl-C, 1 session not found, 5 no daemon at the start.

Example: lash tail ses_01a1fcf3708472b29ab5e2b2aa8e328f --after 12`
}

// Run prints events until Ctrl-C. The first connection must succeed; after that it
// waits for the daemon as long as needed, and never starts one.
func (c tailCommand) Run(ctx context.Context, e *daemon.Environment) error {
	f := &follower{env: e, named: c.Session, seen: protocol.Seq(c.After)}
	if err := f.connect(ctx); err != nil {
		return err
	}
	for {
		err := f.tail(ctx)
		if !errors.Is(err, daemon.ErrGone) {
			return err
		}
		e.Note("connection to the daemon lost after event %d; waiting for the daemon", f.seen)
		if err := f.reconnect(ctx); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// tail prints events until the connection is lost (errGone), ctx is done, or
// stdout cannot be written.
// It closes the connection of the follower when it returns. Events that have arrived
// are printed before errGone.
func (f *follower) tail(ctx context.Context) error {
	defer f.link.Close()
	r, err := f.attach(ctx)
	if err != nil {
		return err
	}
	if r.Gap != nil {
		f.env.Note("events %d to %d cannot be replayed (%s); continuing after event %d", r.Gap.FromSeq, r.Gap.ToSeq, r.Gap.Reason, r.Seq)
	}
	for {
		select {
		case <-f.news.More():
			f.print()
			if err := console.Stdout.Failed(); err != nil {
				return err
			}
		case <-f.link.Gone():
			f.print()
			return daemon.ErrGone
		case <-ctx.Done():
			return nil
		}
	}
}

// print prints the new events, each as a line of JSON. Control characters are
// escaped, which does not change the JSON's meaning.
// Events that were printed before, on an earlier connection, are skipped.
func (f *follower) print() {
	for _, raw := range f.news.Take() {
		var ev protocol.Event
		if json.Unmarshal(raw, &ev) == nil && f.fresh(ev) {
			fmt.Fprintln(console.Stdout, console.Printable(string(raw)))
		}
	}
}

// reconnect dials until a daemon answers or ctx is done. It polls, because nothing
// signals the start of a daemon. The pause between attempts grows from 10 ms to a
// second.
// Only the absence of a daemon is retried; any other error is returned.
func (f *follower) reconnect(ctx context.Context) error {
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := f.connect(ctx)
		if exit, ok := errors.AsType[*console.ExitError](err); !ok || exit.Code != console.ExitNoDaemon {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
	}
}
