package plugin_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/tool"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

var errBoom = errors.New("boom")

// silent is a driver that does nothing.
type silent struct{ name string }

func (silent) Prepare(turn.View) []turn.Action                   { return nil }
func (silent) Reply(turn.View, provider.Reply) []turn.Action     { return nil }
func (silent) Results(turn.View, []turn.ToolReply) []turn.Action { return nil }
func (silent) Cell(turn.View, turn.CellReply) []turn.Action      { return nil }
func (silent) Limit(turn.View) []turn.Action                     { return nil }
func (silent) Visible(prose string) string                       { return prose }
func (silent) HandlesOutputLimit() bool                          { return false }

func (s silent) Preamble(in plugin.PreambleInput) string {
	return s.name + " with " + strings.Repeat("tool ", len(in.Tools))
}

// tools is a source of tools with these names, or "id=name".
type tools []string

func (l tools) Tools() []tool.Tool {
	var list []tool.Tool
	for _, s := range l {
		id, name, found := strings.Cut(s, "=")
		if !found {
			id, name = "", s
		}
		list = append(list, tool.Tool{Manifest: protocol.ToolManifest{ID: id, Name: name}})
	}
	return list
}

func (tools) Execute(context.Context, tool.Invocation) (tool.Result, error) {
	return tool.Result{}, nil
}

// with returns a plugin with the given Register function.
func with(id string, register func(*plugin.Registrar)) plugin.Factory {
	return plugin.Static(id, func(r *plugin.Registrar) error {
		register(r)
		return nil
	})
}

func driver(id string) plugin.Factory {
	return with(id, func(r *plugin.Registrar) { r.Protocol().Driver(silent{id}) })
}

func newHost(t testing.TB, plugins ...plugin.Factory) *plugin.Host {
	t.Helper()
	h, err := plugin.NewHost([]plugin.Factory{driver("d")}, plugins)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// open opens the session "s" with a silent driver and plugins.
func open(t testing.TB, plugins ...plugin.Factory) *plugin.Session {
	t.Helper()
	s, err := newHost(t, plugins...).Open(t.Context(), "d", nil, plugin.BuildContext{SessionID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// refused returns the error of opening a session with plugins.
func refused(t *testing.T, plugins ...plugin.Factory) string {
	t.Helper()
	h := newHost(t, plugins...)
	s, err := h.Open(t.Context(), "d", nil, plugin.BuildContext{SessionID: "s"})
	if err == nil {
		t.Fatal("the session opens")
	}
	if _, found := h.Session("s"); s != nil || found == nil {
		t.Errorf("a rejected session is open: %v", s)
	}
	return err.Error()
}

func ids(owned []plugin.Owned) []string {
	var list []string
	for _, o := range owned {
		list = append(list, o.Plugin+" "+string(o.Kind))
	}
	return list
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

// printOf returns the fingerprint of a session.
func printOf(t testing.TB, s *plugin.Session) uint64 {
	t.Helper()
	sum, err := s.Fingerprint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return sum
}
