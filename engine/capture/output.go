package capture

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"unicode/utf8"

	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// Limits of captured output.
const (
	// keepBytes is the size of output in memory: half from the beginning, half from the
	// end.
	keepBytes = 512_000
	// spillBytes is the size up to which output is shown in full. Longer output becomes an
	// artifact.
	spillBytes = 50 << 10
	// artifactBytes is the largest artifact that tool.Host accepts.
	artifactBytes = 64 << 20
)

// Output captures the output of a command. Memory use is bounded: beyond spillBytes the
// output also goes to a temporary file, from which it becomes an artifact. Write may be
// called from several goroutines.
type Output struct {
	host     tool.Host
	progress progress

	mu    sync.Mutex
	head  []byte
	tail  ring
	total int64
	// file is the temporary file. Nil: there was no need for one.
	file *os.File
	// written is the number of bytes in file.
	written int64
	// err is the reason why file is incomplete.
	err error
}

// New returns an output that sends progress and the artifact to the host of a tool call.
// The caller closes it.
func New(host tool.Host) *Output { return &Output{host: host, progress: progress{host: host}} }

// Write implements io.Writer. It never fails, because the command must not notice that
// output is dropped.
func (o *Output) Write(p []byte) (int, error) {
	o.progress.add(p)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.total += int64(len(p))
	o.spill(p)
	n := min(len(p), keepBytes/2-len(o.head))
	o.head = append(o.head, p[:n]...)
	o.tail.write(p[n:])
	return len(p), nil
}

// spill writes p to the file once the output exceeds spillBytes. The first call also writes
// the earlier output. The caller holds mu.
func (o *Output) spill(p []byte) {
	if o.err != nil || o.total <= spillBytes {
		return
	}
	if o.file == nil {
		if o.file, o.err = os.CreateTemp("", "lashd-output-*"); o.err != nil {
			return
		}
		// Without a name the file disappears with this process. Where open files cannot be removed, Close does it.
		os.Remove(o.file.Name())
		o.put(o.head)
	}
	o.put(p)
}

// put appends to the file, up to artifactBytes.
func (o *Output) put(p []byte) {
	if o.err != nil {
		return
	}
	fits := min(int64(len(p)), artifactBytes-o.written)
	n, err := o.file.Write(p[:fits])
	o.written += int64(n)
	o.err = err
}

// Close removes the temporary file.
func (o *Output) Close() {
	if o.file == nil {
		return
	}
	o.file.Close() // the content has been read or is not needed
	os.Remove(o.file.Name())
}

// Result returns the text for the model and, for long output, the artifact with all of it.
// reading is a semaphore: it limits how many artifacts are in memory at once. Call it after
// the command has ended.
func (o *Output) Result(ctx context.Context, reading chan struct{}) (text string, ref *protocol.ArtifactRef) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.total <= spillBytes {
		return o.show(spillBytes), nil
	}
	ref, err := o.keep(ctx, reading)
	if err != nil {
		return o.show(keepBytes) + fmt.Sprintf("[The complete output could not be stored: %v.]\n", err), ref
	}
	text = o.show(spillBytes)
	if o.written < o.total {
		text += fmt.Sprintf("[The output has %d bytes; the artifact holds the first %d.]\n", o.total, o.written)
	}
	return text, ref
}

// keep writes the artifact. It returns an error if the file is incomplete.
func (o *Output) keep(ctx context.Context, reading chan struct{}) (*protocol.ArtifactRef, error) {
	if o.err != nil {
		return nil, o.err
	}
	reading <- struct{}{}
	defer func() { <-reading }()
	data := make([]byte, o.written)
	if _, err := o.file.ReadAt(data, 0); err != nil {
		return nil, err
	}
	ref, err := o.host.WriteArtifact(ctx, "text/plain", data)
	if err != nil {
		return nil, err
	}
	return &ref, nil
}

// Truncated reports whether the text of Result is only a part of the output.
func (o *Output) Truncated() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.total > spillBytes
}

// show returns the output as text of about limit bytes at most: its beginning and its end.
func (o *Output) show(limit int) string {
	kept := append(append([]byte{}, o.head...), o.tail.bytes()...)
	if o.total <= int64(limit) {
		return line(valid(kept))
	}
	head := kept[:min(limit/2, len(o.head))]
	tail := kept[len(kept)-min(limit/2, len(kept)-len(head)):]
	gone := o.total - int64(len(head)+len(tail))
	if gone == 0 {
		return line(valid(kept))
	}
	return fmt.Sprintf("%s[... %d bytes omitted ...]\n%s", line(valid(wholeEnd(head))), gone, line(valid(wholeStart(tail))))
}

// line ends text with a newline, unless it is empty.
func line(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// valid converts bytes to valid UTF-8. It also replaces NUL, which many JSON readers
// reject.
func valid(b []byte) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(b), "\uFFFD"), "\x00", "\uFFFD")
}

// wholeEnd returns b without an incomplete character at its end.
func wholeEnd(b []byte) []byte {
	for n := 1; n <= min(utf8.UTFMax, len(b)); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-n:]) {
				return b[:len(b)-n]
			}
			return b
		}
	}
	return b
}

// wholeStart returns b without an incomplete character at its beginning.
func wholeStart(b []byte) []byte {
	for n := range min(utf8.UTFMax-1, len(b)) {
		if utf8.RuneStart(b[n]) {
			return b[n:]
		}
	}
	return b
}

// ring holds the last keepBytes/2 bytes written to it.
type ring struct {
	buf []byte
	// next is the position of the oldest byte once buf is full.
	next int
}

func (r *ring) write(p []byte) {
	const size = keepBytes / 2
	p = p[max(0, len(p)-size):]
	n := min(len(p), size-len(r.buf))
	r.buf = append(r.buf, p[:n]...)
	for p = p[n:]; len(p) > 0; p = p[n:] {
		n = copy(r.buf[r.next:], p)
		r.next = (r.next + n) % size
	}
}

func (r *ring) bytes() []byte {
	return append(append([]byte{}, r.buf[r.next:]...), r.buf[:r.next]...)
}
