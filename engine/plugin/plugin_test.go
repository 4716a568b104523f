package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/provider"
	"lashd/engine/tool"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// factory builds instances that register what a test wants, and notes what becomes of them.
type factory struct {
	id       string
	build    func(BuildContext) error
	register func(*Registrar) error
	log      *[]string
}

func (f factory) ID() string { return f.id }

func (f factory) Build(ctx BuildContext) (Plugin, error) {
	f.note("build")
	if f.build != nil {
		if err := f.build(ctx); err != nil {
			return nil, err
		}
	}
	return instance{f}, nil
}

func (f factory) note(what string) {
	if f.log != nil {
		*f.log = append(*f.log, what+" "+f.id)
	}
}

type instance struct{ f factory }

func (i instance) Register(r *Registrar) error {
	i.f.note("register")
	if i.f.register == nil {
		return nil
	}
	return i.f.register(r)
}

func (i instance) Close() error {
	i.f.note("close")
	if i.f.id == "stuck" {
		return errors.New("stuck")
	}
	return nil
}

// silent is a driver that does nothing.
type silent struct{ name string }

func (silent) Prepare(turn.View) []turn.Action                   { return nil }
func (silent) Reply(turn.View, provider.Reply) []turn.Action     { return nil }
func (silent) Results(turn.View, []turn.ToolReply) []turn.Action { return nil }
func (silent) Cell(turn.View, turn.CellReply) []turn.Action      { return nil }
func (silent) Limit(turn.View) []turn.Action                     { return nil }
func (silent) Visible(prose string) string                       { return prose }
func (silent) HandlesOutputLimit() bool                          { return false }

func (s silent) Preamble(tools []protocol.ToolManifest) string {
	return s.name + " with " + strings.Repeat("tool ", len(tools))
}

type tools []string

func (l tools) Tools() []tool.Tool {
	var list []tool.Tool
	for _, name := range l {
		list = append(list, tool.Tool{Manifest: protocol.ToolManifest{Name: name}})
	}
	return list
}

func (tools) Execute(context.Context, tool.Invocation) (tool.Result, error) {
	return tool.Result{}, nil
}

func driver(name string) factory {
	return factory{id: name, register: func(r *Registrar) error {
		r.Driver(silent{name})
		return nil
	}}
}

func registers(id string, register func(*Registrar)) factory {
	return factory{id: id, register: func(r *Registrar) error {
		register(r)
		return nil
	}}
}

func open(t *testing.T, plugins ...Factory) (*Session, error) {
	t.Helper()
	h, err := NewHost([]Factory{driver("d")}, plugins)
	if err != nil {
		t.Fatal(err)
	}
	return h.Open("d", nil, BuildContext{})
}

func TestHost(t *testing.T) {
	t.Run("two factories of one id are refused", func(t *testing.T) {
		for _, c := range [][2][]Factory{
			{{driver("d")}, {factory{id: "a"}, factory{id: "a"}}},
			{{driver("d"), driver("d")}, nil},
			{{driver("d")}, {factory{id: "d"}}},
		} {
			if _, err := NewHost(c[0], c[1]); err == nil {
				t.Errorf("%v and %v are accepted", c[0], c[1])
			}
		}
	})

	t.Run("a session has the driver it asks for, and all plugins", func(t *testing.T) {
		var log []string
		a, b := factory{id: "a", log: &log}, factory{id: "b", log: &log}
		h, err := NewHost([]Factory{driver("x"), driver("d")}, []Factory{a, b})
		if err != nil {
			t.Fatal(err)
		}
		if got := h.Drivers(); !slices.Equal(got, []string{"d", "x"}) {
			t.Errorf("drivers %q", got)
		}
		s, err := h.Open("d", nil, BuildContext{})
		if err != nil {
			t.Fatal(err)
		}
		if s.Driver() != (silent{"d"}) {
			t.Errorf("driver %v", s.Driver())
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		want := []string{"build a", "register a", "build b", "register b", "close b", "close a"}
		if diff := cmp.Diff(want, log); diff != "" {
			t.Error(diff)
		}
		if _, err := h.Open("y", nil, BuildContext{}); !errors.Is(err, ErrNoDriver) || !strings.Contains(err.Error(), `"y"`) {
			t.Errorf("an unknown driver: %v", err)
		}
	})

	t.Run("each plugin sees the session and its own options", func(t *testing.T) {
		seen := map[string]string{}
		see := func(id string) factory {
			return factory{id: id, build: func(ctx BuildContext) error {
				seen[id] = ctx.Cwd + string(ctx.Options)
				return nil
			}}
		}
		h, err := NewHost([]Factory{driver("d")}, []Factory{see("a"), see("b"), see("c")})
		if err != nil {
			t.Fatal(err)
		}
		options := protocol.PluginOptions{"a": json.RawMessage(`1`), "c": json.RawMessage(`3`)}
		if _, err := h.Open("d", options, BuildContext{Cwd: "/w "}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"a": "/w 1", "b": "/w ", "c": "/w 3"}, seen); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("a failed build closes what was built and publishes nothing", func(t *testing.T) {
		boom := errors.New("boom")
		for name, bad := range map[string]factory{
			"build":    {id: "bad", build: func(BuildContext) error { return boom }},
			"register": {id: "bad", register: func(*Registrar) error { return boom }},
		} {
			var log []string
			bad.log = &log
			s, err := open(t, factory{id: "a", log: &log}, factory{id: "stuck", log: &log}, bad, factory{id: "z", log: &log})
			if s != nil || !errors.Is(err, boom) || !strings.Contains(err.Error(), "plugin bad: boom") || !strings.Contains(err.Error(), "stuck") {
				t.Errorf("%s: session %v, %v", name, s, err)
			}
			var closed []string
			for _, line := range log {
				if strings.HasPrefix(line, "close") || strings.HasSuffix(line, " z") {
					closed = append(closed, line)
				}
			}
			want := []string{"close stuck", "close a"}
			if name == "register" {
				want = append([]string{"close bad"}, want...)
			}
			if diff := cmp.Diff(want, closed); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
	})

	t.Run("a plugin that panics leaves nothing open", func(t *testing.T) {
		var log []string
		defer func() {
			if p := recover(); p != "boom" {
				t.Errorf("recovered %v", p)
			}
			if log[len(log)-1] != "close a" {
				t.Errorf("calls are %q", log)
			}
		}()
		_, _ = open(t, factory{id: "a", log: &log}, factory{id: "bad", register: func(*Registrar) error { panic("boom") }})
		t.Error("the panic is hidden")
	})
}

func TestRegistrar(t *testing.T) {
	t.Run("a session has exactly one driver, its own", func(t *testing.T) {
		for want, plugins := range map[string][]Factory{
			"plugin p: registers a driver, but": {registers("p", func(r *Registrar) { r.Driver(silent{"p"}) })},
			"plugin q: registers a driver, but": {factory{id: "p"}, registers("q", func(r *Registrar) { r.Driver(silent{"q"}) })},
		} {
			if _, err := open(t, plugins...); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
		none, err := NewHost([]Factory{factory{id: "none"}}, []Factory{driver("other")})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := none.Open("none", nil, BuildContext{}); err == nil || !strings.Contains(err.Error(), "plugin none: registers no driver") {
			t.Errorf("a driver that another plugin brings is taken: %v", err)
		}
	})

	t.Run("mistakes are errors of the plugin that made them", func(t *testing.T) {
		for want, register := range map[string]func(*Registrar){
			"plugin p: registers a driver, but the session has one already": func(r *Registrar) { r.Driver(silent{}); r.Driver(silent{}) },
			"plugin p: registers a result projector, but the session has one already": func(r *Registrar) {
				f := func(_ string, out protocol.ToolOutput) protocol.ToolOutput { return out }
				r.ResultProjector(f)
				r.ResultProjector(f)
			},
			`plugin p: registers a prompt for the unknown slot "cellar"`: func(r *Registrar) { r.Prompt(Prompt{Slot: "cellar", Content: "x"}); r.Tools(nil) },
			"plugin p: registers a contribution that is nil":             func(r *Registrar) { r.Tools(nil) },
		} {
			if _, err := open(t, registers("p", register)); err == nil || err.Error() != want {
				t.Errorf("error %v, want %s", err, want)
			}
		}
		for _, register := range []func(*Registrar){func(r *Registrar) { r.Driver(nil) }, func(r *Registrar) { r.ResultProjector(nil) }} {
			if _, err := open(t, registers("p", register)); !errors.Is(err, errNothing) {
				t.Errorf("error %v", err)
			}
		}
	})

	t.Run("a registrar that is kept changes nothing later", func(t *testing.T) {
		var kept *Registrar
		s, err := open(t, registers("p", func(r *Registrar) { kept = r; r.Tools(tools{"a"}) }))
		if err != nil {
			t.Fatal(err)
		}
		kept.Tools(tools{"b"})
		kept.Prompt(Prompt{Slot: SlotIntro, Content: "late"})
		_ = append(s.Sources(), tool.Source{ID: "junk"})
		if got := s.Sources(); len(got) != 1 || got[0].ID != "p" {
			t.Errorf("sources %+v", got)
		}
		if got := s.System(tool.NewRegistry(nil, protocol.ToolState{}).Catalog()); strings.Contains(got, "late") {
			t.Errorf("prompt %q", got)
		}
	})

	t.Run("sources keep their plugin's id and the order of registration", func(t *testing.T) {
		s, err := open(t,
			registers("q", func(r *Registrar) { r.Tools(tools{"b"}); r.Tools(tools{"c"}) }),
			registers("p", func(r *Registrar) { r.Tools(tools{"a"}) }))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, src := range s.Sources() {
			got = append(got, src.ID+" "+src.Provider.Tools()[0].Manifest.Name)
		}
		if !slices.Equal(got, []string{"q b", "q c", "p a"}) {
			t.Errorf("sources %q", got)
		}
	})

	t.Run("the projector decides what enters the conversation", func(t *testing.T) {
		s, err := open(t)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Project("look", protocol.Succeed("long")); got.Text != "long" {
			t.Errorf("without a projector: %+v", got)
		}
		s, err = open(t, registers("p", func(r *Registrar) {
			r.ResultProjector(func(tool string, out protocol.ToolOutput) protocol.ToolOutput {
				out.Text = tool + " " + out.Text[:1]
				return out
			})
		}))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Project("look", protocol.Succeed("long")); got.Text != "look l" {
			t.Errorf("with one: %+v", got)
		}
	})
}

func TestSystem(t *testing.T) {
	catalog := func(names ...string) *tool.Catalog {
		return tool.NewRegistry([]tool.Source{{ID: "p", Provider: tools(names)}}, protocol.ToolState{}).Catalog()
	}
	system := func(t *testing.T, c *tool.Catalog, extra []Prompt, prompts ...Prompt) []string {
		t.Helper()
		s, err := open(t, registers("p", func(r *Registrar) {
			for _, p := range prompts {
				r.Prompt(p)
			}
		}))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(s.System(c, extra...), "\n\n")
	}

	t.Run("runtime/S12 slots are in order, then priorities, then the order of registration", func(t *testing.T) {
		got := system(t, catalog("a"), []Prompt{{Slot: SlotIntro, Content: "extra"}},
			Prompt{Slot: SlotEnvironment, Content: "env"}, Prompt{Slot: SlotRuntimeContext, Content: "context"},
			Prompt{Slot: SlotProjectInstructions, Content: "project"}, Prompt{Slot: SlotGuidance, Content: "guidance"},
			Prompt{Slot: SlotExecution, Priority: 1, Content: "after the driver"}, Prompt{Slot: SlotExecution, Priority: -1, Content: "before the driver"},
			Prompt{Slot: SlotIntro, Priority: 5, Content: "five"}, Prompt{Slot: SlotIntro, Content: "one"}, Prompt{Slot: SlotIntro, Content: "two"})
		want := []string{
			"one", "two", "extra", "five", "before the driver", "d with tool", "after the driver", "guidance", "project", "context", "env",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("runtime/S12 the same text in the same place is there once", func(t *testing.T) {
		got := system(t, catalog(), nil,
			Prompt{Slot: SlotIntro, Content: "x"}, Prompt{Slot: SlotIntro, Content: " x\n"}, Prompt{Slot: SlotIntro, Content: " \n"},
			Prompt{Slot: SlotIntro, Priority: 1, Content: "x"}, Prompt{Slot: SlotGuidance, Content: "x"})
		if diff := cmp.Diff([]string{"x", "x", "d with", "x"}, got); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("runtime/S12 texts about tools need one of them in the catalog", func(t *testing.T) {
		about := func(names ...string) Prompt {
			return Prompt{Slot: SlotIntro, Tools: names, Content: "about " + strings.Join(names, " ")}
		}
		got := system(t, catalog("a", "b"), nil, about("a"), about("c"), about("c", "b"))
		if diff := cmp.Diff([]string{"about a", "about c b", "d with tool tool"}, got); diff != "" {
			t.Error(diff)
		}
	})
}
