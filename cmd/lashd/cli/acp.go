package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"lashd/rpc"
	"lashd/rpc/acp"
	"lashd/rpc/socket"
)

type acpCommand struct {
	Isolated bool `help:"Serve from this process, without a socket, for as long as stdin is open."`
}

// Help is shown by --help.
func (acpCommand) Help() string {
	return `For editors that speak the Agent Client Protocol: give them the command "lashd acp". docs/editors.md shows how, for Zed,
JetBrains, Neovim and Emacs. Messages are one JSON value a line; stdout carries nothing else, and the log goes to stderr.

Sessions are those of the daemon of the data directory, which is started if there is none: the editor sees what was begun elsewhere,
and turns go on when it leaves. If the daemon goes away, it is started again, and what the editor was shown goes on where it was.

--isolated needs the data directory for itself: no daemon may run on it.

Example: npx acpx --agent 'lashd acp' 'what does this project do?'`
}

func (c acpCommand) Run(ctx context.Context, e *environment) error {
	if !c.Isolated {
		return e.acp(ctx, e.connect)
	}
	err := e.daemon(ctx, func(ctx context.Context, srv *rpc.Server, _ *socket.Lock) error {
		var serving sync.WaitGroup
		defer serving.Wait()
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		return e.acp(ctx, func(context.Context, bool) (net.Conn, error) {
			ours, theirs := net.Pipe()
			serving.Go(func() {
				if err := srv.Serve(ctx, theirs, true); err != nil {
					e.log.Warn("the editor's connection has ended", "error", err)
				}
			})
			return ours, nil
		})
	})
	if held, ok := errors.AsType[*socket.HeldError](err); ok {
		return &exitError{exitHeld, fmt.Errorf("%w; leave out --isolated to use that one, or choose another --home", held)}
	}
	return err
}

func (e *environment) acp(ctx context.Context, dial func(context.Context, bool) (net.Conn, error)) error {
	return acp.Run(ctx, acp.Config{Dial: dial, Getenv: os.Getenv, Log: e.log.With("component", "acp"), Version: Version}, newBreakable(), os.Stdout)
}
