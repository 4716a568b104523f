// Package plugintest checks that a plugin follows the contract of package plugin. Call Run from a test of the plugin.
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

// Config configures Run. The zero value is enough for a plugin without state.
type Config struct {
	Build   plugin.BuildContext    // default: a root session in a temporary directory
	Options protocol.PluginOptions // of the session, by plugin id
	Change  func(*plugin.Session)  // changes the plugin's state; required if the plugin keeps any
	Seams   time.Duration          // limit for each hook to return after its turn has ended; default 5s
}

// Run checks the plugin that f builds: it registers the same tools in every session without IO, its schemas are valid,
// sessions are independent, state survives a round trip, hooks stop with their turn, and hooks survive empty arguments.
// f may build a protocol plugin. Each check is a subtest.
func Run(t *testing.T, f plugin.Factory, c Config) {
	t.Helper()
	k := &kit{Config: c, factory: f}
	if k.Seams == 0 {
		k.Seams = 5 * time.Second
	}
	if k.Build.Cwd == "" {
		k.Build.Cwd, k.Build.StateDir = t.TempDir(), t.TempDir()
	}
	t.Run("contract: every session registers the same tools without delay", k.registers)
	t.Run("contract: tools and operations have names and valid schemas", k.lists)
	t.Run("contract: closing a session does not affect another session", k.closes)
	t.Run("contract: state survives a round trip", k.roundTrip)
	t.Run("contract: restoring twice gives the same state", k.idempotent)
	t.Run("contract: hooks return when their turn ends", k.cancels)
	t.Run("contract: hooks survive empty arguments", k.survives)
}

// kit is the plugin under test with its configuration.
type kit struct {
	Config
	factory plugin.Factory
}

// host returns a host with the plugin, and the id of the driver for its sessions. It first tries the plugin as a
// driver. If it registers none, an idle driver is added.
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

// open opens a session with the plugin and closes it at the end of the test.
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

// fastest limits the quickest of several builds. Only a plugin that does IO or compiles something takes longer.
const fastest = 5 * time.Millisecond

// registers checks that every session gets the same tools and that building is fast. The quickest of several builds
// counts, because a busy machine can slow down a single one.
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
		t.Errorf("building a session takes %v, more than %v: Build and Register must not do IO or compile anything", quickest, fastest)
	}
}

// toolNames returns the tools of a session in the order of registration.
func toolNames(s *plugin.Session) []string {
	names := []string{}
	for _, src := range s.Sources() {
		for _, t := range src.Provider.Tools() {
			names = append(names, t.Manifest.Name)
		}
	}
	return names
}

// lists checks that tools are named and that all schemas are valid.
func (k *kit) lists(t *testing.T) {
	s := k.open(t)
	for _, src := range s.Sources() {
		for _, x := range src.Provider.Tools() {
			if x.Manifest.Name == "" {
				t.Error("a tool has an empty name")
			}
			k.checkSchema(t, "tool "+x.Manifest.Name, x.Manifest.Input)
		}
	}
	for _, op := range s.Operations() {
		k.checkSchema(t, "operation "+op.Name, op.Input)
		k.checkSchema(t, "operation "+op.Name, op.Output)
	}
}

// checkSchema fails the test if a schema is invalid. what names the tool or operation in the message.
func (k *kit) checkSchema(t *testing.T, what string, schema []byte) {
	t.Helper()
	if err := tool.CheckSchema(schema); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// closes checks that closing one session does not affect another one. The second session uses an isolated host, since
// both have the same id.
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
		t.Errorf("tools %q, but %q after another session was closed", before, after)
	}
	if err := two.Close(); err != nil {
		t.Error(err)
	}
	if err := h.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// idle returns a protocol plugin that does nothing, for plugins without a driver.
func idle() plugin.Factory {
	return plugin.Static("idle", func(r *plugin.Registrar) error {
		r.Protocol().Driver(idler{})
		return nil
	})
}

// idler is a driver whose methods request nothing, so its turns cannot proceed. The checks never start one.
type idler struct{}

func (idler) Prepare(turn.View) []turn.Action                   { return nil }
func (idler) Reply(turn.View, provider.Reply) []turn.Action     { return nil }
func (idler) Results(turn.View, []turn.ToolReply) []turn.Action { return nil }
func (idler) Cell(turn.View, turn.CellReply) []turn.Action      { return nil }
func (idler) Limit(turn.View) []turn.Action                     { return nil }
func (idler) Visible(prose string) string                       { return prose }
func (idler) HandlesOutputLimit() bool                          { return false }
func (idler) Preamble(plugin.PreambleInput) string              { return "" }
