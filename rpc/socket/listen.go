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

// lookEvery is how often a listener looks whether its socket is still there: often enough that a client which waits for a daemon
// finds it, rarely enough for an idle one.
const lookEvery = 2 * time.Second

// Listener accepts connections from processes of the same user. It is a net.Listener whose Accept fails only when it is closed or
// permanently broken. While Accept waits, it recreates a socket file that was removed.
type Listener struct {
	path    string
	uid     int
	log     *slog.Logger
	refused atomic.Int64

	mu     sync.Mutex
	inner  *net.UnixListener
	file   fs.FileInfo // the socket we made, whatever has its name now
	lock   *Lock       // of the path, so that two data directories cannot share one socket
	failed string      // why the socket could not be made again, as it was logged

	closing sync.Once
	closed  chan struct{}
	err     error // of Close, set once
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

// bind makes the socket under another name, and gives it its own only when its mode is right and it accepts connections. Both
// names are ours alone while we hold the lock of the path.
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
		os.Remove(next) // the failure to install it is the news
		return errors.Join(err, inner.Close())
	}
	l.inner, l.file = inner, file
	return nil
}

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

// look makes the socket again if its path no longer leads to it. Cleaners remove what is in directories for temporary files, and
// some systems all of a user's runtime directory at the last logout. What fails is logged once, and tried again.
func (l *Listener) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, err := os.Lstat(l.path)
	if err == nil && os.SameFile(now, l.file) || l.isClosed() {
		return
	}
	old := l.inner
	if err := l.again(); err != nil {
		if l.failed != err.Error() {
			l.failed = err.Error()
			l.log.Warn("the socket file is missing and cannot be created yet", "socket", l.path, "error", err)
		}
		return
	}
	l.failed = ""
	old.Close() // nobody can reach it
	l.log.Info("the socket file was missing and was created again", "socket", l.path)
}

// again binds as at first. The lock is taken anew if its file went as well; somebody else may have it by now.
func (l *Listener) again() error {
	if err := makePrivate(filepath.Dir(l.path)); err != nil {
		return err
	}
	if !l.lock.stands() {
		lock, err := acquire(l.path+".lock", l.path)
		if err != nil {
			return err
		}
		l.lock.Release() // of a file that is gone
		l.lock = lock
	}
	if conn, err := net.Dial("unix", l.path); err == nil {
		conn.Close() // nothing was written
		return fmt.Errorf("another process listens on %s", l.path)
	}
	return l.bind()
}

func (l *Listener) current() *net.UnixListener {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.inner
}

func (l *Listener) isClosed() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}

// checkReplaceable fails if something that is not a socket is in the way.
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
		inner.SetDeadline(time.Now().Add(lookEvery)) // on a closed one accept says so
		conn, err := inner.AcceptUnix()
		switch {
		case err == nil && l.admit(conn):
			return conn, nil
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded):
			l.look()
		case errors.Is(err, net.ErrClosed) && inner != l.current(): // another Accept has made it again
		case passing(err):
			pause = nextPause(pause)
			l.log.Warn("accept failed; retrying", "error", err, "pause", pause)
			l.sleep(pause)
		default:
			return nil, err
		}
	}
}

// admit closes a connection whose other end is not ours, or will not say whose it is.
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

// nextPause grows from 5ms to 1s.
func nextPause(last time.Duration) time.Duration {
	return min(max(2*last, 5*time.Millisecond), time.Second)
}

// sleep ends early when the listener is closed; the accept that follows then says so.
func (l *Listener) sleep(pause time.Duration) {
	select {
	case <-l.closed:
	case <-time.After(pause):
	}
}

// Refused returns how many connections of other users were closed.
func (l *Listener) Refused() int64 { return l.refused.Load() }

// Addr is the path that clients dial.
func (l *Listener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }

// Close ends Accept and removes the socket file if it is still this listener's. Later calls return the same error.
func (l *Listener) Close() error {
	l.closing.Do(func() {
		close(l.closed)
		l.mu.Lock()
		defer l.mu.Unlock()
		// Removed before it is closed: an open socket keeps its inode number from being used again.
		l.err = errors.Join(l.remove(), l.inner.Close(), l.lock.Release())
	})
	return l.err
}

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
