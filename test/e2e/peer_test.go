package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"lashd/rpc/protocol"
)

// peer is a client that keeps the events it receives.
type peer struct {
	t    *testing.T
	conn *jsonrpc2.Conn
	init protocol.InitializeResult

	mu    sync.Mutex
	told  []told
	heard func(told)    // receives the events instead, unless nil
	moved chan struct{} // closed and replaced at each event
}

// told is an event and its JSON.
type told struct {
	protocol.Event
	raw string
}

// newPeer connects with a client id; with an empty one lashd assigns it.
func newPeer(t *testing.T, stream jsonrpc2.ObjectStream, name string) (p *peer, err error) {
	p = &peer{t: t, moved: make(chan struct{})}
	quiet := jsonrpc2.SetLogger(log.New(io.Discard, "", 0)) // broken connections are part of the tests
	p.conn = jsonrpc2.NewConn(context.WithoutCancel(t.Context()), stream, p, quiet)
	t.Cleanup(func() { p.conn.Close() })
	params := protocol.InitializeParams{ClientInfo: protocol.ClientInfo{Name: "e2e"}}
	if name != "" {
		params.ClientID = protocol.ClientID(name)
	}
	p.init, err = try[protocol.InitializeResult](p, "initialize", params)
	return p, err
}

// Handle implements jsonrpc2.Handler. It is called for messages in order.
func (p *peer) Handle(_ context.Context, _ *jsonrpc2.Conn, req *jsonrpc2.Request) {
	if req.Method != "session/event" {
		return
	}
	e := told{raw: string(*req.Params)}
	if err := json.Unmarshal(*req.Params, &e.Event); err != nil {
		p.t.Errorf("not an event: %v: %s", err, e.raw)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.heard != nil {
		p.heard(e)
		return
	}
	p.told = append(p.told, e)
	close(p.moved)
	p.moved = make(chan struct{})
}

// hear passes later events to f, in order, and does not keep them.
func (p *peer) hear(f func(told)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard = f
}

// ask calls a method that must succeed.
func ask[R any](p *peer, method string, params any) R {
	p.t.Helper()
	result, err := try[R](p, method, params)
	if err != nil {
		p.t.Fatalf("%s: %v", method, err)
	}
	return result
}

// try calls a method and returns its error.
func try[R any](p *peer, method string, params any) (result R, err error) {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(p.t.Context()), patience, fmt.Errorf("no answer to %s", method))
	defer cancel()
	err = p.conn.Call(ctx, method, params, &result)
	return result, err
}

// refusal returns the code and the kind of an error.
func refusal(err error) (int64, protocol.ErrorKind) {
	e, ok := errors.AsType[*jsonrpc2.Error](err)
	if !ok || e.Data == nil {
		return 0, ""
	}
	var data protocol.ErrorData
	if json.Unmarshal(*e.Data, &data) != nil {
		return e.Code, ""
	}
	return e.Code, data.Kind
}

// events returns all events so far.
func (p *peer) events() ([]told, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.told), p.moved
}

// log returns the durable events of a session so far.
func (p *peer) log(id protocol.SessionID) []told {
	all, _ := p.events()
	return slices.DeleteFunc(all, func(e told) bool { return e.Seq == 0 || e.SessionID != id })
}

// await waits until fits accepts the events so far.
func (p *peer) await(fits func([]told) bool) error {
	deadline := time.After(patience)
	for {
		all, moved := p.events()
		if fits(all) {
			return nil
		}
		select {
		case <-moved:
		case <-p.conn.DisconnectNotify():
			return errors.New("the connection ended")
		case <-deadline:
			return fmt.Errorf("waited %v; got %d events", patience, len(all))
		}
	}
}

func (p *peer) until(what string, fits func([]told) bool) {
	p.t.Helper()
	if err := p.await(fits); err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
}

// event waits for an event that fits.
func (p *peer) event(what string, fits func(protocol.Event) bool) (found protocol.Event) {
	p.t.Helper()
	p.until(what, func(all []told) bool {
		i := slices.IndexFunc(all, func(e told) bool { return fits(e.Event) })
		if i >= 0 {
			found = all[i].Event
		}
		return i >= 0
	})
	return found
}

func (p *peer) completed(id protocol.TurnID) protocol.Event {
	p.t.Helper()
	return p.event("turn/completed", func(e protocol.Event) bool { return e.Type == protocol.EventTurnCompleted && e.TurnID == id })
}

// streamed waits until the joined text of all deltas equals text.
func (p *peer) streamed(text string) {
	p.t.Helper()
	p.until("the text "+text, func(all []told) bool {
		var sum strings.Builder
		for _, e := range all {
			if e.Type == protocol.EventItemDelta {
				sum.WriteString(e.Text)
			}
		}
		return sum.String() == text
	})
}

// session creates a session in the workspace and attaches to it.
func (p *peer) session(h *home) protocol.SessionID {
	p.t.Helper()
	return ask[protocol.SessionNewResult](p, "session/new", protocol.SessionNewParams{Cwd: h.work}).SessionID
}

func (p *peer) attach(id protocol.SessionID, after protocol.Seq) protocol.SessionAttachResult {
	p.t.Helper()
	return ask[protocol.SessionAttachResult](p, "session/attach", protocol.SessionAttachParams{SessionID: id, AfterSeq: &after})
}

func text(s string) []protocol.InputPart {
	return []protocol.InputPart{{Type: protocol.InputText, Text: s}}
}

func (p *peer) start(id protocol.SessionID, input string) protocol.TurnStartResult {
	p.t.Helper()
	return ask[protocol.TurnStartResult](p, "turn/start", protocol.TurnStartParams{SessionID: id, Input: text(input)})
}

func (p *peer) wait(id protocol.TurnID) protocol.TurnReport {
	p.t.Helper()
	return ask[protocol.TurnReport](p, "turn/wait", protocol.TurnWaitParams{TurnID: id})
}

// turn runs a turn, which must finish.
func (p *peer) turn(id protocol.SessionID, input string) protocol.TurnReport {
	p.t.Helper()
	r := p.wait(p.start(id, input).TurnID)
	if r.State != protocol.TurnCompleted {
		p.t.Errorf("turn %q is %s: %+v", input, r.State, r.Outcome)
	}
	return r
}
