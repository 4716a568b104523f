package rpc_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lashd/rpc"
	"lashd/rpc/protocol"
)

// news reads server events until one is of the given type, and returns them all.
func (p *peer) news(t *testing.T, until func(protocol.ServerEvent) bool) []protocol.ServerEvent {
	t.Helper()
	var seen []protocol.ServerEvent
	for {
		line, err := p.in.ReadBytes('\n')
		if err != nil {
			t.Fatalf("%v after %+v", err, seen)
		}
		var n struct {
			Method string
			Params protocol.ServerEvent
		}
		if err := json.Unmarshal(line, &n); err != nil {
			t.Fatal(err)
		}
		if n.Method != "server/event" {
			continue
		}
		if seen = append(seen, n.Params); until(n.Params) {
			return seen
		}
	}
}

func TestServerAttachReportsEverySession(t *testing.T) {
	s := start(t)
	watcher, worker := s.dial(t, false), s.dial(t, false)
	if a := watcher.ask(t, 1, "server/attach", `{}`); a.Error != nil {
		t.Fatal(a.Error)
	}
	id := worker.newSession(t)
	worker.ask(t, 1, "turn/run", fmt.Sprintf(`{"sessionId":%q,"input":[{"type":"text","text":"hi"}]}`, id))
	worker.ask(t, 2, "session/setTitle", fmt.Sprintf(`{"sessionId":%q,"title":"Greetings"}`, id))
	titled := watcher.news(t, func(e protocol.ServerEvent) bool { return e.Session != nil && e.Session.Title == "Greetings" })
	last := titled[len(titled)-1].Session
	if last.State != protocol.SessionIdle || last.TurnIndex != 1 || string(last.ID) != id {
		t.Errorf("told at last: %+v", last)
	}
	worker.ask(t, 3, "session/delete", fmt.Sprintf(`{"sessionId":%q}`, id))
	watcher.news(t, func(e protocol.ServerEvent) bool {
		return e.Type == protocol.ServerSessionDeleted && string(e.SessionID) == id
	})
}

func TestServerAttachReportsWhileASessionRuns(t *testing.T) {
	s := start(t)
	watcher, worker := s.dial(t, false), s.dial(t, false)
	watcher.ask(t, 1, "server/attach", `{}`)
	id := worker.newSession(t)
	worker.ask(t, 1, "session/configure", fmt.Sprintf(`{"sessionId":%q,"model":"stalled"}`, id))
	worker.ask(t, 2, "turn/start", fmt.Sprintf(`{"sessionId":%q,"input":[{"type":"text","text":"hi"}]}`, id))
	watcher.news(t, func(e protocol.ServerEvent) bool {
		return e.Session != nil && e.Session.State == protocol.SessionRunning
	})
	worker.ask(t, 3, "session/delete", fmt.Sprintf(`{"sessionId":%q}`, id))
	states := watcher.news(t, func(e protocol.ServerEvent) bool { return e.Type == protocol.ServerSessionDeleted })
	if slices.ContainsFunc(states, func(e protocol.ServerEvent) bool { return e.Session != nil && e.Session.State == protocol.SessionIdle }) {
		t.Errorf("a session that was deleted while it ran was reported as idle: %+v", states)
	}
}

func TestSilentClientIsDisconnected(t *testing.T) {
	s := start(t)
	impatient := &server{rpc.New(rpc.Config{Engine: s.Engine, Store: s.store, Log: s.Log, Silence: 10 * time.Millisecond}), s.store, s.ctx, s.wg}
	p := impatient.dial(t, false)
	if line, err := p.in.ReadString('\n'); err != io.EOF {
		t.Errorf("a client that says nothing read %q, %v", line, err)
	}
	talks := (&server{rpc.New(rpc.Config{Engine: s.Engine, Store: s.store, Log: s.Log, Silence: time.Hour}), s.store, s.ctx, s.wg}).dial(t, false)
	if a := talks.ask(t, 1, "ping", `{}`); a.Error != nil {
		t.Error(a.Error)
	}
}

func TestClientOverTheLimitGetsAnError(t *testing.T) {
	s := start(t)
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	s.wg.Go(func() { s.Listen(s.ctx, l) })
	for n := range 65 { // of one process
		nc, err := net.Dial("unix", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		nc.SetDeadline(time.Now().Add(2 * time.Minute))
		p := &peer{nc, bufio.NewReader(nc)}
		a := p.ask(t, 1, "server/attach", `{}`)
		if n < 64 && a.Error != nil {
			t.Fatalf("client %d: %+v", n+1, a.Error)
		}
		if n < 64 {
			continue
		}
		if a.Error == nil || a.Error.Data.Kind != protocol.KindOverloaded {
			t.Errorf("client %d was answered %+v, want overloaded", n+1, a)
		}
		if line, err := p.in.ReadString('\n'); err != io.EOF {
			t.Errorf("client %d then read %q, %v, want to be let go", n+1, line, err)
		}
	}
}

func TestEditorsOfTheSocketInitialize(t *testing.T) {
	p := start(t).dial(t, false)
	body := `{"jsonrpc":"2.0","id":1,"method":"session/list"}`
	fmt.Fprintf(p, "Content-Length: %d\r\n\r\n%s", len(body), body)
	var length int
	fmt.Fscanf(p.in, "Content-Length: %d\r\n\r\n", &length)
	got := make([]byte, length)
	if _, err := io.ReadFull(p.in, got); err != nil || !strings.Contains(string(got), string(protocol.KindNotInitialized)) {
		t.Errorf("answered %q, %v", got, err)
	}
}

func TestInitializeTwice(t *testing.T) {
	p := start(t).dial(t, true)
	p.ask(t, 1, "initialize", `{"clientInfo":{"name":"t"}}`)
	if a := p.ask(t, 2, "initialize", `{"clientInfo":{"name":"t"}}`); a.Error == nil || a.Error.Data.Kind != protocol.KindInvalidRequest {
		t.Errorf("%+v", a)
	}
}

func TestDiagnosticsReportQueuedBytes(t *testing.T) {
	s := start(t)
	slow, other := s.dial(t, false), s.dial(t, false)
	for id := range 3 {
		slow.send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"rpc/discover"}`, id))
	}
	for {
		var r protocol.DiagnosticsResult
		if err := json.Unmarshal(other.ask(t, 1, "server/diagnostics", `{}`).Result, &r); err != nil {
			t.Fatal(err)
		}
		if r.QueuedBytes > 0 {
			return
		}
	}
}
