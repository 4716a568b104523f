package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"lashd/rpc/client"
	"lashd/rpc/protocol"
	"lashd/rpc/socket"
)

// link is a connection to a daemon that has said hello.
type link struct {
	*client.Client
	daemon *protocol.InitializeResult
}

const (
	helloTries = 5 // a daemon that was killed may still take connections for a moment, and say nothing on them
	helloPause = 50 * time.Millisecond
)

// dial connects to the daemon; start says whether one is started if there is none. The caller closes the link.
func (e *environment) dial(ctx context.Context, start bool, onEvent func(json.RawMessage)) (*link, error) {
	return e.dialWatching(ctx, start, onEvent, nil)
}

// dialWatching connects as dial does. News of the daemon, which it sends after server/attach, go to watch, unless that is nil.
func (e *environment) dialWatching(ctx context.Context, start bool, onEvent func(json.RawMessage), watch *pluginWatch) (*link, error) {
	var onNews func(json.RawMessage)
	if watch != nil {
		onNews = watch.put
	}
	for try := 1; ; try++ {
		l, err := e.hello(ctx, start, onEvent, onNews)
		if !errors.Is(err, errGone) || try == helloTries || ctx.Err() != nil {
			return l, err
		}
		time.Sleep(helloPause)
	}
}

func (e *environment) hello(ctx context.Context, start bool, onEvent, onNews func(json.RawMessage)) (*link, error) {
	conn, err := e.connect(ctx, start)
	if err != nil {
		return nil, err
	}
	l := &link{Client: client.New(ctx, conn, onEvent, onNews)}
	if l.daemon, err = l.Initialize(ctx, "lashd-cli"); err != nil {
		err = l.reason(err)
		l.Close() // the failure to say hello is the news
		return nil, err
	}
	if theirs := l.daemon.ServerInfo.Version; theirs != Version && !e.warned {
		e.warned = true
		e.note("the daemon runs lashd %s, this is %s; to restart the daemon: lashd call shutdown '{\"daemon\":true}'", theirs, Version)
	}
	return l, nil
}

// reason tells the loss of the connection from answers. A daemon that is being killed may still take connections.
func (l *link) reason(err error) error {
	if client.Lost(err) {
		return errGone
	}
	return err
}

// ask makes one call, with a daemon that is started if need be.
func (e *environment) ask(ctx context.Context, method string, params, result any) error {
	l, err := e.dial(ctx, true, nil)
	if err != nil {
		return err
	}
	defer l.Close()
	return l.Call(ctx, method, params, result)
}

const (
	startWait  = 10 * time.Second       // for a daemon to answer after it was started
	startNote  = time.Second            // after which a person is told what is waited for
	startAgain = 300 * time.Millisecond // after it was seen that another one has the lock
)

// connect reaches the daemon of the data directory, and starts it if there is none.
func (e *environment) connect(ctx context.Context, start bool) (net.Conn, error) {
	conn, err := e.reach(ctx)
	if err == nil || !errors.Is(err, socket.ErrNotListening) {
		return conn, err
	}
	if !start {
		return nil, &exitError{exitNoDaemon, fmt.Errorf("no daemon is listening on %s; start it with lashd serve", e.socket)}
	}
	ended, err := e.spawn()
	if err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	defer time.AfterFunc(startNote, func() { e.note("the daemon is starting; its log is %s", e.logFile()) }).Stop()
	conn, err = e.await(waiting, ended)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, e.notUp()
	}
	return conn, err
}

func (e *environment) notUp() error {
	if held := e.holder(); held != nil {
		return &exitError{exitNoDaemon, fmt.Errorf("%w, and does not answer on %s; it may be busy, or a lashd stdio --isolated", held, e.socket)}
	}
	return &exitError{exitNoDaemon, fmt.Errorf("the daemon does not answer on %s; see %s, or run lashd doctor", e.socket, e.logFile())}
}

// await dials until a daemon answers, or the one that was started has ended for a reason of its own. If that was another one with
// the lock, which does not come to listen, it may have been about to end: then one more is started.
func (e *environment) await(ctx context.Context, ended <-chan error) (net.Conn, error) {
	var again <-chan time.Time
	for wait := 2 * time.Millisecond; ; wait = min(2*wait, 200*time.Millisecond) {
		conn, err := e.reach(ctx)
		if err == nil {
			return conn, nil
		}
		if !errors.Is(err, socket.ErrNotListening) && ctx.Err() == nil {
			return nil, err
		}
		select {
		case err := <-ended:
			if err := e.notStarted(err); err != nil {
				return nil, err
			}
			again = time.After(startAgain)
		case <-again:
			if ended, err = e.spawn(); err != nil {
				return nil, err
			}
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// reach dials the daemon where it is to listen. If nobody said where that is, the runtime directory may be another than the daemon's
// was: then it is dialled where it says that it listens.
func (e *environment) reach(ctx context.Context) (net.Conn, error) {
	conn, err := socket.Dial(ctx, e.socket)
	if e.named || !errors.Is(err, socket.ErrNotListening) {
		return conn, err
	}
	if there := socket.Address(e.home); there != "" && there != e.socket {
		return socket.Dial(ctx, there)
	}
	return nil, err
}

// notStarted says why a daemon that was started has ended. That another one holds the lock is no failure if it listens where
// we dial, or may still come to it.
func (e *environment) notStarted(err error) error {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if ok && exit.ExitCode() == exitHeld {
		return e.heldElsewhere()
	}
	line, _ := lastLine(e.logFile()) // without it, the path has to do
	reason := strings.TrimPrefix(line, "lashd: ")
	return &exitError{exitNoDaemon, fmt.Errorf("the daemon did not start: %s (%s)", reason, e.logFile())}
}

func (e *environment) heldElsewhere() error {
	held := e.holder()
	if held == nil || held.Socket == "" || held.Socket == e.socket || !e.named {
		return nil
	}
	return &exitError{exitNoDaemon, fmt.Errorf("%w, not on %s; set LASHD_SOCKET or --socket to its socket", held, e.socket)}
}

// holder is the process that has the data directory, if there is one.
func (e *environment) holder() *socket.HeldError {
	lock, err := socket.Acquire(e.home)
	if err == nil {
		lock.Release() // it was ours for a moment only
		return nil
	}
	held, _ := errors.AsType[*socket.HeldError](err)
	return held
}

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
