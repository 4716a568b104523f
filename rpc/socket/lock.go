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
	lockName = "lashd.lock"

	// A holder names itself just after it has locked. Whoever comes in between waits this long for the name.
	introduction = 250 * time.Millisecond
	lookAgain    = 10 * time.Millisecond
)

// Lock allows one daemon per data directory. The kernel releases it when the process ends in any way; child processes do not
// inherit it. It locks the directory itself, so deleting the lock file does not release it.
type Lock struct {
	path string
	file *flock.Flock
	dir  *dirLock // of the data directory; nil for another lock
}

// HeldError says that another process has the lock.
type HeldError struct {
	Path   string // the lock file
	Pid    int    // 0 if unknown
	Locked string // the file or directory that is locked
	Socket string // where the holder listens; empty if it does not yet
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

// holdDir locks the directory itself.
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

func newLock(path string) *Lock {
	return &Lock{path: path, file: flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))}
}

// Address returns the socket path that the holder of a data directory has published, or "" if no process holds the lock. A copied
// directory may name the holder of the original, so Address checks the lock and may hold it for a moment.
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

// acquire locks a file and names this process as its holder.
func acquire(path, socket string) (*Lock, error) {
	l := newLock(path)
	return l, l.acquire(socket)
}

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

// await tries to lock what is at path until it is clear who else has it locked.
func (l *Lock) await(path string, try func() (bool, error)) error {
	for patience := time.Now().Add(introduction); ; time.Sleep(lookAgain) {
		locked, err := try()
		if err != nil {
			return fmt.Errorf("lock %s: %w", l.path, inTheWay(err, l.path))
		}
		if locked {
			return nil
		}
		h := l.holder()
		if h.alive() {
			return &HeldError{Path: l.path, Locked: path, Pid: h.Pid, Socket: h.Socket}
		}
		if time.Now().After(patience) { // its name was deleted, or there was no space for it
			return &HeldError{Path: l.path, Locked: path, Pid: lockedBy(path)}
		}
	}
}

// inTheWay is err, or which of the files that are to be written is a directory.
func inTheWay(err error, files ...string) error {
	for _, file := range files {
		if info, failed := os.Lstat(file); failed == nil && info.IsDir() {
			return fmt.Errorf("%s is a directory, but lashd stores a file there; move the directory away", file)
		}
	}
	return err
}

// Release releases the lock. The lock file stays, because removing it would let two processes lock two files with the same name.
func (l *Lock) Release() error {
	if l.stands() { // or else another one's name may be there
		os.Remove(l.infoPath()) // a stale one is recognised by its dead pid
	}
	if err := errors.Join(l.file.Unlock(), l.dir.close()); err != nil {
		return fmt.Errorf("unlock %s: %w", l.path, err)
	}
	return nil
}

// stands reports whether it is the lock that others would find at the path: the file may have been removed.
func (l *Lock) stands() bool {
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

// holder is what the process that has the lock tells the others, in a file beside it.
type holder struct {
	Pid    int    `json:"pid"`
	Socket string `json:"socket,omitempty"`
}

func (l *Lock) infoPath() string { return l.path + ".json" }

// publish replaces the info file whole, so that nobody reads half of it. On a full disk there is none: it is the lock that counts.
func (l *Lock) publish(socket string) error {
	data, err := json.Marshal(holder{Pid: os.Getpid(), Socket: socket})
	if err != nil {
		return err
	}
	next := l.infoPath() + "~"
	if err = os.WriteFile(next, data, 0o600); err == nil {
		err = os.Rename(next, l.infoPath())
	}
	if errors.Is(err, syscall.ENOSPC) {
		os.Remove(next)
		os.Remove(l.infoPath()) // it would name another
		return nil
	}
	if err != nil {
		return fmt.Errorf("publish holder of %s: %w", l.path, inTheWay(err, l.infoPath(), next))
	}
	return nil
}

// holder reads the info file; what cannot be read is no holder.
func (l *Lock) holder() holder {
	var h holder
	data, err := os.ReadFile(l.infoPath())
	if err != nil || json.Unmarshal(data, &h) != nil {
		return holder{}
	}
	return h
}

// alive is false for the name that a crashed holder left behind.
func (h holder) alive() bool { return h.Pid > 0 && processExists(h.Pid) }
