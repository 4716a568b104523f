// Package plugintest checks that a plugin keeps the contract of package plugin. Tests of plugins call Run.
package plugintest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/tool"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// Config is what Run needs to know of a plugin. The zero value will do for one without state.
type Config struct {
	Build   plugin.BuildContext    // absent: a root session in a directory of the test
	Options protocol.PluginOptions // of the session
	Change  func(*plugin.Session)  // changes the plugin's state; required for a plugin that keeps any
	Seams   time.Duration          // in which each hook answers once its turn has ended; absent: 5 s
}

// Run checks registration, state, cancellation and what hooks make of a context with nothing in it. The plugin may be a
// protocol plugin.
func Run(t *testing.T, f plugin.Factory, c Config) {
	t.Helper()
	k := &kit{Config: c, factory: f}
	if k.Seams == 0 {
		k.Seams = 5 * time.Second
	}
	if k.Build.Cwd == "" {
		k.Build.Cwd, k.Build.StateDir = t.TempDir(), t.TempDir()
	}
	t.Run("contract: registers the same in every session, at once", k.registers)
	t.Run("contract: lists what can be called", k.lists)
	t.Run("contract: sessions do not share their end", k.closes)
	t.Run("contract: state makes the round trip", k.roundTrip)
	t.Run("contract: restoring twice comes to the same", k.idempotent)
	t.Run("contract: hooks end with their turn", k.cancels)
	t.Run("contract: hooks do not panic over a context with nothing in it", k.survives)
}

// kit is a plugin that is checked.
type kit struct {
	Config
	factory plugin.Factory
}

// host has the plugin as its only one beside a driver, unless it is one.
func (k *kit) host(t *testing.T) (h *plugin.Host, driver string) {
	t.Helper()
	alone, err := plugin.NewHost([]plugin.Factory{k.factory}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := alone.Open(t.Context(), k.factory.ID(), k.Options, plugin.BuildContext{Cwd: k.Build.Cwd, StateDir: k.Build.StateDir})
	if !errors.Is(err, plugin.ErrNoDriverMade) {
		if err == nil {
			err = s.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		return alone, k.factory.ID()
	}
	if h, err = plugin.NewHost([]plugin.Factory{idle()}, []plugin.Factory{k.factory}); err != nil {
		t.Fatal(err)
	}
	return h, "idle"
}

// open is a session with the plugin.
func (k *kit) open(t *testing.T) *plugin.Session {
	t.Helper()
	h, driver := k.host(t)
	s, err := h.Open(t.Context(), driver, k.Options, k.Build)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// fastest is the most that the quickest of a few builds may take.
const fastest = 5 * time.Millisecond

func (k *kit) registers(t *testing.T) {
	var names []string
	quickest := time.Hour
	for range 5 {
		begin := time.Now()
		s := k.open(t)
		quickest = min(quickest, time.Since(begin))
		got := toolNames(s)
		if names != nil && !slices.Equal(got, names) {
			t.Errorf("tools %q, then %q", names, got)
		}
		names = got
	}
	if quickest > fastest {
		t.Errorf("to build a session takes %v, more than %v: build and register do no IO and compile nothing", quickest, fastest)
	}
}

func toolNames(s *plugin.Session) []string {
	names := []string{}
	for _, src := range s.Sources() {
		for _, t := range src.Provider.Tools() {
			names = append(names, t.Manifest.Name)
		}
	}
	return names
}

func (k *kit) lists(t *testing.T) {
	s := k.open(t)
	for _, src := range s.Sources() {
		for _, x := range src.Provider.Tools() {
			if x.Manifest.Name == "" {
				t.Error("a tool has no name")
			}
			k.checkSchema(t, "tool "+x.Manifest.Name, x.Manifest.Input)
		}
	}
	for _, op := range s.Operations() {
		k.checkSchema(t, "operation "+op.Name, op.Input)
		k.checkSchema(t, "operation "+op.Name, op.Output)
	}
}

func (k *kit) checkSchema(t *testing.T, what string, schema []byte) {
	t.Helper()
	if err := tool.CheckSchema(schema); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

func (k *kit) closes(t *testing.T) {
	h, driver := k.host(t)
	one, err1 := h.Open(t.Context(), driver, k.Options, k.Build)
	two, err2 := h.Isolated().Open(t.Context(), driver, k.Options, k.Build)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	before := toolNames(two)
	if err := one.Close(); err != nil {
		t.Error(err)
	}
	if after := toolNames(two); !slices.Equal(before, after) {
		t.Errorf("tools %q, and %q after another session has been closed", before, after)
	}
	if err := two.Close(); err != nil {
		t.Error(err)
	}
	if err := h.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// idle is a protocol plugin that does nothing.
func idle() plugin.Factory {
	return plugin.Static("idle", func(r *plugin.Registrar) error {
		r.Protocol().Driver(idler{})
		return nil
	})
}

type idler struct{}

func (idler) Prepare(turn.View) []turn.Action                   { return nil }
func (idler) Reply(turn.View, provider.Reply) []turn.Action     { return nil }
func (idler) Results(turn.View, []turn.ToolReply) []turn.Action { return nil }
func (idler) Cell(turn.View, turn.CellReply) []turn.Action      { return nil }
func (idler) Limit(turn.View) []turn.Action                     { return nil }
func (idler) Visible(prose string) string                       { return prose }
func (idler) HandlesOutputLimit() bool                          { return false }
func (idler) Preamble(plugin.PreambleInput) string              { return "" }
