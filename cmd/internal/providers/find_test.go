package providers_test

import (
	"testing"

	"lashd/cmd/internal/providers"
	"lashd/rpc/protocol"
)

// TestFind has several configured models with one id of a provider. A session stores the settings of its model, not the name.
func TestFind(t *testing.T) {
	effort := func(name string) protocol.ModelSpec {
		return protocol.ModelSpec{Effort: name, Reasoning: &protocol.ReasoningSpec{Efforts: []string{"low", "high"}}}
	}
	source := providers.New(providers.Config{
		Providers: map[string]providers.Provider{"test": {BaseURL: "http://model.test"}}, Keys: oneKey{},
		Models: []providers.Model{
			{Name: "quick", Provider: "test", ID: "m", Spec: effort("low"), Fallback: "deep"},
			{Name: "deep", Provider: "test", ID: "m", Spec: effort("high")},
			{Name: "small", Provider: "test", ID: "m", Spec: protocol.ModelSpec{ContextWindow: 8000}, Fallback: "quick"},
		},
	})
	for _, name := range []string{"quick", "deep", "small"} {
		m, _ := source.Model(name)
		if found, ok := source.Find(m.Spec); !ok || found.Name != name || found.Fallback != m.Fallback {
			t.Errorf("runtime/M08 the settings of %s belong to %s with the fallback %q", name, found.Name, found.Fallback)
		}
	}
	changed, _ := source.Model("small")
	changed.Spec = changed.Spec.WithEffort("low") // for one turn
	if found, _ := source.Find(changed.Spec); found.Name != "small" {
		t.Errorf("runtime/M08 the settings of small with another effort belong to %s", found.Name)
	}
	if found, ok := source.Find(protocol.ModelSpec{Provider: "test", ID: "m", ContextWindow: 1}); !ok || found.Name != "quick" {
		t.Errorf("runtime/M08 settings that the configuration no longer has belong to %q, want the first model with that id", found.Name)
	}
}
