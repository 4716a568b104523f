package frame

import (
	"bufio"
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sourcegraph/jsonrpc2"
)

var smallEvent = []byte(`{"jsonrpc":"2.0","method":"session/event","params":{"sessionId":"01989d3e-7a11-7c3e-8d7e-1f2a3b4c5d6e",` +
	`"type":"item/delta","itemId":"i17","offset":1234,"text":"hello world"}}`)

// BenchmarkEventsToPipe compares with the floor: a bufio.Writer that writes the same bytes.
func BenchmarkEventsToPipe(b *testing.B) {
	floor := eventRate(b, b.N, func(w *os.File, n int) {
		buf := bufio.NewWriterSize(w, chunkSize)
		for range n {
			buf.Write(smallEvent)
			buf.WriteByte('\n')
		}
		buf.Flush()
		w.Close()
	})
	b.ReportAllocs()
	b.ResetTimer()
	rate := eventRate(b, b.N, func(w *os.File, n int) {
		s := New(half{w}, Config{})
		ran := make(chan error)
		go func() { ran <- s.Run(context.Background()) }()
		for range n {
			if err := s.WriteRaw(b.Context(), smallEvent); err != nil {
				b.Error(err)
			}
		}
		for !s.out.empty() { // Close gives only a second
			time.Sleep(10 * time.Microsecond)
		}
		s.Close()
		<-ran
	})
	b.ReportMetric(rate, "events/s")
	b.ReportMetric(rate/floor, "of-floor")
}

func eventRate(b *testing.B, n int, write func(*os.File, int)) float64 {
	r, w, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	begin := time.Now()
	go write(w, n)
	buf := make([]byte, 256<<10)
	total := 0
	for {
		k, err := r.Read(buf)
		total += k
		if err == io.EOF {
			break
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	if want := n * (len(smallEvent) + 1); total != want {
		b.Fatalf("read %d bytes, want %d", total, want)
	}
	return float64(n) / time.Since(begin).Seconds()
}

func BenchmarkRequest(b *testing.B) {
	line := req(`"id":7,"method":"turn/start","params":{"sessionId":"s","input":[{"type":"text","text":"` + strings.Repeat("word ", 100) + `"}]}`)
	s := New(&tape{Reader: &loop{text: line}}, Config{})
	defer s.Close()
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		var r jsonrpc2.Request
		if err := s.ReadObject(&r); err != nil {
			b.Fatal(err)
		}
		s.calls.take(r.ID.Num)
	}
}

// loop reads text again and again.
type loop struct {
	text string
	at   int
}

func (l *loop) Read(p []byte) (int, error) {
	n := copy(p, l.text[l.at:])
	l.at = (l.at + n) % len(l.text)
	return n, nil
}
