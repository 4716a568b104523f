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

// link is a connection to a daemon that has answered initialize. It is safe for
// concurrent use. The caller that opens a link closes it.
type link struct {
	*client.Client
	daemon *protocol.InitializeResult // version, data directory and database epoch of the daemon
}

const (
	helloTries = 5 // a killed daemon may still accept connections for a moment without answering
	helloPause = 50 * time.Millisecond
)

// dial connects to the daemon. If no daemon is running and start is set, it starts
// one. Events go to onEvent, which may be nil and must not block. The caller
// closes the link. Without a daemon the error has exitNoDaemon.
func (e *environment) dial(ctx context.Context, start bool, onEvent func(json.RawMessage)) (*link, error) {
	return e.dialWatching(ctx, start, onEvent, nil)
}

// dialWatching does the same as dial. Events of the daemon itself, which it sends
// after server/attach, go to watch, which may be nil. It retries a few times if
// the connection is lost during initialize.
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

// hello connects once and calls initialize. It prints a note, once per process, if
// the daemon has another version. A newer daemon still serves this client, so that
// is not an error.
func (e *environment) hello(ctx context.Context, start bool, onEvent, onNews func(json.RawMessage)) (*link, error) {
	conn, err := e.connect(ctx, start)
	if err != nil {
		return nil, err
	}
	l := &link{Client: client.New(ctx, conn, onEvent, onNews)}
	if l.daemon, err = l.Initialize(ctx, "lashd-cli"); err != nil {
		err = l.reason(err)
		l.Close() // the first error matters
		return nil, err
	}
	if theirs := l.daemon.ServerInfo.Version; theirs != Version && !e.warned {
		e.warned = true
		e.note("the daemon runs lashd %s, this is %s; to restart the daemon: lashd call shutdown '{\"daemon\":true}'", theirs, Version)
	}
	return l, nil
}

// reason returns errGone if err means that the connection was lost, and else err.
// Callers compare with errGone to decide whether to reconnect.
func (l *link) reason(err error) error {
	if client.Lost(err) {
		return errGone
	}
	return err
}

// ask calls one method on a connection of its own. It starts the daemon if it is
// not running. Commands with a single request use it.
func (e *environment) ask(ctx context.Context, method string, params, result any) error {
	l, err := e.dial(ctx, true, nil)
	if err != nil {
		return err
	}
	defer l.Close()
	return l.Call(ctx, method, params, result)
}

const (
	startWait  = 10 * time.Second       // limit for a started daemon to answer
	startNote  = time.Second            // delay before a note says that the daemon is starting
	startAgain = 300 * time.Millisecond // delay before another attempt if another process holds the lock
)

// connect opens a connection to the daemon of the data directory. If no daemon is
// running, it starts one and waits up to startWait for it. Without start, it fails
// with exitNoDaemon. If another process starts a daemon at the same moment, it
// connects to that one.
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

// notUp returns the error for a daemon that did not answer in time. It names the
// process that holds the lock, if there is one.
func (e *environment) notUp() error {
	if held := e.holder(); held != nil {
		return &exitError{exitNoDaemon, fmt.Errorf("%w, and does not answer on %s; it may be busy, or a lashd stdio --isolated", held, e.socket)}
	}
	return &exitError{exitNoDaemon, fmt.Errorf("the daemon does not answer on %s; see %s, or run lashd doctor", e.socket, e.logFile())}
}

// await dials until a daemon answers or the started daemon exits with an error;
// ended receives its exit. If the started daemon exits because another process
// holds the lock, that process may be about to exit without listening. After
// startAgain, await starts one more daemon. The pause between attempts grows from
// 2 to 200 ms.
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

// reach dials the daemon at e.socket. The daemon may use another default address
// if it was started with another XDG_RUNTIME_DIR. So, unless the user named a
// socket, reach also tries the address that the daemon has published in the data
// directory.
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

// notStarted returns why a started daemon has exited. It returns nil if another
// process holds the lock and may listen where e dials.
func (e *environment) notStarted(err error) error {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if ok && exit.ExitCode() == exitHeld {
		return e.heldElsewhere()
	}
	line, _ := lastLine(e.logFile()) // if it fails, the error has only the path of the log
	reason := strings.TrimPrefix(line, "lashd: ")
	return &exitError{exitNoDaemon, fmt.Errorf("the daemon did not start: %s (log: %s)", reason, e.logFile())}
}

// heldElsewhere returns an error if the process that holds the lock listens on
// another socket than the one the user named. Otherwise it returns nil: that
// process may answer soon.
func (e *environment) heldElsewhere() error {
	held := e.holder()
	if held == nil || held.Socket == "" || held.Socket == e.socket || !e.named {
		return nil
	}
	return &exitError{exitNoDaemon, fmt.Errorf("%w, not on %s; set LASHD_SOCKET or --socket to its socket", held, e.socket)}
}

// holder describes the process that holds the lock of the data directory, or
// returns nil. It takes the lock for a moment to find out.
func (e *environment) holder() *socket.HeldError {
	lock, err := socket.Acquire(e.home)
	if err == nil {
		lock.Release()
		return nil
	}
	held, _ := errors.AsType[*socket.HeldError](err)
	return held
}

// spawn starts a daemon that outlives this process and logs to lashd.log. The
// returned channel receives its exit. If several processes start a daemon at once,
// the lock of the data directory lets one of them run; the others exit with
// exitHeld.
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
