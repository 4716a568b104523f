package chat_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"lashd/cmd/lash/chat"
	"lashd/rpc/protocol"
)

// longSession is a session of 5,000 items. If it streams, its model writes an answer without an end.
type longSession struct {
	chat.Session
	streams      bool
	said, events int
}

// Open implements chat.Session.
func (s *longSession) Open(context.Context) (*protocol.SessionAttachResult, error) {
	r := &protocol.SessionAttachResult{Session: protocol.Session{ID: "ses_1", Title: "long"}, Seq: 1}
	for i := range 5000 {
		item := protocol.Item{ID: protocol.ItemID(fmt.Sprint("itm_", i)), Status: protocol.ItemDone, Kind: protocol.ItemAgentMessage, Text: fmt.Sprintf("Answer **%d** about `main.go`:\n\n- one\n- two\n", i)}
		if i%2 == 0 {
			item.Kind, item.Tool, item.Args = protocol.ItemToolCall, "shell", []byte(`{"command":"go test ./..."}`)
			item.Output = &protocol.ToolOutput{Text: strings.Repeat("ok\n", 20)}
		}
		r.Items = append(r.Items, item)
	}
	if s.streams {
		r.TurnID, r.OpenItems = "trn_1", []protocol.Item{{ID: "itm_new", Kind: protocol.ItemAgentMessage, Status: protocol.ItemInProgress}}
	}
	return r, nil
}

// Next implements chat.Session. It streams 1,000 words a second.
func (s *longSession) Next(ctx context.Context) ([]protocol.Event, error) {
	if !s.streams {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	time.Sleep(10 * time.Millisecond)
	text := strings.Repeat("word ", 10)
	if s.events++; s.events%20 == 0 {
		text += "\n\n"
	}
	e := protocol.Event{Type: protocol.EventItemDelta, ItemID: "itm_new", Offset: new(s.said), Text: text}
	s.said += len(text)
	return []protocol.Event{e}, nil
}

// Call implements chat.Session.
func (*longSession) Call(context.Context, string, any, any) error { return nil }

// output collects what a program writes on a terminal.
type output struct {
	mu  sync.Mutex
	all bytes.Buffer
	new chan struct{}
}

// Write implements io.Writer.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.new <- struct{}{}:
	default:
	}
	return o.all.Write(b)
}

// await waits until the output since the last await has a text.
func (o *output) await(b *testing.B, text string) {
	for end := time.After(20 * time.Second); ; {
		o.mu.Lock()
		found := bytes.Contains(o.all.Bytes(), []byte(text))
		if found {
			o.all.Reset()
		}
		o.mu.Unlock()
		if found {
			return
		}
		select {
		case <-o.new:
		case <-end:
			b.Fatalf("%q does not appear", text)
		}
	}
}

// BenchmarkKeystroke measures the time from a key to its frame on a pseudoterminal, in a
// session of 5,000 items. A person types ten keys a second.
func BenchmarkKeystroke(b *testing.B) {
	b.Run("prompt", func(b *testing.B) { keystrokes(b, &longSession{}, "", "") })
	b.Run("streaming", func(b *testing.B) { keystrokes(b, &longSession{streams: true}, "", "") })
	b.Run("transcript", func(b *testing.B) { keystrokes(b, &longSession{}, "\x14", "\x1b[5~") })
}

// keystrokes opens a chat, types before, and then measures a key: a letter, or after if it is set.
func keystrokes(b *testing.B, s chat.Session, before, after string) {
	terminal, tty, err := pty.Open()
	if err != nil {
		b.Fatal(err)
	}
	if err := pty.Setsize(tty, &pty.Winsize{Rows: 40, Cols: 120}); err != nil {
		b.Fatal(err)
	}
	out := &output{new: make(chan struct{}, 1)}
	ctx, stop := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = copyFrom(terminal, out) })
	wg.Go(func() { _, _, _ = chat.Run(ctx, s, nil, tty, tty, chat.Options{}) })
	b.Cleanup(func() { stop(); time.Sleep(100 * time.Millisecond); tty.Close(); terminal.Close(); wg.Wait() })
	out.await(b, "long")
	if before != "" {
		_, _ = terminal.WriteString(before)
		out.await(b, "Transcript")
	}
	var took, worked []time.Duration
	for i := 0; b.Loop(); i++ {
		key, shown := after, "Transcript"
		if after == "" {
			key = string(rune('a' + i%26))
			shown = key + "\x1b[?7h"
		}
		time.Sleep(100 * time.Millisecond)
		began, used := time.Now(), processorTime(b)
		_, _ = terminal.WriteString(key)
		out.await(b, shown)
		took, worked = append(took, time.Since(began)), append(worked, processorTime(b)-used)
	}
	report(b, took, "ms")
	report(b, worked, "cpu-ms")
}

// report reports the median and the 99th percentile of durations.
func report(b *testing.B, all []time.Duration, unit string) {
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "p50-"+unit)
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "p99-"+unit)
}

// processorTime returns the processor time of this process.
func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// copyFrom copies the output of a terminal until it is closed.
func copyFrom(terminal *os.File, out *output) error {
	buf := make([]byte, 1<<16)
	for {
		n, err := terminal.Read(buf)
		if n > 0 {
			_, _ = out.Write(buf[:n])
		}
		if err != nil {
			return err
		}
	}
}
