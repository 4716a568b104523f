package engine_test

import (
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

func TestSettingsOfChildren(t *testing.T) {
	prefer := protocol.Config{
		Driver: "standard", Model: protocol.ModelSpec{Provider: "test", ID: "m"}, Budget: protocol.Budget{Iterations: 7}, Prompt: "Be brief.",
		Generation: protocol.GenerationOptions{MaxOutput: 500, Temperature: new(0.5), Stop: []string{"END"}},
		Approval:   protocol.ApprovalConfig{Mode: protocol.ApproveAsk, DeadlineMs: 5000},
		Options:    protocol.PluginOptions{"optional": json.RawMessage(`"a"`)}, Unknown: protocol.UnknownOutcomeRule{DeadlineMs: new(int64(9))},
	}
	// parent is a session of a daemon with these settings, and not the daemon's.
	parent := func(t *testing.T) (*daemon, protocol.SessionID) {
		d := start(t, setup{model: replies(), plugins: []plugin.Factory{optional{new(atomic.Int32)}}})
		id := d.session(t)
		must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{
			SessionID: id, Prompt: &prefer.Prompt, Budget: &prefer.Budget, Approval: &prefer.Approval, Generation: &prefer.Generation,
			Options: prefer.Options, Unknown: &prefer.Unknown,
		}))
		return d, id
	}
	for name, c := range map[string]struct {
		asks protocol.SessionNewParams
		want func(*protocol.Config)
	}{
		"with nothing said, all is the parent's":    {protocol.SessionNewParams{}, func(*protocol.Config) {}},
		"a prompt is its own, even an empty one":    {protocol.SessionNewParams{Prompt: new("")}, func(c *protocol.Config) { c.Prompt = "" }},
		"a budget is its own":                       {protocol.SessionNewParams{Budget: &protocol.Budget{Iterations: 2}}, func(c *protocol.Config) { c.Budget.Iterations = 2 }},
		"its approval settings are its own":         {protocol.SessionNewParams{Approval: &protocol.ApprovalConfig{Mode: protocol.ApproveDeny}}, func(c *protocol.Config) { c.Approval = protocol.ApprovalConfig{Mode: protocol.ApproveDeny} }},
		"options of plugins are its own, even none": {protocol.SessionNewParams{Options: protocol.PluginOptions{}}, func(c *protocol.Config) { c.Options = nil }},
		"how long an outcome is asked for":          {protocol.SessionNewParams{Unknown: &protocol.UnknownOutcomeRule{}}, func(c *protocol.Config) { c.Unknown = protocol.UnknownOutcomeRule{} }},
		"how the model generates is replaced": {
			protocol.SessionNewParams{Generation: &protocol.GenerationOptions{MaxOutput: 9}},
			func(c *protocol.Config) { c.Generation = protocol.GenerationOptions{MaxOutput: 9} },
		},
		"or merged": {
			protocol.SessionNewParams{Generation: &protocol.GenerationOptions{MaxOutput: 9, Seed: new(int64(1))}, GenerationMode: protocol.OverlayMerge},
			func(c *protocol.Config) {
				c.Generation = protocol.GenerationOptions{MaxOutput: 9, Temperature: new(0.5), Seed: new(int64(1)), Stop: []string{"END"}}
			},
		},
	} {
		t.Run("runtime/S05 a child inherits each setting that it does not set: "+name, func(t *testing.T) {
			d, id := parent(t)
			want := prefer
			c.want(&want)
			c.asks.Relation = protocol.Relation{Kind: protocol.RelationChild, Parent: id}
			made := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &c.asks)).SessionID
			d = d.restart(t, nil)
			got := must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: made})).Session
			above := must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id})).Session
			if diff := cmp.Diff(encodes(t, want), encodes(t, got.Config)); diff != "" || got.Cwd != above.Cwd {
				t.Errorf("in %s: %s", got.Cwd, diff)
			}
		})
	}
	t.Run("runtime/S05 a child keeps its settings when the parent's change, and an unknown merge mode is rejected", func(t *testing.T) {
		d, id := parent(t)
		asks := &protocol.SessionNewParams{Relation: protocol.Relation{Kind: protocol.RelationChild, Parent: id}, GenerationMode: "mix"}
		_, err := d.Sessions.New(t.Context(), asks)
		if e, ok := errors.AsType[*param.Error](err); !ok || e.Pointer != "/generationMode" {
			t.Errorf("%v", err)
		}
		asks.GenerationMode = ""
		made := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), asks)).SessionID
		must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Prompt: new("Be long.")}))
		got := must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: made})).Session
		if got.Config.Prompt != "Be brief." {
			t.Errorf("its prompt is %q", got.Config.Prompt)
		}
	})
}

// encodes is a value as it would be stored.
func encodes(t *testing.T, v any) string {
	t.Helper()
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
