package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/installation"
	"lashd/internal/pathresolve"
	"lashd/rpc/client"
	"lashd/rpc/protocol"
	"lashd/rpc/socket"
)

// Link is a connection to a daemon that has answered initialize. It is safe for
// concurrent use. The caller that opens a link closes it.
type Link struct {
	*client.Client
	Daemon *protocol.InitializeResult // version, data directory and database epoch of the daemon
}

const (
	helloTries = 5 // a killed daemon may still accept connections for a moment without answering
	helloPause = 50 * time.Millisecond
)

// ErrGone means that the connection to the daemon was lost. The caller may connect
// again. If it gives up, the process exits with console.ExitNoDaemon.
var ErrGone error = console.Exit(console.ExitNoDaemon, errors.New("the connection to the daemon was lost"))

// Dial connects to the daemon. If no daemon is running and start is set, it starts
// one. Events go to onEvent, which may be nil and must not block. The caller
// closes the link. Without a daemon the error has console.ExitNoDaemon.
func (e *Environment) Dial(ctx context.Context, start bool, onEvent func(json.RawMessage)) (*Link, error) {
	return e.DialWatching(ctx, start, onEvent, nil)
}

// DialWatching does the same as Dial. Events of the daemon itself, which it sends
// after server/attach, go to onNews, which may be nil. It retries a few times if
// the connection is lost during initialize.
func (e *Environment) DialWatching(ctx context.Context, start bool, onEvent func(json.RawMessage), onNews func(json.RawMessage)) (*Link, error) {
	for try := 1; ; try++ {
		l, err := e.hello(ctx, start, onEvent, onNews)
		if !errors.Is(err, ErrGone) || try == helloTries || ctx.Err() != nil {
			return l, err
		}
		time.Sleep(helloPause)
	}
}

// hello connects once and calls initialize. It prints a note, once per process, if
// the daemon has another version. A newer daemon still serves this client, so that
// is not an error.
func (e *Environment) hello(ctx context.Context, start bool, onEvent, onNews func(json.RawMessage)) (*Link, error) {
	conn, err := e.Connect(ctx, start)
	if err != nil {
		return nil, err
	}
	l := &Link{Client: client.New(ctx, conn, onEvent, onNews)}
	if l.Daemon, err = l.Initialize(ctx, "lashd-cli"); err != nil {
		err = l.Reason(err)
		l.Close() // the first error matters
		return nil, err
	}
	if theirs := l.Daemon.ServerInfo.Version; theirs != Version && !e.Warned {
		e.Warned = true
		e.Note("%s", e.otherVersion(ctx, theirs))
	}
	return l, nil
}

// Reason returns ErrGone if err means that the connection was lost or that the daemon
// stops, and else err. Callers compare with ErrGone to decide whether to reconnect.
func (l *Link) Reason(err error) error {
	if client.Lost(err) {
		return ErrGone
	}
	if _, data := console.WireError(err); data != nil && data.Kind == protocol.KindShuttingDown {
		return ErrGone
	}
	return err
}

// Ask calls one method on a connection of its own. It starts the daemon if it is
// not running. Commands with a single request use it.
func (e *Environment) Ask(ctx context.Context, method string, params, result any) error {
	return e.AskDoing(ctx, "waiting for lashd", "Ctrl-C stops waiting", method, params, result)
}

// AskDoing does the same as Ask. A request that takes over a second shows what the
// command does, and how to stop it.
func (e *Environment) AskDoing(ctx context.Context, doing, stop, method string, params, result any) error {
	l, err := e.Dial(ctx, true, nil)
	if err != nil {
		return err
	}
	defer l.Close()
	progress := console.Begin(doing, stop)
	defer progress.End()
	return l.Call(ctx, method, params, result)
}

const (
	startWait  = 10 * time.Second       // limit for a started daemon to answer
	startAgain = 300 * time.Millisecond // delay before another attempt if another process holds the lock
)

// Connect opens a connection to the daemon of the data directory. If no daemon is
// running, it starts one and waits up to startWait for it. Without start, it fails
// with console.ExitNoDaemon. If another process starts a daemon at the same moment, it
// connects to that one.
func (e *Environment) Connect(ctx context.Context, start bool) (net.Conn, error) {
	conn, err := e.reach(ctx)
	if err == nil || !errors.Is(err, socket.ErrNotListening) {
		return conn, err
	}
	if !start {
		return nil, console.Exit(console.ExitNoDaemon, fmt.Errorf("no daemon is listening on %s; start it with lashd serve", e.Socket))
	}
	ended, err := e.spawn()
	if err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	progress := console.Begin("starting lashd; its log is "+e.LogFile(), "Ctrl-C gives up; lashd starts anyway")
	defer progress.End()
	conn, err = e.await(waiting, ended)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, e.notUp()
	}
	return conn, err
}

// notUp returns the error for a daemon that did not answer in time. It names the
// process that holds the lock, if there is one.
func (e *Environment) notUp() error {
	if held := e.holder(); held != nil {
		return console.Exit(console.ExitNoDaemon, fmt.Errorf("%w, and does not answer on %s; it may be busy, or a lashd stdio --isolated", held, e.Socket))
	}
	return console.Exit(console.ExitNoDaemon, fmt.Errorf("the daemon does not answer on %s; see %s, or run lash doctor", e.Socket, e.LogFile()))
}

// await dials until a daemon answers or the started daemon exits with an error;
// ended receives its exit. If the started daemon exits because another process
// holds the lock, that process may be about to exit without listening; or someone has
// stopped it. After startAgain, await starts one more daemon. The pause between attempts grows from
// 2 to 200 ms.
func (e *Environment) await(ctx context.Context, ended <-chan error) (net.Conn, error) {
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
func (e *Environment) reach(ctx context.Context) (net.Conn, error) {
	conn, err := socket.Dial(ctx, e.Socket)
	if e.Named || !errors.Is(err, socket.ErrNotListening) {
		return conn, err
	}
	if there := socket.Address(e.Home); there != "" && there != e.Socket {
		return socket.Dial(ctx, there)
	}
	return nil, err
}

// notStarted returns why a started daemon has exited. It returns nil if someone has
// stopped it, or if another process holds the lock and may listen where e dials.
func (e *Environment) notStarted(err error) error {
	if err == nil {
		return nil
	}
	exited, ok := errors.AsType[*exec.ExitError](err)
	if ok && exited.ExitCode() == console.ExitHeld {
		return e.heldElsewhere()
	}
	line, _ := lastLine(e.LogFile()) // if it fails, the error has only the path of the log
	reason := strings.TrimPrefix(line, "lashd: ")
	return console.Exit(console.ExitNoDaemon, fmt.Errorf("the daemon did not start: %s (log: %s)", reason, e.LogFile()))
}

// heldElsewhere returns an error if the process that holds the lock listens on
// another socket than the one the user named. Otherwise it returns nil: that
// process may answer soon.
func (e *Environment) heldElsewhere() error {
	held := e.holder()
	if held == nil || held.Socket == "" || held.Socket == e.Socket || !e.Named {
		return nil
	}
	return console.Exit(console.ExitNoDaemon, fmt.Errorf("%w, not on %s; set LASHD_SOCKET or --socket to its socket", held, e.Socket))
}

// holder describes the process that holds the lock of the data directory, or
// returns nil. It takes the lock for a moment to find out.
func (e *Environment) holder() *socket.HeldError {
	lock, err := socket.Acquire(e.Home)
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
// console.ExitHeld.
func (e *Environment) spawn() (<-chan error, error) {
	if err := os.MkdirAll(e.Home, 0o700); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(e.LogFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	program, err := e.Program()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, "--home", e.Home, "--socket", e.Socket, "serve")
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, e.Home
	Detach(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return ended, nil
}

// Program returns the path of lashd: this program, if it is lashd; else the one beside this program or, without it, the one in PATH.
// After an upgrade, that is the new one, so that a chat of the old version never starts an old daemon.
func (e *Environment) Program() (string, error) {
	self, err := os.Executable()
	if err != nil || e.Name == "lashd" {
		return self, err
	}
	if real, err := pathresolve.Real(self); err == nil {
		self = installation.Stable(real)
	}
	beside := filepath.Join(filepath.Dir(self), "lashd"+executableSuffix)
	if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
		return beside, nil
	}
	found, err := exec.LookPath("lashd")
	if err != nil {
		return "", fmt.Errorf("the daemon's program lashd is neither beside %s nor in PATH; install lash and lashd together", self)
	}
	return found, nil
}
