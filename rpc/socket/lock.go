package socket

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

const (
	// lockName is the lock file in the data directory.
	lockName = "lashd.lock"

	// introduction is how long a process waits for the pid of a holder. The holder publishes it just after it has taken the lock.
	introduction = 250 * time.Millisecond
	// lookAgain is the interval between attempts during that time.
	lookAgain = 10 * time.Millisecond
)

// Lock allows one daemon per data directory. The kernel releases it when the process ends in any
// way; child processes do not inherit it. It locks the directory itself, so deleting the lock file
// does not release it. A JSON file beside the lock file names the holder for other processes. It is
// safe for concurrent use.
type Lock struct {
	path string
	file *flock.Flock
	dir  *dirLock // of the data directory; nil for the lock of a socket path
}

// HeldError means that another process has the lock.
type HeldError struct {
	Path   string // lock file
	Pid    int    // 0 if unknown
	Locked string // file or directory that is locked
	Socket string // where the holder listens; empty if it does not listen yet
}

func (e *HeldError) Error() string {
	text := fmt.Sprintf("another lashd holds %s", e.Path)
	switch {
	case e.Pid != 0:
		text += fmt.Sprintf(", pid %d", e.Pid)
	case runtime.GOOS != "windows":
		text += fmt.Sprintf(", pid unknown; find it with: lsof %s", e.Locked)
	}
	if e.Socket != "" {
		text += ", listening on " + e.Socket
	}
	return text
}

// Acquire locks the data directory. It creates the directory if it is missing. The directory must be private. If another process
// holds the lock, Acquire fails with a *HeldError within a fraction of a second and changes nothing.
func Acquire(dataDir string) (*Lock, error) {
	dir, err := filepath.Abs(dataDir)
	if err == nil {
		err = makePrivate(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	l, err := holdDir(dir)
	if err != nil {
		return nil, err
	}
	if err := l.acquire(""); err != nil {
		l.dir.close() // the failure to lock it is the news
		return nil, err
	}
	return l, nil
}

// Hold locks an existing data directory without writing to it, for programs that only read. It fails like Acquire.
func Hold(dataDir string) (*Lock, error) {
	dir, err := filepath.Abs(dataDir)
	if err == nil {
		err = checkPrivate(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	return holdDir(dir)
}

// holdDir locks the directory itself, and creates no file.
func holdDir(dir string) (l *Lock, err error) {
	l = newLock(filepath.Join(dir, lockName))
	if l.dir, err = openDirLock(l.path); err != nil {
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	if err := l.await(dir, l.dir.try); err != nil {
		l.dir.close() // the failure to lock it is the news
		return nil, err
	}
	return l, nil
}

// newLock returns an unlocked Lock for the file at path, which is created when it is locked.
func newLock(path string) *Lock {
	return &Lock{path: path, file: flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))}
}

// Address returns the socket path that the holder of a data directory has published, or "" if no process holds the lock. The
// file may name a process that has ended, so Address checks the lock and may hold it for a moment.
func Address(dataDir string) string {
	dir, err := filepath.Abs(dataDir)
	if err != nil || checkPrivate(dir) != nil {
		return ""
	}
	l := Lock{path: filepath.Join(dir, lockName)}
	if h := l.holder(); h.alive() && isHeld(l.path) {
		return h.Socket
	}
	return ""
}

// isHeld reports whether a process has locked the directory of a lock file.
func isHeld(lockFile string) bool {
	dir, err := openDirLock(lockFile)
	if err != nil {
		return false
	}
	defer dir.close()
	free, err := dir.try()
	return err == nil && !free
}

// acquire locks a file and publishes this process as its holder, with the socket it listens on.
func acquire(path, socket string) (*Lock, error) {
	l := newLock(path)
	return l, l.acquire(socket)
}

// acquire locks the lock file, then publishes this process as the holder.
func (l *Lock) acquire(socket string) error {
	if err := l.await(l.path, l.file.TryLock); err != nil {
		return err
	}
	if err := l.publish(socket); err != nil {
		l.file.Unlock() // the failure to publish is the news
		return err
	}
	return nil
}

// await calls try until this process has the lock or another holder is known. path is what try
// locks, for the error.
func (l *Lock) await(path string, try func() (bool, error)) error {
	for patience := time.Now().Add(introduction); ; time.Sleep(lookAgain) {
		locked, err := try()
		if err != nil {
			return fmt.Errorf("lock %s: %w", l.path, directoryError(err, l.path))
		}
		if locked {
			return nil
		}
		h := l.holder()
		if h.alive() {
			return &HeldError{Path: l.path, Locked: path, Pid: h.Pid, Socket: h.Socket}
		}
		if time.Now().After(patience) { // the holder's info file was deleted, or could not be written because the disk was full
			return &HeldError{Path: l.path, Locked: path, Pid: lockedBy(path)}
		}
	}
}

// directoryError returns a clearer error if one of the files to be written is a directory, else err.
func directoryError(err error, files ...string) error {
	for _, file := range files {
		if info, failed := os.Lstat(file); failed == nil && info.IsDir() {
			return fmt.Errorf("%s is a directory, but lashd stores a file there; move the directory away", file)
		}
	}
	return err
}

// Release releases the lock. The lock file stays, because removing it would let two processes lock two files with the same name.
func (l *Lock) Release() error {
	if l.inPlace() { // otherwise the info file may name another holder
		os.Remove(l.infoPath()) // an info file that stays is recognized as stale by its dead pid
	}
	if err := errors.Join(l.file.Unlock(), l.dir.close()); err != nil {
		return fmt.Errorf("unlock %s: %w", l.path, err)
	}
	return nil
}

// inPlace reports whether other processes would find this lock at its path; the file may have been
// removed.
func (l *Lock) inPlace() bool {
	if !l.file.Locked() {
		return false
	}
	ours, err := l.file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(l.path)
	return err == nil && os.SameFile(ours, there)
}

// holder is the content of the info file: what the holder of a lock publishes about itself.
type holder struct {
	Pid    int    `json:"pid"`
	Socket string `json:"socket,omitempty"`
	// Dir is the directory of the lock file. A copy of the info file in another directory names the
	// same process, which does not hold the lock there.
	Dir string `json:"dir,omitempty"`
}

// infoPath returns the path of the info file.
func (l *Lock) infoPath() string { return InfoFile(filepath.Dir(l.path)) }

// InfoFile returns the path of the file that describes the holder of the lock of a data directory.
func InfoFile(dir string) string { return filepath.Join(dir, lockName+".json") }

// publish replaces the info file atomically. On a full disk it removes the file instead and
// succeeds, because only the lock counts.
func (l *Lock) publish(socket string) error {
	data, err := json.Marshal(holder{Pid: os.Getpid(), Socket: socket, Dir: filepath.Dir(l.path)})
	if err != nil {
		return err
	}
	next := l.infoPath() + "~"
	if err = os.WriteFile(next, data, 0o600); err == nil {
		err = os.Rename(next, l.infoPath())
	}
	if errors.Is(err, syscall.ENOSPC) {
		os.Remove(next)
		os.Remove(l.infoPath()) // it may name another process
		return nil
	}
	if err != nil {
		return fmt.Errorf("publish holder of %s: %w", l.path, directoryError(err, l.infoPath(), next))
	}
	return nil
}

// holder reads the info file. An unreadable file, or one that was copied from another directory, means
// that the holder is unknown.
func (l *Lock) holder() holder {
	var h holder
	data, err := os.ReadFile(l.infoPath())
	if err != nil || json.Unmarshal(data, &h) != nil || h.elsewhere(filepath.Dir(l.path)) {
		return holder{}
	}
	return h
}

// elsewhere reports whether h was published in another directory than dir. A directory that was moved
// since then is still the same one.
func (h holder) elsewhere(dir string) bool {
	published, err := os.Stat(h.Dir)
	if err != nil {
		return false
	}
	here, err := os.Stat(dir)
	return err == nil && !os.SameFile(published, here)
}

// alive reports whether the process exists. It is false for the name that a crashed holder left
// behind.
func (h holder) alive() bool { return h.Pid > 0 && processExists(h.Pid) }
