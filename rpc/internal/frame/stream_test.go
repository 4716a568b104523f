package frame

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sourcegraph/jsonrpc2"
)

func TestUnderJSONRPC2(t *testing.T) {
	near, far := net.Pipe()
	s := start(t, near, Config{})
	conn := jsonrpc2.NewConn(t.Context(), s, jsonrpc2.HandlerWithError(
		func(_ context.Context, _ *jsonrpc2.Conn, r *jsonrpc2.Request) (any, error) {
			if r.Method == "fail" {
				return nil, &jsonrpc2.Error{Code: -32002, Message: "no"}
			}
			return r.Params, nil
		}))
	for _, c := range []struct{ in, want string }{
		{`{"jsonrpc":"2.0","id":"\u0061","method":"echo","params":{"b":9007199254740993,"a":"<é>"},"_x":1}`,
			`{"id":"\u0061","result":{"a":"\u003cé\u003e","b":9007199254740993},"jsonrpc":"2.0"}`},
		{`{"jsonrpc":"2.0","id":-1.5,"method":"echo"}`, `{"id":-1.5,"result":null,"jsonrpc":"2.0"}`},
		{`{"jsonrpc":"2.0","id":2,"method":"fail"}`, `{"id":2,"error":{"code":-32002,"message":"no"},"jsonrpc":"2.0"}`},
		{`{"jsonrpc":"2.0","id":2}`, `{"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"The member method must be a string.",` +
			`"data":{"kind":"invalidRequest","retry":"never","outcome":"none"}}}`},
	} {
		exchange(t, far, c.in+"\n", c.want+"\n")
	}
	go conn.Notify(t.Context(), "hello", nil)
	exchange(t, far, "", `{"jsonrpc":"2.0","method":"hello"}`+"\n")
	if err := conn.Call(t.Context(), "ask", nil, nil); err == nil || !strings.Contains(err.Error(), "only answers") {
		t.Errorf("call to the peer: %v, want a refusal", err)
	}
	far.Close()
	<-conn.DisconnectNotify()
	if err := s.Err(); err != nil {
		t.Errorf("Err() = %v after the peer left, want nil", err)
	}
}

func exchange(t *testing.T, conn net.Conn, in, want string) {
	t.Helper()
	if in != "" {
		if _, err := io.WriteString(conn, in); err != nil {
			t.Fatal(err)
		}
	}
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil {
		t.Fatalf("%s: read %q: %v", in, got, err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Fatalf("%s: -want +got\n%s", in, diff)
	}
}

func TestParamsAreUnchanged(t *testing.T) {
	params := `{ "b": 1.0, "a":"\u003c" }`
	s := New(&tape{Reader: strings.NewReader(req(`"id":1,"method":"m","params":` + params))}, Config{})
	defer s.Close()
	var r jsonrpc2.Request
	if err := s.ReadObject(&r); err != nil || string(*r.Params) != params {
		t.Errorf("params %s, %v, want %s", *r.Params, err, params)
	}
}

func TestLookup(t *testing.T) {
	in := req(`"id":"a/b","method":"m"`) + req(`"id":1.0,"method":"m"`)
	s := New(&tape{Reader: strings.NewReader(in)}, Config{})
	defer s.Close()
	var r jsonrpc2.Request
	for range 2 {
		if err := s.ReadObject(&r); err != nil {
			t.Fatal(err)
		}
	}
	for raw, want := range map[string]uint64{
		`"a/b"`: 1, `"\u0061\/b"`: 1, ` "a/b" `: 1, `1.0`: 2, `1`: 0, `"1.0"`: 0, `null`: 0, `{}`: 0, ``: 0, `"`: 0, `"\ud800"`: 0,
	} {
		if id, ok := s.Lookup(json.RawMessage(raw)); id.Num != want || ok != (want > 0) {
			t.Errorf("Lookup(%s) = %v, %t, want %d", raw, id, ok, want)
		}
	}
	reply(t, s, r.ID)
	if _, ok := s.Lookup(json.RawMessage(`1.0`)); ok {
		t.Error("Lookup finds a request that was answered")
	}
	err := s.WriteObject(&jsonrpc2.Response{ID: r.ID, Result: new(json.RawMessage(`{}`))})
	if err == nil || !strings.Contains(err.Error(), "not in flight") {
		t.Errorf("second answer: %v, want a refusal", err)
	}
}

func TestEventsPassAnOpenBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		s := start(t, near, Config{})
		go io.WriteString(far, "["+ping+`,{"jsonrpc":"2.0","id":"b","method":"m"}]`+"\n")
		ids := make([]jsonrpc2.ID, 2)
		for i := range ids {
			var r jsonrpc2.Request
			if err := s.ReadObject(&r); err != nil {
				t.Fatal(err)
			}
			ids[i] = r.ID
		}
		event := []byte(`{"jsonrpc":"2.0","method":"session/event"}`)
		reply(t, s, ids[1])
		go s.WriteRaw(t.Context(), event, event)
		exchange(t, far, "", strings.Repeat(string(event)+"\n", 2))
		reply(t, s, ids[0])
		exchange(t, far, "", `[{"id":1,"result":{},"jsonrpc":"2.0"},{"id":"b","result":{},"jsonrpc":"2.0"}]`+"\n")
	})
}

func TestHeadersForEvents(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	s := start(t, near, Config{})
	go s.ReadObject(&jsonrpc2.Request{})
	io.WriteString(far, cl("{"))
	want := cl(string(parseErrorOf("{")))
	exchange(t, far, "", want)
	go s.WriteRaw(t.Context(), []byte(`{"a":1}`), []byte(`{}`))
	exchange(t, far, "", cl(`{"a":1}`)+cl(`{}`))
}

func parseErrorOf(in string) []byte {
	return parseError(fmt.Errorf("byte %d: unexpected end of JSON", len(in))).reply(nil)
}

func TestRejectedPeerReadsTheError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		s := start(t, near, Config{MaxFrame: 1000})
		var wrote error
		go func() {
			_, wrote = io.WriteString(far, "{"+strings.Repeat(" ", 1<<20)) // all of it, though it is refused early
		}()
		read := make(chan string)
		go func() {
			all, _ := io.ReadAll(far)
			read <- string(all)
		}()
		begin := time.Now()
		err := s.ReadObject(&jsonrpc2.Request{})
		if p, ok := errors.AsType[*problem](err); !ok || p.kind != "frameTooLarge" {
			t.Fatalf("ReadObject: %v, want frameTooLarge", err)
		}
		if got := <-read; strings.Count(got, "\n") != 1 || !strings.Contains(got, "frameTooLarge") {
			t.Errorf("the peer reads %q, want one error", got)
		}
		synctest.Wait()
		if took := time.Since(begin); wrote != nil || took > discardFor {
			t.Errorf("peer's write: %v, closed after %v", wrote, took)
		}
		if err := s.WriteRaw(t.Context(), []byte(`{}`)); err != jsonrpc2.ErrClosed {
			t.Errorf("WriteRaw after: %v, want ErrClosed", err)
		}
	})
}

// stubborn hides the write deadlines of a net.Conn, as a pair of pipes does.
type stubborn struct{ io.ReadWriteCloser }

func TestStalledPeer(t *testing.T) {
	for name, wrap := range map[string]func(net.Conn) io.ReadWriteCloser{
		"deadlines": func(c net.Conn) io.ReadWriteCloser { return c },
		"none":      func(c net.Conn) io.ReadWriteCloser { return stubborn{c} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				defer far.Close()
				s := New(wrap(near), Config{MaxQueued: 1000})
				begin := time.Now()
				pumped := make(chan error)
				go func() {
					var err error
					for err == nil {
						err = s.WriteRaw(t.Context(), make([]byte, 400))
					}
					pumped <- err
				}()
				if err := s.Run(t.Context()); err != ErrStalled || s.Err() != ErrStalled {
					t.Errorf("Run: %v, Err: %v, want ErrStalled", err, s.Err())
				}
				if err := <-pumped; err != jsonrpc2.ErrClosed {
					t.Errorf("pump: %v, want ErrClosed", err)
				}
				if took := time.Since(begin); took != 10*time.Second {
					t.Errorf("closed after %v, want 10s", took)
				}
			})
		})
	}
}

func TestSlowPeerDelaysOnlyItsEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		s := start(t, near, Config{MaxQueued: 1000})
		event := []byte(`{"method":"` + strings.Repeat("e", 400) + `"}`)
		for range 3 {
			if err := s.WriteRaw(t.Context(), event); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.WriteRaw(ctx, event); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("WriteRaw over the cap: %v, want the deadline", err)
		}
		begin := time.Now()
		if err := s.WriteObject(note0()); err != nil || time.Since(begin) > 0 {
			t.Errorf("WriteObject over the cap: %v after %v, want it at once", err, time.Since(begin))
		}
		buf := make([]byte, 100) // one read in each ten seconds is progress
		for range 5 {
			time.Sleep(8 * time.Second)
			if _, err := far.Read(buf); err != nil {
				t.Fatalf("peer reads: %v", err)
			}
		}
		if err := s.Err(); err != nil {
			t.Errorf("Err() = %v, want nil", err)
		}
		far.Close()
	})
}

// Messages larger than a chunk arrive whole, also when write deadlines pass in the middle of one.
func TestBigMessagesToASlowPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		s := start(t, near, Config{MaxQueued: 100_000})
		var want strings.Builder
		var events [][]byte
		for n := range 12 {
			event := fmt.Sprintf(`{"n":%d,"text":"%s"}`, n, strings.Repeat(string(rune('a'+n)), n*n*1000))
			events = append(events, []byte(event))
			want.WriteString(event + "\n")
		}
		var pump sync.WaitGroup
		pump.Go(func() {
			for _, e := range events {
				if err := s.WriteRaw(t.Context(), e); err != nil {
					t.Errorf("WriteRaw: %v", err)
				}
			}
		})
		got := make([]byte, want.Len())
		for at := 0; at < len(got); time.Sleep(7 * time.Second) {
			n, err := far.Read(got[at:min(at+10_000, len(got))])
			if err != nil {
				t.Fatalf("after %d bytes: %v", at, err)
			}
			at += n
		}
		if string(got) != want.String() {
			t.Error("the peer reads something else than was written")
		}
		pump.Wait()
		far.Close()
	})
}

func note0() *jsonrpc2.Request { return &jsonrpc2.Request{Method: "n", Notif: true} }

func TestResponsesWaitNoLongerThanTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		s := start(t, near, Config{MaxQueued: 100, WriteTimeout: 2 * time.Second})
		var peer sync.WaitGroup
		defer peer.Wait()
		defer far.Close()
		peer.Go(func() { // takes one byte a second: progress, but no room
			for buf := make([]byte, 1); ; time.Sleep(time.Second) {
				if _, err := far.Read(buf); err != nil {
					return
				}
			}
		})
		begin := time.Now()
		var err error
		for err == nil {
			err = s.WriteObject(note0())
		}
		if took := time.Since(begin); err != ErrStalled || took != 2*time.Second || s.Err() != ErrStalled {
			t.Errorf("%v after %v (Err %v), want ErrStalled after 2s", err, took, s.Err())
		}
	})
}

func TestPeerThatOnlyWritesIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		s := start(t, near, Config{MaxQueued: 10_000})
		go func() {
			for {
				if _, err := io.WriteString(far, "{\n"); err != nil {
					return
				}
			}
		}()
		if err := s.ReadObject(&jsonrpc2.Request{}); err != ErrStalled && err != jsonrpc2.ErrClosed {
			t.Errorf("ReadObject: %v", err)
		}
		if queued := s.out.queued; queued > 25_000 {
			t.Errorf("%d bytes queued", queued)
		}
		synctest.Wait()
		if s.Err() != ErrStalled {
			t.Errorf("Err() = %v, want ErrStalled", s.Err())
		}
	})
}

func TestCloseWritesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		s := start(t, near, Config{})
		if err := s.WriteRaw(t.Context(), []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
		s.Close()
		if all, err := io.ReadAll(far); string(all) != "{}\n" || err != nil {
			t.Errorf("peer reads %q, %v", all, err)
		}
	})
}

func TestCloseDoesNotWaitForThePeer(t *testing.T) {
	for _, how := range []string{"close", "cancel"} {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			defer far.Close()
			s := New(near, Config{})
			ctx, cancel := context.WithCancelCause(t.Context())
			begin, shutdown := time.Now(), errors.New("shutdown")
			ran, read := make(chan error), make(chan error)
			go func() { ran <- s.Run(ctx) }()
			go func() { read <- s.ReadObject(&jsonrpc2.Request{}) }()
			if err := s.WriteRaw(ctx, []byte(`{}`)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			wantRun, wantRead := error(nil), io.EOF
			if how == "close" {
				s.Close()
			} else {
				cancel(shutdown)
				wantRun, wantRead = shutdown, shutdown
			}
			if err := <-ran; err != wantRun {
				t.Errorf("%s: Run: %v, want %v", how, err, wantRun)
			}
			if err := <-read; err != wantRead {
				t.Errorf("%s: ReadObject: %v, want %v", how, err, wantRead)
			}
			if took := time.Since(begin); took != closeGrace {
				t.Errorf("%s took %v, want %v", how, took, closeGrace)
			}
			cancel(nil)
		})
	}
}

func TestCloseWithoutRun(t *testing.T) {
	near, far := net.Pipe()
	s := New(near, Config{})
	s.Close()
	if _, err := far.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("peer reads: %v, want EOF", err)
	}
	if err := s.Run(t.Context()); err != nil {
		t.Errorf("Run after Close: %v", err)
	}
}

func TestLinger(t *testing.T) {
	for answer, want := range map[time.Duration]time.Duration{
		time.Second: time.Second, 5 * time.Second: 2 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			conn := &tape{Reader: strings.NewReader(id(`1`) + note + "\n")}
			s := start(t, conn, Config{Linger: 2 * time.Second})
			begin := time.Now()
			var r jsonrpc2.Request
			if err := s.ReadObject(&r); err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(answer, func() { reply(t, s, jsonrpc2.ID{Num: 1}) })
			if err := s.ReadObject(&r); err != nil {
				t.Fatal(err)
			}
			if err := s.ReadObject(&r); err != io.EOF || time.Since(begin) != want {
				t.Errorf("answer after %v: %v after %v, want EOF after %v", answer, err, time.Since(begin), want)
			}
			time.Sleep(answer)
		})
	}
}

func TestPeerGone(t *testing.T) {
	near, far := net.Pipe()
	s := New(near, Config{})
	var run sync.WaitGroup
	run.Go(func() { s.Run(t.Context()) })
	far.Close()
	var err error
	for err == nil {
		err = s.WriteRaw(t.Context(), []byte(`{}`))
	}
	run.Wait()
	if err != jsonrpc2.ErrClosed || !errors.Is(s.Err(), io.ErrClosedPipe) {
		t.Errorf("WriteRaw: %v, Err: %v, want ErrClosed and the reason", err, s.Err())
	}
}

func TestPacedEventsDoNotWait(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s := start(t, half{w}, Config{})
	buf := make([]byte, 64)
	var took []time.Duration
	for range 50 {
		begin := time.Now()
		if err := s.WriteRaw(t.Context(), []byte(`{"seq":1}`)); err != nil {
			t.Fatal(err)
		}
		if n, err := r.Read(buf); err != nil || string(buf[:n]) != `{"seq":1}`+"\n" {
			t.Fatalf("read %q, %v", buf[:n], err)
		}
		took = append(took, time.Since(begin))
		time.Sleep(time.Millisecond)
	}
	slices.Sort(took)
	if usual := took[len(took)/2]; usual > 100*time.Millisecond { // a machine with much else to do may hold up some
		t.Errorf("an event took %v, want well under 100ms", usual)
	}
	s.Close()
}

// half is a connection whose peer only reads.
type half struct{ *os.File }

func (half) Read([]byte) (int, error) { return 0, io.EOF }

// A response in progress when the peer ends or breaks the connection is still written.
func TestResponsesBeforeTheEnd(t *testing.T) {
	for _, c := range []scene{
		{ping + "\n", "ok(1)"},
		{cl(ping) + "GET / HTTP/1.1\r\n\r\n", "ok(1) -32700/badFrame(null)"},
	} {
		for range 300 {
			conn := &tape{Reader: strings.NewReader(c.in)}
			s := New(conn, Config{Linger: time.Second})
			var run sync.WaitGroup
			run.Go(func() { s.Run(t.Context()) })
			for req := new(jsonrpc2.Request); s.ReadObject(req) == nil; req = new(jsonrpc2.Request) {
				run.Go(func() { reply(t, s, req.ID) })
			}
			s.Close()
			run.Wait()
			if got := strings.Join(transcript(t, conn.out.Bytes()), " "); got != c.want {
				t.Fatalf("%q: got %s, want %s", c.in, got, c.want)
			}
		}
	}
}
