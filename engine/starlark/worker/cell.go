package worker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"lashd/engine/starlark"
	"lashd/rpc/protocol"
)

// startCell starts a cell. Its goroutine answers the call. An error means that no cell has started.
func (w *worker) startCell(ctx context.Context, id []byte, p *params) error {
	s := w.sessions[p.Instance]
	switch {
	case s == nil:
		return fmt.Errorf("code/execute: there is no instance %q", p.Instance)
	case p.Language != "" && p.Language != starlark.Language:
		return fmt.Errorf("code/execute: the language is %q, this worker runs %s", p.Language, starlark.Language)
	case !s.running.CompareAndSwap(false, true):
		return errors.New("code/execute: a cell is running")
	}
	if err := s.bind(p.raw["tools"]); err != nil {
		s.running.Store(false)
		return fmt.Errorf("code/execute: %w", err)
	}
	s.incoming = nil // of a restore that was given up
	ctx, cancel := context.WithCancel(ctx)
	key := "cell " + string(id)
	w.waiting.Store(key, cancel)
	w.cells.Go(func() {
		defer cancel()
		allowCPU(w.limits)
		reply := s.interpreter.Execute(ctx, &starlark.Cell{ID: p.CellID, Source: p.Source, AcceptFinish: p.AcceptFinish, Schema: p.Schema}, &host{w, p.Grant})
		w.waiting.Delete(key)
		s.running.Store(false)
		w.reply(id, reply, nil)
		trimLater()
	})
	return nil
}

// bind binds the tools of a cell, unless they are those of the cell before. Absent tools are those too.
//
// Comparing is much faster than decoding: 100 tools have about 30 KB of schemas.
func (s *session) bind(raw []byte) error {
	if len(raw) == 0 || bytes.Equal(raw, s.tools) {
		return nil
	}
	var tools []protocol.ToolManifest
	if err := json.Unmarshal(raw, &tools); err != nil {
		return fmt.Errorf("the tools are invalid: %w", err)
	}
	s.interpreter.Bind(tools)
	s.tools = bytes.Clone(raw)
	return nil
}

// describe implements code/describe.
func describe(p *params) (any, error) {
	var tools []protocol.ToolManifest
	if raw := p.raw["tools"]; len(raw) > 0 {
		if err := json.Unmarshal(raw, &tools); err != nil {
			return nil, fmt.Errorf("code/describe: the tools are invalid: %w", err)
		}
	}
	return map[string]string{"language": starlark.Language, "guide": starlark.Guide(tools)}, nil
}

// value is an encoded global.
type value struct {
	name string
	data []byte
}

// maxPart is how many bytes of values one answer of code/snapshot carries, unless one value is larger. The limit of the
// protocol for a message is 8 MiB, and values grow by a third in JSON.
const maxPart = 4 << 20

// change is the answer of code/snapshot.
type change struct {
	Changed map[string][]byte     `json:"changed,omitempty"`
	Globals []protocol.CodeGlobal `json:"globals,omitempty"`
	Partial bool                  `json:"partial,omitempty"` // Globals has only those that changed
	More    bool                  `json:"more,omitempty"`    // the rest follows in the next answer
}

// snapshot implements code/snapshot: the values that changed since the last one. Globals never disappear from the state of a
// session, except with all others.
func (s *session) snapshot() *change {
	for name, data := range s.interpreter.Snapshot() {
		s.outgoing = slices.DeleteFunc(s.outgoing, func(v value) bool { return v.name == name })
		s.outgoing = append(s.outgoing, value{name, data})
	}
	slices.SortFunc(s.outgoing, func(a, b value) int { return cmp.Compare(a.name, b.name) })
	c, size := &change{Changed: map[string][]byte{}, Partial: s.listed}, 0
	for len(s.outgoing) > 0 && (size == 0 || size+len(s.outgoing[0].data) <= maxPart) {
		first := s.outgoing[0]
		c.Changed[first.name], size = first.data, size+len(first.data)
		s.outgoing = s.outgoing[1:]
	}
	if s.listed {
		c.Globals = s.interpreter.Describe(slices.Sorted(maps.Keys(c.Changed)))
	} else {
		c.Globals = s.interpreter.Globals()
	}
	s.listed, c.More = true, len(s.outgoing) > 0
	return c
}

// restore implements code/restore: the values replace all globals. With more, further values follow in other calls.
func (s *session) restore(p *params) error {
	if s.incoming == nil {
		s.incoming = map[string][]byte{}
	}
	values := s.incoming
	if raw := p.raw["values"]; len(raw) > 0 && string(raw) != "null" {
		err := members(raw, func(name string, raw []byte) error {
			data, err := base64.StdEncoding.AppendDecode(nil, bytes.Trim(raw, `"`))
			values[name] = data
			return err
		})
		if err != nil {
			s.incoming = nil
			return fmt.Errorf("code/restore: %w", err)
		}
	}
	if p.More {
		return nil
	}
	s.incoming, s.outgoing, s.listed = nil, nil, false
	return s.interpreter.Restore(values)
}

// host serves the effects of a cell with requests to the daemon.
type host struct {
	w     *worker
	grant string
}

// Call implements starlark.Host.
func (h *host) Call(ctx context.Context, calls []starlark.Call) ([]protocol.ToolOutput, error) {
	answer, err := request[struct {
		Data []protocol.ToolOutput `json:"data"`
	}](ctx, h, "host/callTool", map[string]any{"calls": calls})
	return answer.Data, err
}

// Now implements starlark.Host.
func (h *host) Now(ctx context.Context) (time.Time, error) {
	answer, err := request[struct {
		UnixNs int64 `json:"unixNs"`
	}](ctx, h, "host/now", map[string]any{})
	return time.Unix(0, answer.UnixNs), err
}

// Random implements starlark.Host.
func (h *host) Random(ctx context.Context) ([]byte, error) {
	answer, err := request[struct {
		Bytes []byte `json:"bytes"`
	}](ctx, h, "host/random", map[string]any{})
	return answer.Bytes, err
}

// History implements starlark.Host.
func (h *host) History(ctx context.Context) (json.RawMessage, error) {
	answer, err := request[struct {
		Data json.RawMessage `json:"data"`
	}](ctx, h, "host/history", map[string]any{})
	return answer.Data, err
}

// rejection is an error that the daemon returned for a request.
type rejection struct {
	Message string `json:"message"`
}

func (r *rejection) Error() string { return r.Message }

// request sends a request under the grant of the cell and waits for its answer.
//
// If ctx ends first, the answer is dropped when it comes. The daemon gives the call up too: it sent the cancellation.
func request[A any](ctx context.Context, h *host, method string, params map[string]any) (answer A, err error) {
	id := fmt.Sprintf(`"cell-%d"`, h.w.calls.Add(1))
	got := make(chan *message, 1)
	h.w.waiting.Store(id, got)
	defer h.w.waiting.Delete(id)
	params["grant"] = h.grant
	if err := h.w.send(map[string]any{"id": json.RawMessage(id), "method": method, "params": params}); err != nil {
		return answer, err
	}
	select {
	case m := <-got:
		if m.failure != nil {
			failed := &rejection{}
			if err := json.Unmarshal(m.failure, failed); err != nil {
				return answer, err
			}
			return answer, failed
		}
		return answer, json.Unmarshal(m.result, &answer)
	case <-ctx.Done():
		return answer, context.Cause(ctx)
	}
}
