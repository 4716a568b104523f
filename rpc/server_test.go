package rpc_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"lashd/engine"
	"lashd/engine/driver/standard"
	"lashd/engine/models"
	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/persistence"
	"lashd/pluginloader"
	"lashd/rpc"
	"lashd/rpc/protocol"
)

func TestMain(m *testing.M) {
	if words := os.Getenv(crowdVariable); words != "" {
		crowd(words)
		return
	}
	goleak.VerifyTestMain(m)
}

// server is a daemon without its command line.
type server struct {
	*rpc.Server
	store *persistence.Store
	ctx   context.Context
	wg    *sync.WaitGroup
}

func start(t testing.TB, more ...models.Model) *server {
	t.Helper()
	return startWith(t, nil, more...)
}

// startWith is start with plugins.
func startWith(t testing.TB, plugins []plugin.Factory, more ...models.Model) *server {
	t.Helper()
	return startLogged(t, slog.New(slog.DiscardHandler), plugins, more...)
}

func startLogged(t testing.TB, log *slog.Logger, plugins []plugin.Factory, more ...models.Model) *server {
	t.Helper()
	dir := t.TempDir()
	store, err := persistence.Open(t.Context(), persistence.Config{Dir: dir, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	stalled, err := scripted.Parse([]byte(`{"otherwise": {"replies": [{"text": "Hm", "stall": true}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	script, err := scripted.Parse([]byte(`{"turns": [{"replies": [{"text": "Hello there.", "chunkSize": 3}]}], "otherwise": {"replies": [{"text": "Again."}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	host, err := plugin.NewHost([]plugin.Factory{standard.Factory{}}, plugins)
	if err != nil {
		t.Fatal(err)
	}
	eng := engine.New(engine.Config{
		Store: store, Plugins: host, Log: log, StateDir: dir,
		Models: append(models.Fixed{
			{Name: "m", Spec: protocol.ModelSpec{Provider: "p", ID: "m"}, Provider: scripted.New(script)},
			{Name: "stalled", Spec: protocol.ModelSpec{Provider: "p", ID: "stalled"}, Provider: scripted.New(stalled)},
		}, more...),
		Defaults: protocol.Config{Driver: standard.ID, Budget: protocol.Budget{Iterations: 10}},
	})
	ctx, cancel := context.WithCancel(context.Background())
	writing, stopWriting := context.WithCancel(context.Background())
	var wg, writer sync.WaitGroup
	writer.Go(func() { store.Run(writing) })
	wg.Go(func() { eng.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		stopWriting()
		writer.Wait()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	loader := pluginloader.New(pluginloader.Config{
		Base: host, Driver: standard.ID, User: []string{filepath.Join(dir, "user")}, Home: dir, Memory: store, Log: log, News: eng.PluginChanged, Revoked: eng.PluginsRevoked,
		Running: eng.Running, ToolsChanged: func(ctx context.Context, _ string, id protocol.SessionID) { eng.ToolsChanged(ctx, id) },
	})
	wg.Go(func() { loader.Run(ctx) })
	return &server{rpc.New(rpc.Config{Engine: eng, Store: store, Plugins: loader, Servers: pluginloader.ServersOf(loader), Log: log, Version: "test"}), store, ctx, &wg}
}

// peer is a client that writes the bytes it is given.
type peer struct {
	net.Conn
	in *bufio.Reader
}

func (s *server) dial(t *testing.T, strict bool) *peer {
	t.Helper()
	ours, theirs := net.Pipe()
	s.wg.Go(func() { s.Serve(s.ctx, theirs, strict) })
	t.Cleanup(func() { ours.Close() })
	ours.SetDeadline(time.Now().Add(2 * time.Minute))
	return &peer{ours, bufio.NewReader(ours)}
}

type answer struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params protocol.Event  `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int                `json:"code"`
		Message string             `json:"message"`
		Data    protocol.ErrorData `json:"data"`
	} `json:"error"`
}

func (p *peer) send(t *testing.T, line string) {
	t.Helper()
	if _, err := fmt.Fprintln(p, line); err != nil {
		t.Fatal(err)
	}
}

func (p *peer) read(t *testing.T) answer {
	t.Helper()
	line, err := p.in.ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var a answer
	if err := json.Unmarshal(line, &a); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return a
}

// ask sends a request and skips events until its answer.
func (p *peer) ask(t *testing.T, id int, method, params string) answer {
	t.Helper()
	p.send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params))
	return p.answer(t)
}

// answer skips events until an answer.
func (p *peer) answer(t *testing.T) answer {
	t.Helper()
	for {
		if a := p.read(t); a.Method == "" {
			return a
		}
	}
}

func (p *peer) newSession(t *testing.T) string {
	t.Helper()
	a := p.ask(t, 1000, "session/new", fmt.Sprintf(`{"cwd":%q}`, t.TempDir()))
	var r protocol.SessionNewResult
	if err := json.Unmarshal(a.Result, &r); err != nil || a.Error != nil {
		t.Fatalf("%+v %v", a.Error, err)
	}
	return string(r.SessionID)
}

func TestTurnOverTheWire(t *testing.T) {
	t.Run("runtime/X01 a turn streams to the client that started it, and every durable event once", func(t *testing.T) {
		p := start(t).dial(t, false)
		id := p.newSession(t)
		p.send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":"t","method":"turn/start","params":{"sessionId":%q,"input":[{"type":"text","text":"hi"}]}}`, id))
		text, next := "", protocol.Seq(1)
		for {
			a := p.read(t)
			if a.Params.Seq != 0 {
				if a.Params.Seq != next {
					t.Errorf("seq %d, want %d", a.Params.Seq, next)
				}
				next++
			}
			if a.Params.Type == protocol.EventItemDelta {
				text += a.Params.Text
			}
			if a.Params.Type == protocol.EventTurnCompleted {
				break
			}
		}
		if text != "Hello there." {
			t.Errorf("streamed %q", text)
		}
	})
	t.Run("runtime/X02 a cursor replays the events after it", func(t *testing.T) {
		s := start(t)
		p := s.dial(t, false)
		id := p.newSession(t)
		p.ask(t, 1, "turn/run", fmt.Sprintf(`{"sessionId":%q,"input":[{"type":"text","text":"hi"}]}`, id))
		q := s.dial(t, false)
		q.send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"session/attach","params":{"sessionId":%q,"afterSeq":1}}`, id))
		if a := q.read(t); a.Error != nil {
			t.Fatal(a.Error)
		}
		for next := protocol.Seq(2); ; next++ {
			a := q.read(t)
			if a.Params.Seq != next {
				t.Fatalf("seq %d, want %d", a.Params.Seq, next)
			}
			if a.Params.Type == protocol.EventTurnCompleted {
				return
			}
		}
	})
	t.Run("runtime/X02 a cursor that cannot be replayed gets a gap", func(t *testing.T) {
		s := start(t)
		p := s.dial(t, false)
		id := p.newSession(t)
		p.ask(t, 1, "turn/run", fmt.Sprintf(`{"sessionId":%q,"input":[{"type":"text","text":"hi"}]}`, id))
		epoch, head := s.store.Facts().Epoch, s.attach(t, id, "").Seq
		for name, c := range map[string]struct {
			cursor string
			want   *protocol.Gap
		}{
			"of this store":          {fmt.Sprintf(`,"afterSeq":1,"epoch":%d`, epoch), nil},
			"at the end":             {fmt.Sprintf(`,"afterSeq":%d,"epoch":%d`, head, epoch), nil},
			"beyond the end":         {fmt.Sprintf(`,"afterSeq":%d,"epoch":%d`, head+5, epoch), &protocol.Gap{FromSeq: head + 6, ToSeq: head, Reason: "rolledBack"}},
			"just beyond, any epoch": {fmt.Sprintf(`,"afterSeq":%d`, head+1), &protocol.Gap{FromSeq: head + 2, ToSeq: head, Reason: "rolledBack"}},
			"of another epoch":       {fmt.Sprintf(`,"afterSeq":1,"epoch":%d`, epoch+1), &protocol.Gap{FromSeq: 2, ToSeq: head, Reason: "otherStore"}},
		} {
			got := s.attach(t, id, c.cursor)
			if c.want != nil {
				c.want.SessionID = protocol.SessionID(id)
			}
			if diff := cmp.Diff(c.want, got.Gap); diff != "" || got.Seq != head {
				t.Errorf("a cursor %s: seq %d, want %d; gap %s", name, got.Seq, head, diff)
			}
			if shown := len(got.Items) > 0; shown != (c.want != nil) {
				t.Errorf("a cursor %s is answered with %d items; only a gap comes with the session as it is", name, len(got.Items))
			}
		}
		q := s.dial(t, false)
		q.ask(t, 1, "session/attach", fmt.Sprintf(`{"sessionId":%q,"afterSeq":%d}`, id, head+5))
		p.ask(t, 2, "turn/start", fmt.Sprintf(`{"sessionId":%q,"input":[{"type":"text","text":"again"}]}`, id))
		a := q.read(t)
		for a.Params.Seq == 0 { // the durable events begin behind the end that the gap named
			a = q.read(t)
		}
		if a.Params.Seq != head+1 {
			t.Errorf("after the gap comes seq %d, want %d", a.Params.Seq, head+1)
		}
		p.ask(t, 3, "session/wait", fmt.Sprintf(`{"sessionId":%q}`, id))
	})
}

// attach attaches a client of its own to a session, with further params.
func (s *server) attach(t *testing.T, session, more string) (r protocol.SessionAttachResult) {
	t.Helper()
	a := s.dial(t, false).ask(t, 1, "session/attach", fmt.Sprintf(`{"sessionId":%q%s}`, session, more))
	if err := json.Unmarshal(a.Result, &r); err != nil || a.Error != nil {
		t.Fatalf("%+v %v", a.Error, err)
	}
	return r
}

func TestConduct(t *testing.T) {
	t.Run("a connection that requires initialize rejects other methods before it", func(t *testing.T) {
		p := start(t).dial(t, true)
		if a := p.ask(t, 1, "session/list", `{}`); a.Error == nil || a.Error.Data.Kind != protocol.KindNotInitialized {
			t.Errorf("%+v", a)
		}
		if a := p.ask(t, 2, "initialize", `{"clientInfo":{"name":"t"}}`); a.Error != nil {
			t.Errorf("%+v", a.Error)
		}
		if a := p.ask(t, 3, "session/list", `{}`); a.Error != nil {
			t.Errorf("%+v", a.Error)
		}
	})
	t.Run("a waiting method does not delay the next, and can be cancelled", func(t *testing.T) {
		p := start(t).dial(t, false)
		id := p.newSession(t)
		p.ask(t, 1, "session/configure", fmt.Sprintf(`{"sessionId":%q,"model":"stalled"}`, id))
		p.send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":"w","method":"turn/run","params":{"sessionId":%q,"input":[{"type":"text","text":"hi"}]}}`, id))
		if a := p.ask(t, 2, "ping", `{}`); string(a.ID) != "2" || a.Error != nil {
			t.Errorf("ping beside a waiting method got the answer to %s: %+v", a.ID, a.Error)
		}
		p.send(t, `{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"w"}}`)
		if a := p.answer(t); string(a.ID) != `"w"` || a.Error == nil || a.Error.Data.Kind != protocol.KindCancelled {
			t.Errorf("the cancelled request was answered %s %+v", a.ID, a.Error)
		}
	})
	t.Run("the same idempotency key gets the first response, changed params a conflict", func(t *testing.T) {
		p := start(t).dial(t, false)
		id := p.newSession(t)
		params := func(text string) string {
			return fmt.Sprintf(`{"sessionId":%q,"idempotencyKey":"k","input":[{"type":"text","text":%q}]}`, id, text)
		}
		first, again := p.ask(t, 1, "turn/start", params("a")), p.ask(t, 2, "turn/start", params("a"))
		var r1, r2 protocol.TurnStartResult
		json.Unmarshal(first.Result, &r1)
		json.Unmarshal(again.Result, &r2)
		if r1.TurnID == "" || r1.TurnID != r2.TurnID || !r2.Duplicate {
			t.Errorf("%+v, then %+v", r1, r2)
		}
		if a := p.ask(t, 3, "turn/start", params("b")); a.Error == nil || a.Error.Data.Kind != protocol.KindConflict {
			t.Errorf("%+v", a)
		}
		p.ask(t, 4, "session/wait", fmt.Sprintf(`{"sessionId":%q}`, id))
	})
	t.Run("every method has a document and a schema", func(t *testing.T) {
		for name, m := range rpc.Methods() {
			if !strings.HasSuffix(m.Doc, ".") || m.Group == "" {
				t.Errorf("%s: %q in %q", name, m.Doc, m.Group)
			}
		}
		if !json.Valid(rpc.OpenRPC()) {
			t.Error("the OpenRPC document is not JSON")
		}
	})
}

func TestAnswered(t *testing.T) {
	t.Run("issue/2 Answered is called after the first response, not before", func(t *testing.T) {
		s := start(t)
		told := make(chan struct{})
		s.Answered = sync.OnceFunc(func() { close(told) })
		c := s.dial(t, false)
		select {
		case <-told:
			t.Error("Answered was called before any request")
		default:
		}
		c.ask(t, 1, "ping", `{}`)
		<-told
	})
}
