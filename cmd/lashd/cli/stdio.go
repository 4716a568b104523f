package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"lashd/rpc"
	"lashd/rpc/socket"
)

type stdioCommand struct {
	Isolated bool `help:"Serve from this process, without a socket, for as long as stdin is open."`
}

// Help is shown by --help.
func (stdioCommand) Help() string {
	return `Messages are JSON-RPC 2.0, with Content-Length headers or one JSON value a line, as the first bytes show; stdout carries nothing
else. They are forwarded to the daemon of the data directory, which is started if there is none and outlives this process:
at the end of stdin, turns go on. If the daemon goes away, requests without an answer get an error, and the exit code is 5.

--isolated needs the data directory for itself: no daemon may run on it.

Example: echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"clientInfo":{"name":"me"}}}' | lashd stdio`
}

// stdio is stdin and stdout as one stream.
type stdio struct {
	io.Reader
	io.Writer
}

func (stdio) Close() error { return errors.Join(os.Stdin.Close(), os.Stdout.Close()) }

// breakable is stdin and stdout whose Close ends a read that is under way, which closing stdin itself mostly does not.
type breakable struct {
	io.ReadCloser
	io.Writer
}

func newBreakable() breakable {
	if in := pollable(os.Stdin); in != nil {
		return breakable{in, os.Stdout}
	}
	r, w := io.Pipe()
	go func() {
		_, err := io.Copy(w, os.Stdin)
		w.CloseWithError(err)
	}()
	return breakable{r, os.Stdout}
}

func (b breakable) Close() error { return errors.Join(b.ReadCloser.Close(), os.Stdout.Close()) }

func (c stdioCommand) Run(ctx context.Context, e *environment) error {
	if c.Isolated {
		err := e.daemon(ctx, func(ctx context.Context, srv *rpc.Server, _ *socket.Lock) error {
			return srv.Serve(ctx, newBreakable(), true)
		})
		if held, ok := errors.AsType[*socket.HeldError](err); ok {
			return &exitError{exitHeld, fmt.Errorf("%w; leave out --isolated to use that one, or choose another --home", held)}
		}
		return err
	}
	conn, err := e.connect(ctx, true)
	if err != nil {
		return err
	}
	return e.forward(ctx, conn, stdio{os.Stdin, os.Stdout})
}

// forward copies both ways: what the client writes as it comes, what the daemon answers in whole messages. The end of stdin is
// told to the daemon, whose last answers still come through.
func (e *environment) forward(ctx context.Context, conn net.Conn, both stdio) error {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	open := newRequests(both)
	go func() {
		io.Copy(io.MultiWriter(&splitter{each: open.sent, out: io.Discard}, conn), both)
		open.leave()
		if u, ok := conn.(*net.UnixConn); ok {
			u.CloseWrite()
		}
	}()
	_, err := io.Copy(&splitter{each: open.answered, out: both}, conn)
	if ctx.Err() != nil || open.leaving() {
		return nil
	}
	return e.lost(ctx, open, err)
}

// lost says that the connection ended before the client wanted it to.
func (e *environment) lost(ctx context.Context, open *requests, err error) error {
	if again, dialled := e.dial(ctx, false, nil); dialled == nil {
		again.Close()
		err = errors.Join(errors.New("the daemon closed the connection"), err)
		return errors.Join(err, open.fail("the daemon closed the connection"))
	}
	if err := open.fail("the daemon went away; start lashd stdio again and repeat the request with the same idempotencyKey"); err != nil {
		return err
	}
	return &exitError{exitNoDaemon, errors.New("the daemon went away; what it acknowledged is kept, and turns go on when it is started again")}
}
