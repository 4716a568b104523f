package plugin_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// noted is a plugin that records the calls of its methods.
type noted struct {
	id   string
	log  *[]string
	fail string // the method that fails
}

func (n noted) note(what string) error {
	*n.log = append(*n.log, what+" "+n.id)
	if n.fail == what {
		return errBoom
	}
	return nil
}

func (n noted) ID() string { return n.id }

func (n noted) Build(plugin.BuildContext) (plugin.Plugin, error) {
	if err := n.note("build"); err != nil {
		return nil, err
	}
	return n, nil
}

func (n noted) Register(*plugin.Registrar) error                  { return n.note("register") }
func (n noted) Close() error                                      { return n.note("close") }
func (n noted) Ready(id protocol.SessionID, h *plugin.Host) error { return n.found(id, h) }
func (n noted) Shutdown(context.Context) error                    { return n.note("shutdown") }
func (n noted) Revision() uint64                                  { return 0 }
func (n noted) Restore(context.Context, plugin.Meta, *plugin.ArtifactReader) error {
	return n.note("restore")
}

func (n noted) Snapshot(context.Context, *plugin.ArtifactWriter) (json.RawMessage, error) {
	return nil, nil
}

func (n noted) found(id protocol.SessionID, h *plugin.Host) error {
	if _, err := h.Session(id); err != nil {
		return err
	}
	return n.note("ready")
}

func TestOpen(t *testing.T) {
	t.Run("plugin/PH-05 a factory sees the session, its authority and the plugin's own options", func(t *testing.T) {
		seen := map[string]plugin.BuildContext{}
		see := func(id string) plugin.Factory {
			return plugin.Builder(id, func(ctx plugin.BuildContext) (plugin.Spec, error) {
				seen[id] = ctx
				return func(*plugin.Registrar) error { return nil }, nil
			})
		}
		h := newHost(t, see("a"), see("b"), extending{see("x")})
		bc := plugin.BuildContext{SessionID: "s", Parent: "p", Cwd: "/w", StateDir: "/st",
			Authority: protocol.Authority{Tools: []string{"t"}, Hidden: []string{"h"}, Subagent: &protocol.Subagent{Parent: "p", Depth: 1, MaxDepth: 2}}}
		if _, err := h.Open(t.Context(), "d", protocol.PluginOptions{"a": raw(`{"x":1}`)}, bc); err != nil {
			t.Fatal(err)
		}
		bc.Extensions = plugin.Extensions{"e": {raw(`true`)}}
		if diff := cmp.Diff(bc, seen["b"]); diff != "" {
			t.Error(diff)
		}
		bc.Options = raw(`{"x":1}`)
		if diff := cmp.Diff(bc, seen["a"]); diff != "" {
			t.Error(diff)
		}
		if seen["a"].Root() || !(plugin.BuildContext{}).Root() {
			t.Error("a root session is one without a parent")
		}
	})

	t.Run("plugin/PH-06 plugin/S-08 a failed build closes the plugins built before and frees the id", func(t *testing.T) {
		for fail, closed := range map[string][]string{
			"build": {"close a"}, "register": {"close bad", "close a"}, "ready": {"close z", "close bad", "close a"}, "restore": {"close z", "close bad", "close a"},
		} {
			var log []string
			bad := noted{id: "bad", log: &log, fail: fail}
			h := newHost(t, noted{id: "a", log: &log}, &bad, noted{id: "z", log: &log})
			from := func() (*plugin.Session, error) {
				s, _, err := h.OpenFrom(t.Context(), plugin.Stored{Plugins: &plugin.Snapshot{}}, "d", nil, plugin.BuildContext{SessionID: "s"})
				return s, err
			}
			s, err := from()
			if _, missing := h.Session("s"); s != nil || missing == nil || !errors.Is(err, errBoom) || !strings.Contains(err.Error(), "plugin bad: ") {
				t.Errorf("%s: session %v, error %v", fail, s, err)
			}
			if got := log[len(log)-len(closed):]; !slices.Equal(got, closed) {
				t.Errorf("%s: %q, want %q at the end", fail, log, closed)
			}
			bad.fail = ""
			if _, err := from(); err != nil {
				t.Errorf("%s: the id is not free: %v", fail, err)
			}
		}
	})

	t.Run("a panic in Build is an error, and the plugins built before are closed", func(t *testing.T) {
		var log []string
		got := refused(t, noted{id: "a", log: &log}, with("bad", func(*plugin.Registrar) { panic("clumsy") }))
		if got != "plugin bad: panicked: clumsy" || log[len(log)-1] != "close a" {
			t.Errorf("%s, %q", got, log)
		}
	})

	t.Run("plugin/PH-10 a session can be open only once", func(t *testing.T) {
		h := newHost(t)
		again := func(h *plugin.Host) (*plugin.Session, error) {
			return h.Open(t.Context(), "d", nil, plugin.BuildContext{SessionID: "s"})
		}
		s, err := again(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := again(h); !errors.Is(err, plugin.ErrOpen) {
			t.Errorf("a second open: %v", err)
		}
		if found, err := h.Session("s"); found != s {
			t.Errorf("found %v, %v", found, err)
		}
		if _, err := again(h.Isolated()); err != nil {
			t.Errorf("in an isolated host: %v", err)
		}
		for range 2 {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		next, err := again(h)
		if err != nil {
			t.Fatal(err)
		}
		_ = s.Close()
		if found, err := h.Session("s"); found != next {
			t.Errorf("closing the old session closed the new one: %v", err)
		}
	})

	t.Run("plugin/PH-11 Ready is called after the session is listed and before Restore", func(t *testing.T) {
		var log []string
		h := newHost(t, noted{id: "a", log: &log}, noted{id: "b", log: &log})
		s, _, err := h.OpenFrom(t.Context(), plugin.Stored{Plugins: &plugin.Snapshot{}}, "d", nil, plugin.BuildContext{SessionID: "s"})
		if err != nil {
			t.Fatal(err)
		}
		_ = s.Close()
		want := []string{"build a", "register a", "build b", "register b", "ready a", "ready b", "restore a", "restore b", "close b", "close a"}
		if diff := cmp.Diff(want, log); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("a session asks for a driver by name", func(t *testing.T) {
		h, err := plugin.NewHost([]plugin.Factory{driver("x"), driver("d")}, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := h.Open(t.Context(), "x", nil, plugin.BuildContext{})
		if err != nil {
			t.Fatal(err)
		}
		said, err := s.Preamble(t.Context(), tool.NewRegistry(nil, nil, protocol.ToolState{}).Catalog())
		if err != nil || said.Text != "x with " || !slices.Equal(plugin.DriverNames(h.Drivers()), []string{"d", "x"}) {
			t.Errorf("%v, drivers %+v", err, h.Drivers())
		}
		if _, err := h.Open(t.Context(), "y", nil, plugin.BuildContext{}); !errors.Is(err, plugin.ErrNoDriver) || err.Error() != `unknown driver "y" (known drivers: d, x)` {
			t.Errorf("an unknown driver: %v", err)
		}
	})
}
