package socket

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// checkInterval is how often a listener checks that its socket file still exists. It is short enough
// that a client which waits for the daemon finds it, and long enough for an idle daemon.
const checkInterval = 2 * time.Second

// Listener accepts connections from processes of the same user. It is a net.Listener whose Accept
// fails only when it is closed or permanently broken. While Accept waits, it recreates a socket
// file that was removed, since clients find the daemon only by the file. mu guards the fields below
// it.
type Listener struct {
	path    string
	uid     int
	log     *slog.Logger
	refused atomic.Int64 // connections of other users

	mu     sync.Mutex
	inner  *net.UnixListener
	file   fs.FileInfo // the socket file that this listener created
	lock   *Lock       // of the socket path, so that two data directories cannot share one socket
	failed string      // last logged reason why the socket could not be recreated

	closing sync.Once
	closed  chan struct{}
	err     error // result of Close
}

// Listen creates the socket at path and publishes the path as the address of the holder of lock. It replaces the socket of a
// crashed daemon, and nothing else. It creates the directory if it is missing; the directory must be private. Close the
// listener before you release the lock.
func Listen(lock *Lock, path string, log *slog.Logger) (*Listener, error) {
	l, err := listen(path, log)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if err := lock.publish(l.path); err != nil {
		return nil, errors.Join(fmt.Errorf("listen: %w", err), l.Close())
	}
	return l, nil
}

// listen locks the path and creates the socket.
func listen(path string, log *slog.Logger) (*Listener, error) {
	path, err := resolve(path)
	if err != nil {
		return nil, err
	}
	if err := makePrivate(filepath.Dir(path)); err != nil {
		return nil, err
	}
	lock, err := acquire(path+".lock", path)
	if err != nil {
		return nil, err
	}
	l := &Listener{path: path, lock: lock, uid: os.Geteuid(), log: log, closed: make(chan struct{})}
	if err := l.bind(); err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	return l, nil
}

// bind creates the socket under a temporary name. It gets its real name only when its mode is right
// and it accepts connections, so clients never see a socket that rejects them. The lock of the path
// protects both names.
func (l *Listener) bind() error {
	next := l.path + "~"
	for _, name := range []string{l.path, next} {
		if err := checkReplaceable(name); err != nil {
			return err
		}
	}
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	inner, err := listenUnix(next)
	if err != nil {
		return err
	}
	file, err := l.install(next)
	if err != nil {
		os.Remove(next) // the error of install matters more
		return errors.Join(err, inner.Close())
	}
	l.inner, l.file = inner, file
	return nil
}

// install sets the mode of the socket file and renames it to the real name.
func (l *Listener) install(name string) (fs.FileInfo, error) {
	if err := os.Chmod(name, 0o600); err != nil {
		return nil, err
	}
	file, err := os.Lstat(name)
	if err != nil {
		return nil, err
	}
	return file, os.Rename(name, l.path)
}

// restoreFile recreates the socket if its path no longer leads to it. Cleanup jobs remove files in
// temporary directories, and some systems remove a user's runtime directory at the last logout. A
// failure is logged once and tried again.
func (l *Listener) restoreFile() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, err := os.Lstat(l.path)
	if err == nil && os.SameFile(now, l.file) || l.isClosed() {
		return
	}
	old := l.inner
	if err := l.rebind(); err != nil {
		if l.failed != err.Error() {
			l.failed = err.Error()
			l.log.Warn("the socket file is missing and cannot be created yet", "socket", l.path, "error", err)
		}
		return
	}
	l.failed = ""
	old.Close() // unreachable without a file
	l.log.Info("the socket file was missing and was created again", "socket", l.path)
}

// rebind creates the socket once more. If the lock file is gone too, it takes the lock rebind, which
// fails if another process has it now.
func (l *Listener) rebind() error {
	if err := makePrivate(filepath.Dir(l.path)); err != nil {
		return err
	}
	if !l.lock.inPlace() {
		lock, err := acquire(l.path+".lock", l.path)
		if err != nil {
			return err
		}
		l.lock.Release() // of the deleted file
		l.lock = lock
	}
	if conn, err := net.Dial("unix", l.path); err == nil {
		conn.Close() // nothing was written
		return fmt.Errorf("another process listens on %s", l.path)
	}
	return l.bind()
}

// current returns the socket that accepts connections now.
func (l *Listener) current() *net.UnixListener {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.inner
}

// isClosed reports whether Close was called.
func (l *Listener) isClosed() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}

// checkReplaceable fails if the path exists and is not a socket.
func checkReplaceable(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s exists and is not a socket (%s); move it away, or set LASHD_SOCKET", path, info.Mode())
	}
	return nil
}

// Accept returns the next connection of the same user. It closes connections of other users unread, counts and logs them. If the
// process runs out of file descriptors, it waits until some are free.
func (l *Listener) Accept() (net.Conn, error) {
	var pause time.Duration
	for {
		inner := l.current()
		inner.SetDeadline(time.Now().Add(checkInterval)) // if the socket is closed, AcceptUnix reports it
		conn, err := inner.AcceptUnix()
		switch {
		case err == nil && l.admit(conn):
			return conn, nil
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded):
			l.restoreFile()
		case errors.Is(err, net.ErrClosed) && inner != l.current(): // restoreFile has replaced the socket
		case temporary(err):
			pause = nextPause(pause)
			l.log.Warn("accept failed; retrying", "error", err, "pause", pause)
			l.sleep(pause)
		default:
			return nil, err
		}
	}
}

// admit reports whether the peer runs as the same user. It closes the connection of another user,
// or of a peer whose user is unknown.
func (l *Listener) admit(conn *net.UnixConn) bool {
	peer, err := PeerOf(conn)
	if err == nil && peer.UID == l.uid {
		return true
	}
	l.refused.Add(1)
	l.log.Warn("connection refused", "uid", peer.UID, "error", err)
	conn.Close() // nothing was written that could be lost
	return false
}

// nextPause returns the next pause between failed accepts: 5 ms, doubled up to 1 s.
func nextPause(last time.Duration) time.Duration {
	return min(max(2*last, 5*time.Millisecond), time.Second)
}

// sleep waits, or returns early when the listener is closed.
func (l *Listener) sleep(pause time.Duration) {
	select {
	case <-l.closed:
	case <-time.After(pause):
	}
}

// Refused returns how many connections of other users were closed.
func (l *Listener) Refused() int64 { return l.refused.Load() }

// Addr returns the path that clients dial.
func (l *Listener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }

// Close ends Accept, removes the socket file if it still belongs to this listener, and releases the
// lock of the path. Later calls return the same error.
func (l *Listener) Close() error {
	l.closing.Do(func() {
		close(l.closed)
		l.mu.Lock()
		defer l.mu.Unlock()
		// Remove it before closing: while the socket is open, its inode number cannot be reused.
		l.err = errors.Join(l.remove(), l.inner.Close(), l.lock.Release())
	})
	return l.err
}

// remove deletes the socket file if it is still the one that this listener created.
func (l *Listener) remove() error {
	file, err := os.Lstat(l.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(file, l.file) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.Remove(l.path)
}
