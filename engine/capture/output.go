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

const (
	keepBytes     = 512_000  // of the output, in memory: half from its beginning, half from its end
	spillBytes    = 50 << 10 // longer output becomes an artifact, and the text shows this much of it
	artifactBytes = 64 << 20 // limit of tool.Host
)

// Output takes what a command writes. What it holds in memory is bounded; the whole, as far as an artifact can hold it, goes
// to a temporary file as soon as it is worth an artifact.
type Output struct {
	host     tool.Host
	progress progress

	mu      sync.Mutex
	head    []byte
	tail    ring
	total   int64
	file    *os.File // nil until there is more than spillBytes
	written int64
	err     error // why the file is not the whole
}

// New begins an output whose progress and artifact go to the host of a call. Who begins it closes it.
func New(host tool.Host) *Output { return &Output{host: host, progress: progress{host: host}} }

// Write implements io.Writer, and never fails: the command must not notice that its output is too long.
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

// spill writes p, and before it all that came earlier, to the file if it is time for that.
func (o *Output) spill(p []byte) {
	if o.err != nil || o.total <= spillBytes {
		return
	}
	if o.file == nil {
		if o.file, o.err = os.CreateTemp("", "lashd-output-*"); o.err != nil {
			return
		}
		// Nameless, it goes away with this process whatever happens. Where that is impossible, Close removes it.
		os.Remove(o.file.Name())
		o.put(o.head)
	}
	o.put(p)
}

func (o *Output) put(p []byte) {
	if o.err != nil {
		return
	}
	fits := min(int64(len(p)), artifactBytes-o.written)
	n, err := o.file.Write(p[:fits])
	o.written += int64(n)
	o.err = err
}

// Close lets go of the temporary file.
func (o *Output) Close() {
	if o.file == nil {
		return
	}
	o.file.Close() // its content was read, or is not wanted
	os.Remove(o.file.Name())
}

// Result is the text for the model and, of a long output, the artifact with the whole. Reading is a slot for one artifact
// in memory at a time.
func (o *Output) Result(ctx context.Context, reading chan struct{}) (text string, ref *protocol.ArtifactRef) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.total <= spillBytes {
		return o.show(spillBytes), nil
	}
	ref, err := o.keep(ctx, reading)
	if err != nil {
		return o.show(keepBytes) + fmt.Sprintf("[The whole output could not be kept: %v.]\n", err), ref
	}
	text = o.show(spillBytes)
	if o.written < o.total {
		text += fmt.Sprintf("[The output has %d bytes; the artifact holds the first %d.]\n", o.total, o.written)
	}
	return text, ref
}

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

// Truncated says whether the text shows less than there was.
func (o *Output) Truncated() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.total > spillBytes
}

// show is at most about limit bytes of the output as text.
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
	return fmt.Sprintf("%s[... %d bytes left out ...]\n%s", line(valid(wholeEnd(head))), gone, line(valid(wholeStart(tail))))
}

// line ends text with a newline, unless it is empty.
func line(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// valid makes text of any bytes. NUL is as good as no text to most readers of JSON.
func valid(b []byte) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(b), "\uFFFD"), "\x00", "\uFFFD")
}

// wholeEnd is b without a last character that is cut off.
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

// wholeStart is b without a first character that is cut off.
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
	buf  []byte
	next int // where the oldest byte is, once buf is full
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
