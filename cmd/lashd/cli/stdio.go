package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/rpc"
	"lashd/rpc/socket"
)

// stdioCommand implements lashd stdio, for editors that speak lashd's own
// protocol. It forwards bytes and does not interpret messages, except to know
// which requests are open.
type stdioCommand struct {
	Isolated bool `help:"Serve from this process instead of a daemon, until stdin closes."`
}

// Help is shown by --help.
func (stdioCommand) Help() string {
	return `Messages are JSON-RPC 2.0: one per line, or with Content-Length headers. lashd detects the framing from the first
bytes. docs/protocol.md describes the methods.

lashd forwards the messages to the daemon and starts it if it is not running. Turns continue after stdin closes. If the daemon
dies, open requests fail with an error and the exit code is 5.

With --isolated, no daemon may use the same data directory.

Exit codes: 0 stdin closed, 1 failure, 5 the daemon died. With --isolated also: 65 the database was written by a newer lashd, 74 the
database cannot be written, 75 another lashd uses the data directory.

Example:
  echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"clientInfo":{"name":"me"}}}' | lashd stdio`
}

// stdio joins stdin and stdout to one stream.
type stdio struct {
	io.Reader
	io.Writer
}

// Close closes both ends. It does not interrupt a pending read of stdin; see
// breakable.
func (stdio) Close() error { return errors.Join(os.Stdin.Close(), os.Stdout.Close()) }

// breakable joins stdin and stdout to one stream whose Close interrupts a pending
// read. Closing os.Stdin usually does not do that, and a server that runs in this
// process must end when the daemon stops.
type breakable struct {
	io.ReadCloser
	io.Writer
}

// newBreakable returns stdin and stdout. It reads stdin directly if that is a
// pipe, and else through a goroutine, which may stay blocked until the process
// exits.
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

// Close closes both ends and ends a pending read.
func (b breakable) Close() error { return errors.Join(b.ReadCloser.Close(), os.Stdout.Close()) }

// Run serves until stdin ends and the daemon has answered what is left, or until
// the daemon dies.
func (c stdioCommand) Run(ctx context.Context, e *server) error {
	if c.Isolated {
		err := e.daemon(ctx, func(ctx context.Context, srv *rpc.Server, _ *socket.Lock) error {
			return srv.Serve(ctx, newBreakable(), true)
		})
		if held, ok := errors.AsType[*socket.HeldError](err); ok {
			return console.Exit(console.ExitHeld, fmt.Errorf("%w; omit --isolated to use that daemon, or set another --home", held))
		}
		return err
	}
	conn, err := e.Connect(ctx, true)
	if err != nil {
		return err
	}
	return forward(ctx, e.Environment, conn, stdio{os.Stdin, os.Stdout})
}

// forward copies messages between the client and the daemon until the daemon
// closes conn. Messages of the daemon are written whole, so the client never reads
// half of one before an error. At the end of stdin it closes the write side of
// conn; remaining answers are still forwarded.
func forward(ctx context.Context, e *daemon.Environment, conn net.Conn, both stdio) error {
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
	return lost(ctx, e, open, err)
}

// lost handles a connection that ended too early: it answers the open requests
// with an error and returns the reason. It dials once more to tell a daemon that
// closed this connection from one that has died.
func lost(ctx context.Context, e *daemon.Environment, open *requests, err error) error {
	if again, dialled := e.Dial(ctx, false, nil); dialled == nil {
		again.Close()
		err = errors.Join(errors.New("the daemon closed the connection"), err)
		return errors.Join(err, open.fail("the daemon closed the connection"))
	}
	if err := open.fail("the connection to the daemon was lost; restart lashd stdio and repeat the request with the same idempotencyKey"); err != nil {
		return err
	}
	return console.Exit(console.ExitNoDaemon, errors.New("the connection to the daemon was lost; acknowledged requests are stored, and turns continue when the daemon restarts"))
}
