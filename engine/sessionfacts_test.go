package engine_test

import (
	"context"
	"errors"
	"testing"

	"lashd/engine"
	"lashd/engine/driver/standard"
	factbook "lashd/engine/fact"
	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// secondDriver is the standard driver by another name.
type secondDriver struct{ standard.Factory }

func (secondDriver) ID() string { return "second" }

// driverOf returns the driver of a session, as clients read it.
func (d *daemon) driverOf(t *testing.T, id protocol.SessionID) string {
	t.Helper()
	return must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id})).Session.Config.Driver
}

func TestDriverIsAFact(t *testing.T) {
	other := mutator("other", func(_ context.Context, c *plugin.ConfigChange) (protocol.Config, error) {
		c.Config.Driver = "second"
		return c.Config, nil
	})
	both := func(standing string) func(*engine.Config) {
		return func(cfg *engine.Config) {
			host, err := plugin.NewHost([]plugin.Factory{standard.Factory{}, secondDriver{}}, []plugin.Factory{other})
			if err != nil {
				t.Fatal(err)
			}
			cfg.Plugins, cfg.Defaults.Driver = host, standing
		}
	}
	d := start(t, setup{model: replies(), config: both("standard")})
	id := d.session(t)
	d = d.restart(t, func(s *setup) { s.config = both("second") })
	t.Run("runtime/S06 a session without a driver gets that of the daemon, and keeps it when the daemon's changes", func(t *testing.T) {
		d.turn(t, id, "go")
		if got, fresh := d.driverOf(t, id), d.driverOf(t, d.session(t)); got != "standard" || fresh != "second" {
			t.Errorf("the driver is %q, that of a new session %q", got, fresh)
		}
	})
	t.Run("runtime/S06 no plugin changes the driver of a session", func(t *testing.T) {
		o := d.observe(t, id)
		must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), iterations(id, 9)))
		issues := o.typed(protocol.EventSessionConfigured).Issues
		if got := d.driverOf(t, id); got != "standard" || len(issues) != 1 || issues[0].Code != "config_mutator_failed" {
			t.Errorf("the driver is %q, with the issues %+v", got, issues)
		}
	})
	t.Run("runtime/S06 a session that continues a transcript takes its driver, and a request for another one fails", func(t *testing.T) {
		from := protocol.SessionStart{Kind: protocol.StartExisting, SessionID: id}
		_, err := d.Sessions.New(t.Context(), &protocol.SessionNewParams{Start: from, Driver: "second"})
		if p, ok := errors.AsType[*param.Error](err); !ok || p.Pointer != "/driver" {
			t.Errorf("with another driver: %v", err)
		}
		fork := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Start: from}))
		if got := d.driverOf(t, fork.SessionID); got != "standard" {
			t.Errorf("the fork has the driver %q", got)
		}
	})
}

func TestForksKeepFacts(t *testing.T) {
	d := start(t, setup{model: replies()})
	id := d.session(t)
	d.turn(t, id, "go")
	must[*protocol.SnapshotResult](t)(d.Snapshots.Create(t.Context(), &protocol.SnapshotMutationParams{SessionID: id, Name: "early"}))
	d = d.restart(t, nil)
	body := []byte(`{"cells":"starlark"}`)
	_, err := d.store.Commit(t.Context(), &persistence.Commit{Session: id, AtMs: 1, Component: []persistence.Component{{Name: factbook.Component, Body: body}}})
	if err != nil {
		t.Fatal(err)
	}
	facts := func(id protocol.SessionID) string {
		t.Helper()
		row, err := d.store.Session(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		parts, err := d.store.Components(t.Context(), row.Key, "")
		if err != nil {
			t.Fatal(err)
		}
		return string(parts[factbook.Component])
	}
	from := protocol.SessionStart{Kind: protocol.StartExisting, SessionID: id}
	early := from
	early.Kind, early.Snapshot = protocol.StartSnapshot, "early"
	for name, p := range map[string]protocol.SessionNewParams{
		"runtime/S06 a fork has the facts of its source":                           {Start: from},
		"runtime/S06 a fork with fresh plugins has the facts of its source":        {Start: from, PluginSource: protocol.PluginsFresh},
		"runtime/S06 a fork of a snapshot has the facts that its source has today": {Start: early},
	} {
		t.Run(name, func(t *testing.T) {
			fork := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &p))
			if got := facts(fork.SessionID); got != string(body) {
				t.Errorf("facts %q", got)
			}
		})
	}
	t.Run("runtime/S06 a session that is restored keeps its facts", func(t *testing.T) {
		d.turn(t, id, "more")
		must[*protocol.SnapshotRestoreResult](t)(d.Snapshots.Restore(t.Context(), &protocol.SnapshotMutationParams{SessionID: id, Name: "early"}))
		if got := facts(id); got != string(body) {
			t.Errorf("facts %q", got)
		}
	})
}
