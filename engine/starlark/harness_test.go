package starlark_test

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"lashd/engine/starlark"
	"lashd/rpc/protocol"
)

// hosting is a host with the tools of a test. It records the batches of calls.
type hosting struct {
	batches [][]string // names and arguments
	call    func(c starlark.Call) protocol.ToolOutput
	before  func(ctx context.Context) error // runs before each batch
	asked   []string                        // other effects
}

func (h *hosting) Call(ctx context.Context, calls []starlark.Call) ([]protocol.ToolOutput, error) {
	if h.before != nil {
		if err := h.before(ctx); err != nil {
			return nil, err
		}
	}
	var batch []string
	var out []protocol.ToolOutput
	for _, c := range calls {
		batch = append(batch, c.Name+string(c.Args))
		out = append(out, h.call(c))
	}
	h.batches = append(h.batches, batch)
	return out, nil
}

func (h *hosting) Now(context.Context) (time.Time, error) {
	h.asked = append(h.asked, "now")
	return time.UnixMilli(1_700_000_000_500), nil
}

func (h *hosting) Random(context.Context) ([]byte, error) {
	h.asked = append(h.asked, "random")
	return []byte(strings.Repeat("r", 32)), nil
}

func (h *hosting) History(context.Context) (json.RawMessage, error) {
	h.asked = append(h.asked, "history")
	return json.RawMessage(`[{"role":"user","text":"hello"}]`), nil
}

// echoing returns a host whose tools return their arguments as the value.
func echoing() *hosting {
	return &hosting{call: func(c starlark.Call) protocol.ToolOutput {
		return protocol.ToolOutput{Status: protocol.OutputSuccess, Value: c.Args}
	}}
}

// cells runs cells one after the other in a new interpreter and returns the last reply.
func cells(t *testing.T, sources ...string) starlark.Reply {
	t.Helper()
	in := starlark.New(starlark.Config{})
	return runs(t, in, sources...)
}

// runs runs cells and returns the last reply. All cells but the last must succeed.
func runs(t *testing.T, in *starlark.Interpreter, sources ...string) starlark.Reply {
	t.Helper()
	var r starlark.Reply
	for i, source := range sources {
		r = in.Execute(t.Context(), &starlark.Cell{Source: source, AcceptFinish: true}, echoing())
		if r.Error != "" && i < len(sources)-1 {
			t.Fatalf("cell %d failed: %s\n%s", i+1, r.Error, source)
		}
	}
	return r
}

// wants checks the value of a reply without an error.
func wants(t *testing.T, r starlark.Reply, value string) {
	t.Helper()
	if r.Error != "" {
		t.Fatalf("error: %s", r.Error)
	}
	if string(r.Value) != value {
		t.Errorf("value %s, want %s", r.Value, value)
	}
}

// fails checks that a reply has an error that contains a text.
func fails(t *testing.T, r starlark.Reply, text string) {
	t.Helper()
	if !strings.Contains(r.Error, text) {
		t.Errorf("error %q, want %q in it", r.Error, text)
	}
}

// reloaded returns a new interpreter with the state of another, as after a restart. Everything that changed since the
// last Snapshot is merged into stored.
func reloaded(t *testing.T, in *starlark.Interpreter, stored map[string][]byte) *starlark.Interpreter {
	t.Helper()
	maps.Copy(stored, in.Snapshot())
	again := starlark.New(starlark.Config{})
	if err := again.Restore(stored); err != nil {
		t.Fatal(err)
	}
	return again
}
