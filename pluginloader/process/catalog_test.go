//go:build unix

package process_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"lashd/engine/builtin/builtintest"
	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/pluginloader/child"
	"lashd/pluginloader/process"
	"lashd/rpc/protocol"
)

// omitting is a plugin with a catalog hook that counts its calls.
func omitting(t *testing.T, role string, c process.Contributions) (process.Config, func() int) {
	cfg := config(t, role, c)
	cfg.Output = child.NewLog(slog.New(slog.DiscardHandler))
	return cfg, func() (n int) {
		for _, line := range cfg.Output.Newest() {
			if strings.Contains(line.Text, "asked for the catalog") {
				n++
			}
		}
		return n
	}
}

// tooled is a plugin in Go with tools that do nothing.
func tooled(names ...string) plugin.Factory {
	return plugin.Static("tooled", func(r *plugin.Registrar) error {
		r.Tools().Add(idle(names))
		return nil
	})
}

type idle []string

func (i idle) Tools() (all []tool.Tool) {
	for _, m := range manifests(i...) {
		all = append(all, tool.Tool{Manifest: m})
	}
	return all
}

func (idle) Execute(context.Context, tool.Invocation) (tool.Result, error) { return tool.Result{}, nil }

func offered(t *testing.T, model *builtintest.Recorder) (names []string) {
	t.Helper()
	for _, m := range model.Last(t).Tools {
		names = append(names, m.Name)
	}
	return names
}

// counter is a plugin in Go whose state is another one after each turn.
type counter struct{ turns atomic.Uint64 }

func (c *counter) Register(r *plugin.Registrar) error {
	r.Turn().After(func(context.Context, *plugin.TurnSummary) ([]plugin.Directive, error) {
		c.turns.Add(1)
		return nil, nil
	})
	return nil
}

func (c *counter) Revision() uint64 { return c.turns.Load() }

func (c *counter) Snapshot(context.Context, *plugin.ArtifactWriter) (json.RawMessage, error) {
	return json.Marshal(c.turns.Load())
}

func (*counter) Restore(context.Context, plugin.Meta, *plugin.ArtifactReader) error { return nil }

type counting struct{}

func (counting) ID() string { return "counting" }

func (counting) Build(plugin.BuildContext) (plugin.Plugin, error) { return &counter{}, nil }

func listed(t *testing.T, d *builtintest.Daemon, id protocol.SessionID) (names []string) {
	t.Helper()
	for _, r := range builtintest.Must(d.Tools.List(t.Context(), &protocol.SessionParams{SessionID: id}))(t).Data {
		names = append(names, r.Name)
	}
	return names
}

func TestCatalog(t *testing.T) {
	t.Run("issue/4-2 a process hides tools from the catalog and is asked once, whatever other plugins do", func(t *testing.T) {
		cfg, asked := omitting(t, "good", everything())
		model := &builtintest.Recorder{Provider: builtintest.Calling()}
		d := builtintest.Start(t, t.TempDir(), 0, model, begin(t, cfg), tooled("hidden", "shown", "spare"), counting{})
		id := d.Session(t, nil)
		for n := range 3 {
			d.Turn(t, id, "hello")
			if got := offered(t, model); !slices.Equal(got, []string{"note", "shown", "spare"}) || asked() != 1 {
				t.Errorf("in turn %d the model has %q, and the plugin was asked %d times", n+1, got, asked())
			}
		}
	})
	t.Run("issue/4-2 after its state changes, a process hides other tools from the next turn on", func(t *testing.T) {
		cfg, asked := omitting(t, "good", everything())
		model := noting(`{"text":"spare"}`)
		d := builtintest.Start(t, t.TempDir(), 0, model, begin(t, cfg), tooled("hidden", "shown", "spare"))
		id := d.Session(t, nil)
		d.Turn(t, id, "hello")
		if got := offered(t, model); !slices.Equal(got, []string{"note", "shown", "spare"}) || asked() != 1 {
			t.Errorf("the model has %q, and the plugin was asked %d times", got, asked())
		}
		d.Turn(t, id, "hello")
		if got := offered(t, model); !slices.Equal(got, []string{"note", "shown"}) || asked() != 2 {
			t.Errorf("then the model has %q, and the plugin was asked %d times", got, asked())
		}
	})
	t.Run("issue/4-2 with onError allow, a session has all tools until the catalog hook answers", func(t *testing.T) {
		cfg := config(t, "hook/catalog:exitsOnce", only(process.Hook{Name: process.Catalog, OnError: process.Allow}))
		model := &builtintest.Recorder{Provider: builtintest.Calling()}
		d := builtintest.Start(t, t.TempDir(), 0, model, begin(t, cfg), tooled("hidden", "shown"))
		id := d.Session(t, nil)
		if got := listed(t, d, id); !slices.Equal(got, []string{"hidden", "note", "shown"}) {
			t.Errorf("the session has %q", got)
		}
		if r := d.Turn(t, id, "hello"); r.State != protocol.TurnCompleted || !slices.Equal(offered(t, model), []string{"note", "shown"}) {
			t.Errorf("the turn ended as %s %+v, and the model has %q", r.State, r.Issues, offered(t, model))
		}
	})
	t.Run("issue/4-2 turns fail while the catalog hook fails, and work once it answers", func(t *testing.T) {
		cfg := config(t, "hook/catalog:exitsOnce", only(process.Hook{Name: process.Catalog}))
		model := &builtintest.Recorder{Provider: builtintest.Calling()}
		d := builtintest.Start(t, t.TempDir(), 0, model, begin(t, cfg), tooled("hidden", "shown"))
		id := d.Session(t, nil)
		if _, err := d.Tools.List(t.Context(), &protocol.SessionParams{SessionID: id}); err == nil || !strings.Contains(err.Error(), "plugin notes: tool_catalog: ") {
			t.Errorf("the list of tools: %v", err)
		}
		d.Turn(t, id, "hello")
		if got := offered(t, model); !slices.Equal(got, []string{"note", "shown"}) {
			t.Errorf("then the model has %q", got)
		}
	})
}

func TestProse(t *testing.T) {
	for role, want := range map[string]struct{ safe, raw, issue string }{
		"good":                   {"AB", "A<CODE>B", ""},
		"hook/projectProse:exit": {"A<CODE>B", "", "plugin_prose"},
		"hook/projectProse:hang": {"A<CODE>B", "", "plugin_prose"},
	} {
		t.Run("issue/4-2 a process changes the text that people read, and after a failure the text stays: "+role, func(t *testing.T) {
			model := scripted.New(&scripted.Script{Otherwise: &scripted.Turn{Replies: []scripted.Reply{{Text: "a<code>b"}}}})
			cfg := config(t, role, everything())
			if strings.HasSuffix(role, "hang") {
				cfg.Deadlines.Hook = time.Second
			}
			d := builtintest.Start(t, t.TempDir(), 0, model, begin(t, cfg))
			r := d.Turn(t, d.Session(t, nil), "hello")
			var issue strings.Builder
			for _, i := range r.Issues {
				issue.WriteString(i.Code)
			}
			if r.State != protocol.TurnCompleted || r.Output.Safe != want.safe || r.Output.Raw != want.raw || issue.String() != want.issue {
				t.Errorf("%s: %+v, %+v, want %+v", r.State, r.Output, r.Issues, want)
			}
		})
	}
}

// known asks the catalog hook.
func known(t *testing.T, s *plugin.Session, names ...string) []string {
	t.Helper()
	remove, err := s.Contribute(t.Context(), plugin.CatalogContext{SessionID: s.ID(), Manifests: manifests(names...)})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(remove)
	return remove
}

func noted(t *testing.T, s *plugin.Session, text string) {
	t.Helper()
	for _, src := range s.Sources() {
		if _, ok := src.Provider.(idle); ok {
			continue
		}
		args := fmt.Appendf(nil, `{"text":%q}`, text)
		if _, err := src.Provider.Execute(t.Context(), tool.Invocation{CallID: "c1", ToolID: "note", Name: "note", Args: args}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCatalogKnown(t *testing.T) {
	want := func(t *testing.T, got []string, asked, times int, names ...string) {
		t.Helper()
		if !slices.Equal(got, names) || asked != times {
			t.Errorf("left out are %q, want %q; the plugin was asked %d times, want %d", got, names, asked, times)
		}
	}
	t.Run("issue/4-2 the catalog hook runs again for other tools, for other state, and in each session", func(t *testing.T) {
		cfg, asked := omitting(t, "good", everything())
		f := begin(t, cfg)
		s, other := session(t, "ses_1", f), session(t, "ses_2", f)
		want(t, known(t, s, "hidden", "spare"), asked(), 1, "hidden")
		want(t, known(t, s, "hidden", "spare"), asked(), 1, "hidden")
		want(t, known(t, s, "spare"), asked(), 2)
		noted(t, s, "spare")
		want(t, known(t, s, "hidden", "spare"), asked(), 3, "hidden", "spare")
		want(t, known(t, s, "hidden", "spare"), asked(), 3, "hidden", "spare")
		want(t, known(t, other, "hidden", "spare"), asked(), 4, "hidden")
	})
	t.Run("issue/4-2 an answer given before a crash stays valid, unless it depended on lost state", func(t *testing.T) {
		cfg, asked := omitting(t, "good", everything())
		s := session(t, "ses_1", begin(t, cfg))
		want(t, known(t, s, "one", "two"), asked(), 1)
		noted(t, s, "one")
		want(t, known(t, s, "one", "two"), asked(), 2, "one")
		before, _ := s.Fingerprint(t.Context())
		for _, pid := range pids(t, cfg.ID) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		for until := time.Now().Add(patience); turnHook(t.Context(), s) != nil && time.Now().Before(until); {
			time.Sleep(10 * time.Millisecond)
		}
		want(t, known(t, s, "one", "two"), asked(), 3)
		noted(t, s, "two")
		after, _ := s.Fingerprint(t.Context())
		want(t, known(t, s, "one", "two"), asked(), 4, "two")
		if before == after {
			t.Error("other state has the revision of what was lost")
		}
	})
	t.Run("issue/4-2 after a failed catalog hook there is no catalog, or with onError allow a temporary one", func(t *testing.T) {
		for policy, forNow := range map[process.OnError]bool{process.Fail: false, process.Allow: true} {
			cfg := config(t, "hook/catalog:exit", only(process.Hook{Name: process.Catalog, OnError: policy}))
			s := session(t, "ses_1", begin(t, cfg))
			err := catalogHook(t.Context(), s)
			if err == nil || errors.Is(err, tool.ErrForNow) != forNow || !forNow && !strings.Contains(err.Error(), "plugin notes: tool_catalog: ") {
				t.Errorf("%s: %v", policy, err)
			}
		}
	})
}
