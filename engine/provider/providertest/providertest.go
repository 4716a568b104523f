// Package providertest is the contract test that every provider.Provider passes.
package providertest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// Reply is what the model behind the provider under test must answer, in the order of the fields.
// A server of the test writes it in its API's own events.
type Reply struct {
	Reasoning []string            // deltas
	Text      []string            // deltas
	Calls     []protocol.ToolCall // after the text, in this order
	Usage     *protocol.Usage     // of the whole reply

	Cut   bool // the stream ends after the text, without the vendor's evidence of an end
	Stall bool // nothing follows the text
}

// Request is a request that any model can answer.
// Each call returns a new one, so a test may change it.
func Request() *provider.Request {
	return &provider.Request{
		Model:    protocol.ModelSpec{Provider: "test", ID: "model"},
		System:   "Be brief.",
		Messages: []*protocol.Message{{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: "hello"}}}},
		Scope:    provider.Scope{SessionID: "ses_1", RequestID: "req_1"},
	}
}

// Run tests the contract. Serve gives a Provider whose model answers every request with the reply.
// serve runs once for each case and may register cleanups. The Provider must be safe for concurrent use, so run the tests with -race.
func Run(t *testing.T, serve func(t *testing.T, r Reply) provider.Provider) {
	t.Run("runtime/M01 parts come in order and Stop comes last", func(t *testing.T) { order(t, serve) })
	t.Run("runtime/M10 a stream cut off is an error", func(t *testing.T) { cut(t, serve) })
	t.Run("runtime/M01 cancel ends a stalled stream soon", func(t *testing.T) { cancel(t, serve) })
	t.Run("runtime/M01 a cancelled call does not begin", func(t *testing.T) { dead(t, serve) })
	t.Run("runtime/M01 the reader may leave at any chunk", func(t *testing.T) { leave(t, serve) })
	t.Run("runtime/M01 calls may run at once", func(t *testing.T) { parallel(t, serve) })
}

// full returns a reply with reasoning, text and calls. The text has characters that JSON escapes, and one call has no arguments.
func full() Reply {
	return Reply{
		Reasoning: []string{"hm", ", so"},
		Text:      []string{"Let ", "me \"look\"\n", "→ 日本"},
		Calls: []protocol.ToolCall{
			{CallID: "c1", Name: "read", Args: json.RawMessage(`{"path":"a"}`)},
			{CallID: "c2", Name: "list", Args: json.RawMessage(`{}`)},
		},
		Usage: &protocol.Usage{Input: 12, Output: 7, CacheRead: 3},
	}
}

// wants is the reply that the chunks of full add up to.
// Deltas of one kind are one part, and each call is a part.
func wants(r Reply) []protocol.Part {
	var parts []protocol.Part
	add := func(kind protocol.PartKind, deltas []string) {
		var text strings.Builder
		for _, d := range deltas {
			text.WriteString(d)
		}
		parts = append(parts, protocol.Part{Kind: kind, Text: text.String()})
	}
	add(protocol.PartReasoning, r.Reasoning)
	add(protocol.PartProse, r.Text)
	for _, c := range r.Calls {
		parts = append(parts, protocol.Part{Kind: protocol.PartToolCall, Call: &c})
	}
	return parts
}

// collect reads a stream to its end and checks that it has exactly one.
// It returns the reply so far and the error that ended the stream.
func collect(ctx context.Context, t *testing.T, p provider.Provider) (provider.Reply, error) {
	t.Helper()
	var c provider.Collector
	var end error
	ended := false
	for chunk, err := range p.Stream(ctx, Request()) {
		if ended {
			t.Errorf("after the end came %+v, %v", chunk, err)
		}
		ended = err != nil || chunk.Stop != "" // Stop is set on the last chunk only
		end = err
		if err == nil {
			c.Add(&chunk)
		}
	}
	if !ended {
		t.Error("the stream ended without Stop or error")
	}
	return c.Reply(), end
}

// order checks the parts, the stop reason and the usage of a complete reply.
func order(t *testing.T, serve func(*testing.T, Reply) provider.Provider) {
	got, err := collect(t.Context(), t, serve(t, full()))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(wants(full()), got.Parts); d != "" {
		t.Errorf("parts (-want +got):\n%s", d)
	}
	if got.Stop != protocol.StopToolUse {
		t.Errorf("stop %q, want %q", got.Stop, protocol.StopToolUse)
	}
	if d := cmp.Diff(full().Usage, got.Usage); d != "" {
		t.Errorf("usage (-want +got):\n%s", d)
	}
}

// cut checks that a reply without the API's evidence of its end fails with KindStream.
func cut(t *testing.T, serve func(*testing.T, Reply) provider.Provider) {
	r := full()
	r.Cut = true // the connection closes after the text
	_, err := collect(t.Context(), t, serve(t, r))
	failure, ok := errors.AsType[*provider.Error](err)
	if !ok || failure.Kind != provider.KindStream {
		t.Errorf("error %v, want one of kind %q", err, provider.KindStream)
	}
}

// cancel checks that the error is the context's and that the stream ends within five seconds. The server stays silent after the
// text, so only the cancellation can end it.
func cancel(t *testing.T, serve func(*testing.T, Reply) provider.Provider) {
	r := full()
	r.Stall = true // the connection stays open after the text
	p := serve(t, r)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begin := time.Now()
	for chunk, err := range p.Stream(ctx, Request()) {
		if chunk.Text != "" { // the answer has begun
			cancel()
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want %v", err, context.Canceled)
		}
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("the stream ended %v after it began", took)
	}
}

// dead checks that a context which is done before the call fails it.
func dead(t *testing.T, serve func(*testing.T, Reply) provider.Provider) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := collect(ctx, t, serve(t, full()))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

// leave stops reading after the first chunk, then after the second, and so on. A Provider must not call yield again after that:
// the runtime panics if it does.
func leave(t *testing.T, serve func(*testing.T, Reply) provider.Provider) {
	p := serve(t, full())
	for n := 1; ; n++ { // n chunks are read before the reader leaves
		seen := 0
		for range p.Stream(t.Context(), Request()) {
			if seen++; seen == n {
				break
			}
		}
		if seen < n { // the stream ended first: every place was tried
			return
		}
	}
}

// parallel runs eight calls of one Provider and checks that each gets the whole reply.
func parallel(t *testing.T, serve func(*testing.T, Reply) provider.Provider) {
	p := serve(t, full())
	var group sync.WaitGroup
	for range 8 { // calls share one Provider and its caches
		group.Go(func() {
			got, err := collect(t.Context(), t, p)
			if err != nil {
				t.Error(err)
			}
			if d := cmp.Diff(wants(full()), got.Parts); d != "" {
				t.Errorf("parts (-want +got):\n%s", d)
			}
		})
	}
	group.Wait()
}
