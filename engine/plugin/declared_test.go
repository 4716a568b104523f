package plugin_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"lashd/engine/plugin"
	"lashd/engine/task"
	"lashd/rpc/protocol"
)

// The tests in this file kill mutants that no other test of the package catches: see test/mutate.

func TestTurnIDs(t *testing.T) {
	for id, good := range map[protocol.TurnID]bool{
		"trn_1": true, "AZaz09": true, "-a": true, "_": false, "-_-": false, "": false, "a b": false, "a/b": false, "a:b": false, "a@b": false,
		"a[b": false, "a`b": false, "a{b": false, "aé": false, protocol.TurnID(strings.Repeat("a", 128)): true, protocol.TurnID(strings.Repeat("a", 129)): false,
	} {
		err := (&plugin.TurnRequest{TurnID: id, SessionID: "s"}).Check()
		if e, ok := errors.AsType[*plugin.TurnRequestError](err); good != (err == nil) || err != nil && (!ok || e.Code != plugin.BadTurnID) {
			t.Errorf("outside/29 a turn may have the id %q: %v", id, err)
		}
	}
}

func TestTurnInputs(t *testing.T) {
	schema := raw(`{"type":"object","required":["n"]}`)
	takes := func(id string, in plugin.TurnInput) plugin.Factory {
		return with(id, func(r *plugin.Registrar) { r.Turn().Input(in) })
	}
	s := open(t, takes("free", plugin.TurnInput{Schema: schema}), takes("must", plugin.TurnInput{Schema: schema, Required: true}))
	copy(schema, `[[[[[[[[`)
	for name, c := range map[string]struct {
		in     protocol.PluginInputs
		plugin string // at fault
	}{
		"both":                           {protocol.PluginInputs{"free": raw(`{"n":1}`), "must": raw(`{"n":1}`)}, ""},
		"only the required input":        {protocol.PluginInputs{"must": raw(`{"n":1}`)}, ""},
		"only the optional input":        {protocol.PluginInputs{"free": raw(`{"n":1}`)}, "must"},
		"an invalid input":               {protocol.PluginInputs{"free": raw(`{}`), "must": raw(`{"n":1}`)}, "free"},
		"an input for an unknown plugin": {protocol.PluginInputs{"must": raw(`{"n":1}`), "who": raw(`1`)}, "who"},
	} {
		err := s.CheckInputs(c.in)
		if e, ok := errors.AsType[*plugin.InputError](err); (err != nil) != (c.plugin != "") || ok && e.Plugin != c.plugin {
			t.Errorf("outside/29 %s: %v, want it to be about %q", name, err, c.plugin)
		}
	}
	if got := s.TurnInputs(); len(got) != 2 || string(got[0].Schema) != `{"type":"object","required":["n"]}` || got[0].Required || !got[1].Required {
		t.Errorf("outside/29 the session takes %+v", got)
	}
}

func TestDeclaredMonitors(t *testing.T) {
	declare := func(n int) error {
		_, err := newHost(t, with("many", func(r *plugin.Registrar) {
			for i := range n {
				r.Monitors().Add(protocol.MonitorSpec{ID: fmt.Sprint("m", i), Command: "true"})
			}
		})).Open(t.Context(), "d", nil, plugin.BuildContext{SessionID: "s"})
		return err
	}
	if err := declare(task.MaxMonitors); err != nil {
		t.Errorf("outside/29 %d monitors: %v", task.MaxMonitors, err)
	}
	if err := declare(task.MaxMonitors + 1); err == nil || !strings.Contains(err.Error(), "at most 32") {
		t.Errorf("outside/29 %d monitors: %v", task.MaxMonitors+1, err)
	}
	s := open(t, with("one", func(r *plugin.Registrar) { r.Monitors().Add(protocol.MonitorSpec{ID: "m", Command: "true"}) }))
	if got := s.Monitors(); len(got) != 1 || got[0].Spec.ID != "one:m" {
		t.Errorf("outside/29 the monitors are %+v", got)
	}
}

func TestOptionsOfOtherVersions(t *testing.T) {
	one, two := &protocol.TurnOptions{SchemaVersion: 1, Payload: raw(`{"a":1}`)}, &protocol.TurnOptions{SchemaVersion: 2, Payload: raw(`{"a":2}`)}
	if _, err := plugin.MergeTurnOptions(one, two); err == nil {
		t.Error("outside/29 options of two versions are merged")
	}
	if got, err := plugin.MergeTurnOptions(one, &protocol.TurnOptions{SchemaVersion: 1, Payload: raw(`{"b":2}`)}); err != nil || string(got.Payload) != `{"a":1,"b":2}` {
		t.Errorf("outside/29 merged: %+v, %v", got, err)
	}
}
