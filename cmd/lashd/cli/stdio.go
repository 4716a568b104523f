package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"lashd/rpc"
	"lashd/rpc/socket"
)

type stdioCommand struct {
	Isolated bool `help:"Run a daemon inside this process, for as long as stdin is open."`
}

// stdio is stdin and stdout as one stream.
type stdio struct {
	io.Reader
	io.Writer
}

func (stdio) Close() error { return errors.Join(os.Stdin.Close(), os.Stdout.Close()) }

func (c stdioCommand) Run(ctx context.Context, e *environment) error {
	both := stdio{os.Stdin, os.Stdout}
	if c.Isolated {
		return e.daemon(ctx, func(ctx context.Context, srv *rpc.Server, _ *socket.Lock) error {
			return srv.Serve(ctx, both, true)
		})
	}
	conn, err := e.connect(ctx, true)
	if err != nil {
		return err
	}
	return forward(ctx, conn, both)
}

// forward copies both ways. The end of stdin is told to the daemon, whose last answers still come through.
func forward(ctx context.Context, conn net.Conn, both stdio) error {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	go func() {
		io.Copy(conn, both)
		if u, ok := conn.(*net.UnixConn); ok {
			u.CloseWrite()
		}
	}()
	_, err := io.Copy(both, conn)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// startWait is how long a daemon may take to answer after it was started.
const startWait = 10 * time.Second

// connect reaches the daemon of the data directory, and starts it if there is none.
func (e *environment) connect(ctx context.Context, start bool) (net.Conn, error) {
	conn, err := socket.Dial(ctx, e.socket)
	if err == nil || !errors.Is(err, socket.ErrNotListening) {
		return conn, err
	}
	if !start {
		return nil, &exitError{exitNoDaemon, fmt.Errorf("no daemon listens on %s; start one with lashd serve", e.socket)}
	}
	ended, err := e.spawn()
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(startWait)
	for wait := 2 * time.Millisecond; ; wait = min(2*wait, 200*time.Millisecond) {
		conn, err := socket.Dial(ctx, e.socket)
		if err == nil {
			return conn, nil
		}
		if !errors.Is(err, socket.ErrNotListening) || time.Now().After(deadline) {
			return nil, &exitError{exitNoDaemon, fmt.Errorf("the daemon did not come up; see %s: %w", e.logFile(), err)}
		}
		select {
		case err := <-ended:
			if err := e.notStarted(err); err != nil {
				return nil, err
			}
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// notStarted says why a daemon that was started has ended. That another one holds the lock is no failure: it answers.
func (e *environment) notStarted(err error) error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == exitHeld {
		return nil
	}
	log, _ := os.ReadFile(e.logFile()) // without it, the path has to do
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	return &exitError{exitNoDaemon, fmt.Errorf("the daemon did not start (%s): %s", e.logFile(), lines[len(lines)-1])}
}

func (e *environment) logFile() string { return filepath.Join(e.home, "lashd.log") }

// spawn starts a daemon that outlives this process, and tells when it ends meanwhile. If several are started at once, the
// lock leaves one.
func (e *environment) spawn() (<-chan error, error) {
	if err := os.MkdirAll(e.home, 0o700); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(e.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "--home", e.home, "--socket", e.socket, "serve")
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, e.home
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return ended, nil
}
