package frame

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/sourcegraph/jsonrpc2"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// tape is a connection whose peer has already sent everything.
type tape struct {
	io.Reader
	mu     sync.Mutex
	out    bytes.Buffer
	closed bool
}

func (t *tape) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return 0, io.ErrClosedPipe
	}
	return t.out.Write(p)
}

func (t *tape) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	return nil
}

// replay serves the bytes of in and describes the result in a few words: notifications in brackets as they are returned,
// then the written messages, then the end. Requests get a response at once, those named hold* at the end.
func replay(t testing.TB, in io.Reader, cfg Config) string {
	conn := &tape{Reader: in}
	s := New(conn, cfg)
	var run sync.WaitGroup
	run.Go(func() { s.Run(t.Context()) })
	notes, end := serve(t, s)
	s.Close()
	run.Wait()
	said := append(notes, transcript(t, conn.out.Bytes())...)
	return strings.Join(append(said, ending(end)), " ")
}

func serve(t testing.TB, s *Stream) (notes []string, end error) {
	var held []jsonrpc2.ID
	for {
		var req jsonrpc2.Request
		if err := s.ReadObject(&req); err != nil {
			for _, id := range held {
				reply(t, s, id)
			}
			return notes, err
		}
		switch {
		case req.Notif:
			notes = append(notes, "["+req.Method+"]")
		case strings.HasPrefix(req.Method, "hold"):
			held = append(held, req.ID)
		default:
			reply(t, s, req.ID)
		}
	}
}

func reply(t testing.TB, s *Stream, id jsonrpc2.ID) {
	err := s.WriteObject(&jsonrpc2.Response{ID: id, Result: new(json.RawMessage(`{}`))})
	if err != nil && !errors.Is(err, jsonrpc2.ErrClosed) {
		t.Errorf("answer %v: %v", id, err)
	}
}

func ending(err error) string {
	switch p, refused := errors.AsType[*problem](err); {
	case refused:
		return "closed:" + p.kind
	case err == io.EOF:
		return "open"
	case err == io.ErrUnexpectedEOF:
		return "cut"
	}
	return err.Error()
}

// transcript shortens the written messages: ok(id), code/kind(id), and [...] around a batch.
func transcript(t testing.TB, out []byte) []string {
	var said []string
	for _, f := range split(t, out) {
		if f[0] != '[' {
			said = append(said, answer(t, f))
			continue
		}
		var entries []json.RawMessage
		if err := json.Unmarshal(f, &entries); err != nil {
			t.Fatalf("batch %s: %v", f, err)
		}
		var in []string
		for _, e := range entries {
			in = append(in, answer(t, e))
		}
		said = append(said, "["+strings.Join(in, " ")+"]")
	}
	return said
}

// split removes the framing of the written messages.
func split(t testing.TB, out []byte) [][]byte {
	var frames [][]byte
	r := bufio.NewReader(bytes.NewReader(out))
	for {
		line, err := r.ReadString('\n')
		if err == io.EOF && line == "" {
			return frames
		}
		body := []byte(strings.TrimSuffix(line, "\n"))
		if length, ok := strings.CutPrefix(line, "Content-Length: "); ok {
			n, err := strconv.Atoi(strings.TrimSuffix(length, "\r\n"))
			if err != nil {
				t.Fatalf("header %q: %v", line, err)
			}
			body = make([]byte, len("\r\n")+n)
			if _, err := io.ReadFull(r, body); err != nil {
				t.Fatalf("body after %q: %v", line, err)
			}
			body = body[len("\r\n"):]
		}
		frames = append(frames, body)
	}
}

func answer(t testing.TB, frame []byte) string {
	var a struct {
		JSONRPC string
		ID      json.RawMessage
		Method  string
		Error   *struct {
			Code    int
			Message string
			Data    struct {
				Kind, Retry, Outcome string
				RetryAfterMs         int
			}
		}
	}
	if err := json.Unmarshal(frame, &a); err != nil || a.JSONRPC != "2.0" {
		t.Fatalf("answer %s: %v", frame, err)
	}
	switch e := a.Error; {
	case a.Method != "":
		return a.Method
	case e == nil:
		return fmt.Sprintf("ok(%s)", a.ID)
	case e.Message == "" || e.Data.Outcome != "none" || (e.Data.RetryAfterMs > 0) != (e.Data.Retry == "now"):
		t.Fatalf("incomplete error %s", frame)
		return ""
	default:
		return fmt.Sprintf("%d/%s(%s)", e.Code, e.Data.Kind, a.ID)
	}
}

// start runs a stream over rwc until the test is done.
func start(t testing.TB, rwc io.ReadWriteCloser, cfg Config) *Stream {
	s := New(rwc, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { s.Run(ctx) })
	t.Cleanup(func() { cancel(); run.Wait() })
	return s
}
