// Package background runs the commands of tasks and monitors, and stores their output on
// disk.
package background

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"unicode/utf8"

	"lashd/rpc/protocol"
)

// MaxOutput is the number of bytes of a task's output that are stored. Later output is
// dropped.
const MaxOutput = 64 << 20

// Outputs stores the output of tasks in a private directory, with one file for each task.
// All methods are safe for concurrent use.
type Outputs struct{ dir string }

// NewOutputs returns the outputs below the daemon's state directory. It creates no files.
func NewOutputs(stateDir string) *Outputs { return &Outputs{filepath.Join(stateDir, "tasks")} }

// name returns the file name of a task's output. It is a hash, because clients choose the
// ids. The creation time keeps apart tasks that had the same id in different sessions.
func name(t *protocol.Task) string {
	return string(protocol.DigestOf(fmt.Appendf(nil, "%d\n%s\n%s", t.CreatedAtMs, t.Origin.SessionID, t.ID)))[:40] + ".out"
}

// root creates and opens the directory. The caller closes it.
func (o *Outputs) root() (*os.Root, error) {
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return nil, err
	}
	return os.OpenRoot(o.dir)
}

// Writer opens the output of a task for appending. The caller closes it.
func (o *Outputs) Writer(t *protocol.Task) (*Writer, error) {
	root, err := o.root()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(name(t), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	return &Writer{file: f, size: fi.Size()}, nil
}

// Remove deletes the files of a task, if there are any.
func (o *Outputs) Remove(t *protocol.Task) error {
	var failed error
	for _, ending := range files {
		if err := os.Remove(o.path(t, ending)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// Names is a set of file names in the outputs directory. Startup uses it to find files
// without a task.
type Names map[string]bool

// Names returns the names of all files.
func (o *Outputs) Names() (Names, error) {
	files, err := os.ReadDir(o.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // no task has ever written output
	}
	all := Names{}
	for _, f := range files {
		all[f.Name()] = true
	}
	return all, err
}

// Keep removes the files of a task from the set, so RemoveAll leaves them.
func (n Names) Keep(t *protocol.Task) {
	for _, ending := range files {
		delete(n, strings.TrimSuffix(name(t), ".out")+ending)
	}
}

// RemoveAll deletes the files in the set and joins the errors.
func (o *Outputs) RemoveAll(n Names) (err error) {
	for name := range n {
		err = errors.Join(err, os.Remove(filepath.Join(o.dir, name)))
	}
	return err
}

// Read returns up to limit bytes of a task's output from an offset in bytes. A negative
// offset counts from the end. A missing file is an empty output.
//
// Read does not split a UTF-8 character at the end of a part, unless limit is too small for
// it. While the task writes, an incomplete last character is left for the next part.
// Invalid UTF-8 is replaced.
func (o *Outputs) Read(t *protocol.Task, offset int64, limit int) (*protocol.TaskOutputResult, error) {
	f, err := os.Open(filepath.Join(o.dir, name(t)))
	if errors.Is(err, fs.ErrNotExist) {
		return &protocol.TaskOutputResult{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	r := &protocol.TaskOutputResult{Size: fi.Size()}
	if r.Offset = min(offset, r.Size); offset < 0 {
		r.Offset = max(r.Size+offset, 0)
	}
	buf := make([]byte, min(int64(limit), r.Size-r.Offset))
	n, err := f.ReadAt(buf, r.Offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	buf = buf[:n]
	r.Full = r.Size >= MaxOutput
	atEnd := r.Offset+int64(n) == r.Size
	if chars := whole(buf); !atEnd && len(chars) > 0 || atEnd && !r.Full && !t.State.Final() {
		buf = chars
	}
	r.Text, r.NextOffset = strings.ToValidUTF8(string(buf), "\uFFFD"), r.Offset+int64(len(buf))
	return r, nil
}

// whole returns b without an incomplete UTF-8 character at its end.
func whole(b []byte) []byte {
	for i := len(b) - 1; i >= 0 && i > len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return b[:i]
			}
			break
		}
	}
	return b
}

// Writer appends to the output of a task. Its Write never fails, because the command must
// not notice that its output is dropped. It is safe for concurrent use.
type Writer struct {
	mu   sync.Mutex
	file *os.File
	size int64
}

// Write implements io.Writer. It drops bytes beyond MaxOutput and after a write error.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := min(int64(len(p)), max(MaxOutput-w.size, 0))
	if _, err := w.file.Write(p[:n]); err != nil {
		n = 0
	}
	w.size += n
	return len(p), nil
}

// Close syncs and closes the file.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.file.Sync(), w.file.Close())
}
