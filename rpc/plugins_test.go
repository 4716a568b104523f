package rpc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// counter is a plugin that counts, and whose operations are of all kinds. The engine asks for its revision also while an operation runs.
type counter struct{ n, revision atomic.Uint64 }

func (c *counter) ID() string                                       { return "counter" }
func (c *counter) Build(plugin.BuildContext) (plugin.Plugin, error) { return &counter{}, nil }
func (c *counter) Revision() uint64                                 { return c.revision.Load() }

func (c *counter) Register(r *plugin.Registrar) error {
	ops := r.Operations()
	ops.Query(protocol.OperationInfo{Name: "count", Description: "How many?"}, func(context.Context, *plugin.OperationCall) (json.RawMessage, error) {
		return json.Marshal(c.n.Load())
	})
	ops.Query(protocol.OperationInfo{Name: "about", Session: protocol.SessionForbidden}, func(context.Context, *plugin.OperationCall) (json.RawMessage, error) {
		return json.RawMessage(`"counts"`), nil
	})
	ops.Command(protocol.OperationInfo{Name: "add", Input: json.RawMessage(`{"type":"object","properties":{"by":{"type":"integer"}}}`)}, c.add)
	ops.Task(protocol.OperationInfo{Name: "forever"}, func(ctx context.Context, _ *plugin.OperationCall) (*plugin.OperationResult, error) {
		<-ctx.Done()
		return &plugin.OperationResult{Output: json.RawMessage(`"late"`)}, nil
	})
	return nil
}

func (c *counter) add(_ context.Context, call *plugin.OperationCall) (*plugin.OperationResult, error) {
	var args struct{ By uint64 }
	if err := json.Unmarshal(call.Args, &args); err != nil || args.By == 13 {
		return nil, errors.New("not by so many")
	}
	c.revision.Add(1)
	out, err := json.Marshal(c.n.Add(args.By))
	return &plugin.OperationResult{Output: out, Events: []protocol.PluginNode{{Type: "counted", Body: out}}}, err
}

func (c *counter) Snapshot(context.Context, *plugin.ArtifactWriter) (json.RawMessage, error) {
	return json.Marshal(c.n.Load())
}

func (c *counter) Restore(_ context.Context, meta plugin.Meta, _ *plugin.ArtifactReader) error {
	c.revision.Store(meta.Revision)
	var n uint64
	if meta.State != nil {
		if err := json.Unmarshal(meta.State, &n); err != nil {
			return err
		}
	}
	c.n.Store(n)
	return nil
}

func TestPluginsOnTheWire(t *testing.T) {
	s := startWith(t, []plugin.Factory{&counter{}})
	w := s.dial(t, false)
	id := w.newSession(t)
	result := func(method, params string) (r struct {
		Output json.RawMessage
		Seq    protocol.Seq
		protocol.SnapshotReadResult
		Data []protocol.OperationInfo
	}) {
		t.Helper()
		a := w.ask(t, 1, method, params)
		if err := json.Unmarshal(a.Result, &r); err != nil || a.Error != nil {
			t.Fatalf("%s %s: %+v %v", method, params, a.Error, err)
		}
		return r
	}
	in := fmt.Sprintf(`{"sessionId":%q`, id)
	t.Run("plugin/OP-02 plugin/OP-11 operations are listed and called, with a session and without", func(t *testing.T) {
		if all := result("operation/list", `{}`).Data; len(all) != 4 || all[2].Name != "count" || all[2].Description != "How many?" {
			t.Errorf("%+v", all)
		}
		if out := result("operation/query", `{"name":"about"}`).Output; string(out) != `"counts"` {
			t.Errorf("%s", out)
		}
		if out := result("operation/command", in+`,"name":"add","args":{"by":2}}`).Output; string(out) != "2" {
			t.Errorf("%s", out)
		}
		if out := result("action/invoke", in+`,"name":"count"}`).Output; string(out) != "2" {
			t.Errorf("%s", out)
		}
	})
	t.Run("plugin/OP-05 subscribers of the session receive the event of an operation", func(t *testing.T) {
		w.send(t, strings.TrimSpace(call("operation/command", in+`,"name":"add","args":{"by":1}}`)))
		for seen, answered := false, false; !seen || !answered; {
			a := w.read(t)
			e := a.Params
			answered = answered || a.Method == ""
			seen = seen || e.Type == protocol.EventPluginCustom && e.Plugin == "counter" && e.Name == "counted" && string(e.Body) == "3"
		}
	})
	t.Run("plugin/OP-10 failures have an error kind", func(t *testing.T) {
		for params, kind := range map[string]protocol.ErrorKind{
			`{"name":"add"}`: protocol.KindMissingSession, in + `,"name":"count"}`: protocol.KindUnknownOperation,
			in + `,"name":"add","args":{"by":13}}`: protocol.KindOperationFailed, in + `,"name":"add","args":{"by":"x"}}`: protocol.KindOperationFailed,
		} {
			if a := w.ask(t, 2, "operation/command", params); a.Error == nil || a.Error.Data.Kind != kind || a.Error.Data.Outcome != protocol.EffectNone {
				t.Errorf("%s: %+v", params, a.Error)
			}
		}
		if a := w.ask(t, 2, "operation/query", in+`,"name":"about"}`); a.Error == nil || a.Error.Data.Kind != protocol.KindUnexpectedSession {
			t.Errorf("%+v", a.Error)
		}
	})
	t.Run("plugin/OP-09 a task ends when its request is cancelled, and its result is the response", func(t *testing.T) {
		w.send(t, `{"jsonrpc":"2.0","id":7,"method":"operation/task","params":`+in+`,"name":"forever"}}`)
		w.send(t, `{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":7}}`)
		a := w.answer(t)
		late := bytes.Contains(a.Result, []byte(`"late"`))
		early := a.Error != nil && a.Error.Data.Kind == protocol.KindCancelled // it had not begun
		if string(a.ID) != "7" || !late && !early {
			t.Errorf("%s: %s %+v", a.ID, a.Result, a.Error)
		}
	})
	t.Run("a snapshot is created, announced, read and restored", func(t *testing.T) {
		name := in + `,"name":"three"}`
		result("snapshot/create", name)
		if r := result("snapshot/read", name); len(r.Plugins) != 1 || string(r.Plugins[0].State) != "3" || r.Plugins[0].Plugin != "counter" {
			t.Errorf("%+v", r.Plugins)
		}
		result("operation/command", in+`,"name":"add","args":{"by":4}}`)
		result("snapshot/restore", name)
		if out := result("operation/query", in+`,"name":"count"}`).Output; string(out) != "3" {
			t.Errorf("restored to %s", out)
		}
		if a := w.ask(t, 3, "snapshot/create", name); a.Error == nil || a.Error.Data.Kind != protocol.KindConflict {
			t.Errorf("the same name again: %+v", a.Error)
		}
	})
	t.Run("an artifact is written in parts, once each, and read in parts", func(t *testing.T) { artifacts(t, w, id) })
}

func artifacts(t *testing.T, w *peer, id string) {
	whole := bytes.Repeat([]byte("lashd"), 300_000)
	digest := protocol.DigestOf(whole)
	const part = 1 << 20
	send := func(offset, end int, done bool) (r protocol.ArtifactWriteResult) {
		t.Helper()
		p := protocol.ArtifactWriteParams{SessionID: protocol.SessionID(id), UploadID: "u", Offset: int64(offset), Bytes: whole[offset:end], Done: done}
		if done {
			p.Digest, p.IdempotencyKey = digest, "last"
		}
		w.call(t, "artifact/write", p, &r)
		return r
	}
	for range 2 {
		if r := send(0, part, false); r.Received != part || r.Digest != "" {
			t.Errorf("%+v", r)
		}
	}
	for _, again := range []bool{false, true} {
		if r := send(part, len(whole), true); r.Received != int64(len(whole)) || r.Digest != digest || r.Duplicate != again {
			t.Errorf("%+v", r)
		}
	}
	var got []byte
	for len(got) < len(whole) {
		var r protocol.ArtifactReadResult
		w.call(t, "artifact/read", protocol.ArtifactReadParams{Digest: digest, Offset: int64(len(got))}, &r)
		if r.Size != int64(len(whole)) || len(r.Bytes) == 0 {
			t.Fatalf("%d bytes of %d at %d", len(r.Bytes), r.Size, r.Offset)
		}
		got = append(got, r.Bytes...)
	}
	if !bytes.Equal(got, whole) {
		t.Error("other bytes come back")
	}
}

// call makes a request that must succeed.
func (p *peer) call(t *testing.T, method string, params, into any) {
	t.Helper()
	body, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	a := p.ask(t, 9, method, string(body))
	if err := json.Unmarshal(a.Result, into); err != nil || a.Error != nil {
		t.Fatalf("%s: %+v %v", method, a.Error, err)
	}
}

// TestDecisionsOnTheWire makes each request of a plugin once more, with its key.
func TestDecisionsOnTheWire(t *testing.T) {
	s := start(t)
	w := s.dial(t, false)
	dir := filepath.Join(s.store.Dir(), "user", "p")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "plugin.json"), []byte(`{"name":"p","lashd":{"prompt":[{"slot":"guidance","content":"x"}]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if a := w.ask(t, 1, "plugin/reload", `{}`); a.Error != nil {
		t.Fatalf("%+v", a.Error)
	}
	status := func() string {
		t.Helper()
		var r protocol.PluginReadResult
		if a := w.ask(t, 1, "plugin/read", `{"name":"p"}`); a.Error != nil || json.Unmarshal(a.Result, &r) != nil {
			t.Fatalf("%s %+v", a.Result, a.Error)
		}
		return string(r.Plugin.Status)
	}
	t.Run("reliability/P2 issue/4-5 a decision with a key counts once, and a repeat gets the first response", func(t *testing.T) {
		off, on := `{"name":"p","enabled":false,"idempotencyKey":"k1"}`, `{"name":"p","enabled":true,"idempotencyKey":"k2"}`
		first := w.ask(t, 1, "plugin/setEnabled", off)
		if first.Error != nil || bytes.Contains(first.Result, []byte("duplicate")) || status() != "disabled" {
			t.Fatalf("%s %+v", first.Result, first.Error)
		}
		if a := w.ask(t, 1, "plugin/setEnabled", on); a.Error != nil || status() != "loaded" {
			t.Fatalf("%s %+v", a.Result, a.Error)
		}
		again := w.ask(t, 1, "plugin/setEnabled", off)
		if want := strings.Replace(string(first.Result), "{", `{"duplicate":true,`, 1); again.Error != nil || string(again.Result) != want || status() != "loaded" {
			t.Errorf("once more: %s %+v, it is %s", again.Result, again.Error, status())
		}
		if a := w.ask(t, 1, "plugin/setEnabled", `{"name":"p","enabled":true,"idempotencyKey":"k1"}`); a.Error == nil || a.Error.Data.Kind != protocol.KindConflict {
			t.Errorf("another request with the key: %s %+v", a.Result, a.Error)
		}
	})
	t.Run("reliability/P2 issue/4-4 a reload with a key runs once", func(t *testing.T) {
		for _, want := range []bool{false, true} {
			if a := w.ask(t, 1, "plugin/reload", `{"idempotencyKey":"k3"}`); a.Error != nil || bytes.Contains(a.Result, []byte(`"duplicate":true`)) != want {
				t.Errorf("%s %+v", a.Result, a.Error)
			}
		}
	})
}
