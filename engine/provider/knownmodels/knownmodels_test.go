package knownmodels_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/provider/knownmodels"
	"lashd/rpc/protocol"
)

// vendors are the providers of the table.
var vendors = []string{"anthropic", "openai", "google", "openrouter"}

func TestKnownModels(t *testing.T) {
	t.Run("runtime/M08 a known model has its limits, inputs, efforts and prices", func(t *testing.T) {
		for _, c := range []struct {
			provider string
			want     knownmodels.Model
		}{
			{"anthropic", knownmodels.Model{ID: "claude-opus-5", Title: "Claude Opus 5", Spec: protocol.ModelSpec{
				ContextWindow: 1_000_000, OutputLimit: 128_000, Inputs: []protocol.Modality{"image", "pdf"},
				Reasoning: &protocol.ReasoningSpec{Efforts: []string{"low", "medium", "high", "xhigh", "max"}, Default: "high", Encoding: "effort"},
			}, Price: &protocol.Price{Input: 5, Output: 25, Cached: 0.5, Written: 6.25}}},
			{"anthropic", knownmodels.Model{ID: "claude-haiku-4-5-20251001", Title: "Claude Haiku 4.5", Spec: protocol.ModelSpec{
				ContextWindow: 200_000, Inputs: []protocol.Modality{"image", "pdf"},
				Reasoning: &protocol.ReasoningSpec{Efforts: []string{"off", "low", "medium", "high"}, Encoding: "budget"},
			}, Price: &protocol.Price{Input: 1, Output: 5, Cached: 0.1, Written: 1.25}}},
			{"openai", knownmodels.Model{ID: "gpt-5.4", Title: "GPT-5.4", Spec: protocol.ModelSpec{
				ContextWindow: 1_050_000, Inputs: []protocol.Modality{"image", "pdf"}, PinnedOptions: true,
				Reasoning: &protocol.ReasoningSpec{Efforts: []string{"low", "medium", "high", "xhigh"}, Default: "medium", Encoding: "effort"},
			}, Price: &protocol.Price{Input: 2.5, Output: 15, Cached: 0.25}}},
			{"openai", knownmodels.Model{ID: "gpt-4.1", Title: "GPT-4.1", Spec: protocol.ModelSpec{
				ContextWindow: 1_047_576, Inputs: []protocol.Modality{"image", "pdf"},
			}, Price: &protocol.Price{Input: 2, Output: 8, Cached: 0.5}}},
			{"google", knownmodels.Model{ID: "gemini-3.7-flash", Title: "Gemini 3.7 Flash", Spec: protocol.ModelSpec{
				ContextWindow: 1_048_576, Inputs: []protocol.Modality{"image", "pdf"},
				Reasoning: &protocol.ReasoningSpec{Efforts: []string{"low", "medium", "high"}, Default: "medium", Encoding: "effort"},
			}, Price: &protocol.Price{Input: 0.75, Output: 3.75, Cached: 0.075}}},
			{"openrouter", knownmodels.Model{ID: "qwen/qwen3-coder-next", Title: "Qwen: Qwen3 Coder Next", Spec: protocol.ModelSpec{
				ContextWindow: 262_144, Inputs: []protocol.Modality{"text"},
			}, Price: &protocol.Price{Input: 0.12, Output: 0.8, Cached: 0.07}}},
		} {
			got, ok := knownmodels.Find(c.provider, c.want.ID)
			if diff := cmp.Diff(c.want, got); !ok || diff != "" {
				t.Errorf("%s %s: known %v (-want +got)\n%s", c.provider, c.want.ID, ok, diff)
			}
		}
	})
	t.Run("a model or a provider that is not in the table is not known", func(t *testing.T) {
		if m, ok := knownmodels.Find("anthropic", "claude-9"); ok {
			t.Errorf("anthropic claude-9 is known as %v", m)
		}
		if id, models := knownmodels.Default("ollama"), knownmodels.Of("ollama"); id != "" || models != nil {
			t.Errorf("ollama has the default model %q and the models %v, want none", id, models)
		}
	})
	for _, name := range vendors {
		t.Run("runtime/M08 the table describes models of "+name+" without contradictions", func(t *testing.T) {
			if _, ok := knownmodels.Find(name, knownmodels.Default(name)); !ok {
				t.Errorf("the default model %q is not in the table", knownmodels.Default(name))
			}
			if strings.Contains(knownmodels.Default(name), "preview") {
				t.Errorf("the default model %q is a preview, which the vendor may withdraw", knownmodels.Default(name))
			}
			for _, m := range knownmodels.Of(name) {
				checkModel(t, m)
			}
		})
	}
}

// checkModel reports what contradicts itself in a model.
func checkModel(t *testing.T, m knownmodels.Model) {
	t.Helper()
	p := m.Price
	switch {
	case m.ID == "" || m.Title == "" || m.Spec.ContextWindow < 100_000 || len(m.Spec.Inputs) == 0 || p == nil:
		t.Errorf("model %+v lacks something", m)
	case m.Spec.OutputLimit >= m.Spec.ContextWindow:
		t.Errorf("%s: output limit %d, context window %d", m.ID, m.Spec.OutputLimit, m.Spec.ContextWindow)
	case p.Input <= 0 || p.Output < p.Input || p.Cached <= 0 || p.Cached > p.Input || p.Written > 0 && p.Written <= p.Input:
		t.Errorf("%s: prices %+v", m.ID, *p)
	}
	if r := m.Spec.Reasoning; r != nil && (len(r.Efforts) == 0 || r.Default != "" && !slices.Contains(r.Efforts, r.Default)) {
		t.Errorf("%s: default effort %q, efforts %v", m.ID, r.Default, r.Efforts)
	}
}

func TestTableNamesItsSource(t *testing.T) {
	for _, name := range vendors {
		var file struct{ Source, Date string }
		if err := json.Unmarshal(read(t, name+".json"), &file); err != nil {
			t.Fatal(err)
		}
		if _, err := time.Parse(time.DateOnly, file.Date); err != nil || file.Source != "charm.land/catwalk v0.52.1" {
			t.Errorf("the models of %s are of %q, dated %q", name, file.Source, file.Date)
		}
	}
	if license := read(t, "LICENSE"); !bytes.HasPrefix(license, []byte("MIT License\n\nCopyright (c) 2025 Charmbracelet")) {
		t.Errorf("the license begins with %.60q", license)
	}
}

// read returns a file of the table.
func read(tb testing.TB, name string) []byte {
	tb.Helper()
	data, err := os.ReadFile("models/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// BenchmarkRead measures what the first use of a provider costs.
func BenchmarkRead(b *testing.B) {
	for _, name := range vendors {
		b.Run(name, func(b *testing.B) {
			data := read(b, name+".json")
			for b.Loop() {
				var file struct{ Models []knownmodels.Model }
				if err := json.Unmarshal(data, &file); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
