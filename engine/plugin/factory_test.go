package plugin_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/plugin"
)

func TestFactories(t *testing.T) {
	t.Run("plugin/PH-02 a supplied factory replaces the built-in factory with the same id", func(t *testing.T) {
		var log []string
		builtin := plugin.Stack{noted{id: "a", log: &log, fail: "build"}, noted{id: "b", log: &log}}
		merged := plugin.Override(builtin, plugin.Stack{noted{id: "c", log: &log}, noted{id: "a", log: &log}})
		open(t, merged...)
		if want := []string{"build b", "register b", "build c", "register c", "build a", "register a"}; !slices.Equal(log[:6], want) {
			t.Errorf("%q, want %q", log, want)
		}
	})
	t.Run("plugin/PH-02 two supplied factories with the same id are rejected", func(t *testing.T) {
		for _, c := range [][2]plugin.Stack{
			{{driver("d")}, {driver("x"), driver("x")}},
			{{driver("x"), driver("x")}, nil},
			{{driver("x")}, {driver("x")}},
		} {
			if _, err := plugin.NewHost(c[0], c[1]); err == nil || !strings.Contains(err.Error(), `"x"`) {
				t.Errorf("%q and %q: %v", c[0].IDs(), c[1].IDs(), err)
			}
		}
	})
	t.Run("plugin/PH-03 extensions are collected once, by id, in order", func(t *testing.T) {
		asked := 0
		h := newHost(t, extender{"a", []plugin.Extension{{ID: "x", Payload: raw(`1`)}, {ID: "y", Payload: raw(`2`)}}, &asked},
			extender{"b", []plugin.Extension{{ID: "x", Payload: raw(`1`)}}, &asked})
		want := plugin.Extensions{"x": {raw(`1`), raw(`1`)}, "y": {raw(`2`)}}
		h.Extensions()["x"][0][0] = '9'
		if diff := cmp.Diff(want, h.Extensions()); diff != "" || asked != 2 || len(h.Extensions()["z"]) != 0 {
			t.Errorf("asked %d times: %s", asked, diff)
		}
	})
	t.Run("plugin/PH-04 two process engines of one kind are rejected", func(t *testing.T) {
		first, again := engines{"a", "wasm"}, engines{"b", "wasm"}
		if e, ok := newHost(t, first).ProcessEngine("wasm"); !ok || e != first {
			t.Errorf("engine %v", e)
		}
		_, err := plugin.NewHost(nil, []plugin.Factory{first, again})
		if want := `plugin host: plugins a and b both provide a process engine of kind "wasm"`; err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	})
	t.Run("plugin/PH-13 all factories are shut down, protocol plugins first, once", func(t *testing.T) {
		var log []string
		bad := func(id string) noted { return noted{id: id, log: &log, fail: "shutdown"} }
		h, err := plugin.NewHost([]plugin.Factory{noted{id: "d", log: &log}}, []plugin.Factory{bad("a"), bad("b"), noted{id: "c", log: &log}})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := h.Shutdown(t.Context()); err == nil || err.Error() != "plugin a: shutdown: boom" {
				t.Errorf("error %v", err)
			}
		}
		if diff := cmp.Diff([]string{"shutdown d", "shutdown a", "shutdown b", "shutdown c"}, log); diff != "" {
			t.Error(diff)
		}
	})
}

type extender struct {
	id    string
	list  []plugin.Extension
	asked *int
}

func (e extender) ID() string                                       { return e.id }
func (e extender) Build(plugin.BuildContext) (plugin.Plugin, error) { return nil, errBoom }
func (e extender) Extensions() []plugin.Extension {
	*e.asked++
	return e.list
}

type engines struct{ id, kind string }

func (e engines) ID() string                                       { return e.id }
func (e engines) Build(plugin.BuildContext) (plugin.Plugin, error) { return nil, errBoom }
func (e engines) Kind() string                                     { return e.kind }
func (e engines) ProcessEngines(plugin.Extensions) []plugin.ProcessEngine {
	return []plugin.ProcessEngine{e}
}

// lingering is a factory whose Shutdown blocks until the test releases it.
type lingering struct {
	noted
	hang chan struct{}
}

func (l lingering) Shutdown(ctx context.Context) error {
	<-l.hang
	return l.noted.Shutdown(ctx)
}

func TestDeafShutdown(t *testing.T) {
	t.Run("plugin/PH-13 plugin/HK-28 a factory whose Shutdown blocks is abandoned, and the next factories are shut down", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var log, unused []string
			hang := make(chan struct{})
			defer close(hang)
			h, err := plugin.NewHost([]plugin.Factory{lingering{noted{id: "d", log: &unused}, hang}}, []plugin.Factory{noted{id: "a", log: &log}})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			began := time.Now()
			if err := h.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "plugin d: shutdown") || len(log) != 1 {
				t.Errorf("%v, told %q", err, log)
			}
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	})
}
