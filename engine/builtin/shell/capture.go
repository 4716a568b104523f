package shell

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

// capture takes the output of a command. What it holds in memory is bounded; the whole, as far as an artifact can hold
// it, goes to a temporary file as soon as it is worth an artifact.
type capture struct {
	progress *progress

	mu      sync.Mutex
	head    []byte
	tail    ring
	total   int64
	file    *os.File // nil until there is more than spillBytes
	written int64
	err     error // why the file is not the whole
}

// Write implements io.Writer, and never fails: the command must not notice that its output is too long.
func (c *capture) Write(p []byte) (int, error) {
	c.progress.add(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total += int64(len(p))
	c.spill(p)
	n := min(len(p), keepBytes/2-len(c.head))
	c.head = append(c.head, p[:n]...)
	c.tail.write(p[n:])
	return len(p), nil
}

// spill writes p, and before it all that came earlier, to the file if it is time for that.
func (c *capture) spill(p []byte) {
	if c.err != nil || c.total <= spillBytes {
		return
	}
	if c.file == nil {
		if c.file, c.err = os.CreateTemp("", "lashd-output-*"); c.err != nil {
			return
		}
		// Nameless, it goes away with this process whatever happens. Where that is impossible, close removes it.
		os.Remove(c.file.Name())
		c.put(c.head)
	}
	c.put(p)
}

func (c *capture) put(p []byte) {
	if c.err != nil {
		return
	}
	fits := min(int64(len(p)), artifactBytes-c.written)
	n, err := c.file.Write(p[:fits])
	c.written += int64(n)
	c.err = err
}

func (c *capture) close() {
	if c.file == nil {
		return
	}
	c.file.Close() // its content was read, or is not wanted
	os.Remove(c.file.Name())
}

// result is the text for the model and, of a long output, the artifact with the whole. Reading is a slot for one
// artifact in memory at a time.
func (c *capture) result(ctx context.Context, host tool.Host, reading chan struct{}) (text string, ref *protocol.ArtifactRef) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.total <= spillBytes {
		return c.show(spillBytes), nil
	}
	ref, err := c.keep(ctx, host, reading)
	if err != nil {
		return c.show(keepBytes) + fmt.Sprintf("[The whole output could not be kept: %v.]\n", err), ref
	}
	text = c.show(spillBytes)
	if c.written < c.total {
		text += fmt.Sprintf("[The output has %d bytes; the artifact holds the first %d.]\n", c.total, c.written)
	}
	return text, ref
}

func (c *capture) keep(ctx context.Context, host tool.Host, reading chan struct{}) (*protocol.ArtifactRef, error) {
	if c.err != nil {
		return nil, c.err
	}
	reading <- struct{}{}
	defer func() { <-reading }()
	data := make([]byte, c.written)
	if _, err := c.file.ReadAt(data, 0); err != nil {
		return nil, err
	}
	ref, err := host.WriteArtifact(ctx, "text/plain", data)
	if err != nil {
		return nil, err
	}
	return &ref, nil
}

// truncated says whether the text shows less than there was.
func (c *capture) truncated() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total > spillBytes
}

// show is at most about limit bytes of the output as text.
func (c *capture) show(limit int) string {
	kept := append(append([]byte{}, c.head...), c.tail.bytes()...)
	if c.total <= int64(limit) {
		return line(valid(kept))
	}
	head := kept[:min(limit/2, len(c.head))]
	tail := kept[len(kept)-min(limit/2, len(kept)-len(head)):]
	gone := c.total - int64(len(head)+len(tail))
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
