// Package background runs the commands of tasks, and keeps what they put out on disk.
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

// MaxOutput is how much of a task's output is kept, in bytes; what comes after it is dropped.
const MaxOutput = 64 << 20

// Outputs are the outputs of tasks in a private directory, a file each. All methods are safe for concurrent use.
type Outputs struct{ dir string }

// NewOutputs keeps outputs under the state directory of the daemon. It makes nothing yet.
func NewOutputs(stateDir string) *Outputs { return &Outputs{filepath.Join(stateDir, "tasks")} }

// name is the file of a task: ids are chosen by others, so that their hash stands for them. created tells apart tasks that had
// one id in different sessions.
func name(t *protocol.Task) string {
	return string(protocol.DigestOf(fmt.Appendf(nil, "%d\n%s\n%s", t.CreatedAtMs, t.Origin.SessionID, t.ID)))[:40] + ".out"
}

func (o *Outputs) root() (*os.Root, error) {
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return nil, err
	}
	return os.OpenRoot(o.dir)
}

// Writer appends to the output of a task. Whoever opens it closes it.
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

// Remove lets the output of a task go. There may be none.
func (o *Outputs) Remove(t *protocol.Task) error {
	var failed error
	for _, ending := range files {
		if err := os.Remove(o.path(t, ending)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// Names are the files of outputs.
type Names map[string]bool

// Names are those that there are now.
func (o *Outputs) Names() (Names, error) {
	files, err := os.ReadDir(o.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // nothing was ever put out
	}
	all := Names{}
	for _, f := range files {
		all[f.Name()] = true
	}
	return all, err
}

// Keep takes what belongs to a task out of the names.
func (n Names) Keep(t *protocol.Task) {
	for _, ending := range files {
		delete(n, strings.TrimSuffix(name(t), ".out")+ending)
	}
}

// RemoveAll removes the files of all the names.
func (o *Outputs) RemoveAll(n Names) (err error) {
	for name := range n {
		err = errors.Join(err, os.Remove(filepath.Join(o.dir, name)))
	}
	return err
}

// Read reads a part of a task's output, from an offset in bytes, or from the end if that is negative. No character is cut in
// two at its end, unless the limit leaves no room for it: of what is still written, the beginning of one is left for the next
// part. Bytes that are no UTF-8 are replaced.
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

// whole leaves out the beginning of a character at the end, of which the rest comes later.
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

// Writer takes the output of a task. It never fails: the command must not notice that nobody keeps what it says.
type Writer struct {
	mu   sync.Mutex
	file *os.File
	size int64
}

// Write implements io.Writer.
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

// Close makes what was written durable.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.file.Sync(), w.file.Close())
}
