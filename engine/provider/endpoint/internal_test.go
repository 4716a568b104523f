package endpoint

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func FuzzLines(f *testing.F) {
	f.Add([]byte("data: {}\n\n: x\r\ndata:[DONE]"), uint8(1))
	f.Add(bytes.Repeat([]byte("data: abc"), 100), uint8(7))
	f.Add([]byte("\n\r\n\r"), uint8(3))
	f.Fuzz(func(t *testing.T, in []byte, size uint8) {
		const limit = 500
		l := &lineReader{in: bufio.NewReaderSize(iotest.HalfReader(bytes.NewReader(in)), 16+int(size)), max: limit}
		var got [][]byte
		for {
			line, err := l.next()
			if err != nil {
				if errors.Is(err, errLongLine) && len(in) > limit {
					return
				}
				if !errors.Is(err, io.EOF) {
					t.Fatalf("error %v for %q", err, in)
				}
				break
			}
			payload(line) // must not panic
			got = append(got, bytes.Clone(line))
		}
		want := bytes.Split(in, []byte("\n"))
		if len(want[len(want)-1]) == 0 {
			want = want[:len(want)-1]
		}
		if len(got) != len(want) {
			t.Fatalf("%d lines of %q, want %d", len(got), in, len(want))
		}
		for i := range want {
			if w := bytes.TrimSuffix(want[i], []byte("\r")); !bytes.Equal(got[i], w) {
				t.Errorf("line %d is %q, want %q", i, got[i], w)
			}
		}
	})
}

func TestLongLineIsRefused(t *testing.T) {
	l := &lineReader{in: bufio.NewReaderSize(strings.NewReader(strings.Repeat("x", 1000)), 16), max: 100}
	if _, err := l.next(); !errors.Is(err, errLongLine) {
		t.Errorf("error %v, want %v", err, errLongLine)
	}
}
