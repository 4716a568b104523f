package config

import (
	"encoding/json"
	"strings"
	"testing"

	"lashd/engine/provider"
)

func TestCredentialsOfBaseURL(t *testing.T) {
	for base, want := range map[string]string{
		"https://me:hunter22@example.org/v1":          "https://example.org/v1",
		"https://sk-hunter22@example.org/v1":          "https://example.org/v1",
		"https://example.org/v1?api-key=hunter22&v=2": "https://example.org/v1",
		"http://[::1]:8080/v1":                        "http://[::1]:8080/v1",
		"hunter22":                                    "(invalid base_url)",
	} {
		t.Run("outside/9 models of "+base, func(t *testing.T) {
			c, err := Parse([]byte("model = \"m\"\nbase_url = \"" + base + "\""))
			if err != nil {
				c.BaseURL = base // config.toml rejects this URL, but the environment variable accepts it
			}
			source, err := c.Source(KeySources{Memory: &provider.Keys{}}, NotSet)
			if err != nil {
				t.Fatal(err)
			}
			models := source.Models()
			if len(models) != 1 || models[0].Spec.Provider != want {
				t.Fatalf("models %+v, %v, want %s", models, err, want)
			}
			if text, _ := json.Marshal(models[0].Spec); strings.Contains(string(text), "hunter22") {
				t.Errorf("the model is %s", text)
			}
		})
	}
}
