// Command generate writes the table of known models, from the data of charm.land/catwalk (MIT). It is a module of its own, so that lashd does not
// depend on catwalk. In its directory:
//
//	go get charm.land/catwalk@VERSION && go run . ../models
package main

import (
	"bytes"
	"encoding/json"
	"log"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"charm.land/catwalk/pkg/catwalk"
	"charm.land/catwalk/pkg/embedded"
)

// provider is the file of one provider, which has the name of its preset. The models keep the source's order.
type provider struct {
	Source  string  `json:"source"`
	Date    string  `json:"date"` // of the version of the source
	Default string  `json:"default"`
	Models  []model `json:"models"`
}

type model struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Spec  spec   `json:"spec"`
	Price price  `json:"price"`
}

// spec has the fields of protocol.ModelSpec that the source knows.
type spec struct {
	ContextWindow int64      `json:"contextWindow"`
	OutputLimit   int64      `json:"outputLimit,omitempty"`
	Inputs        []string   `json:"inputs"`
	Reasoning     *reasoning `json:"reasoning,omitempty"`
	Pinned        bool       `json:"pinnedSampling,omitempty"`
}

type reasoning struct {
	Efforts  []string `json:"efforts"`
	Default  string   `json:"default,omitempty"`
	Encoding string   `json:"encoding"`
}

type price struct {
	Input   float64 `json:"input"`
	Output  float64 `json:"output"`
	Cached  float64 `json:"cached"`
	Written float64 `json:"written,omitempty"`
}

// sources lists the providers with their names in the source. A nil choice takes all models.
var sources = []struct {
	name   string
	id     catwalk.InferenceProvider
	choice []string
}{
	{"anthropic", catwalk.InferenceProviderAnthropic, nil},
	{"openai", catwalk.InferenceProviderOpenAI, nil},
	{"google", catwalk.InferenceProviderGemini, nil},
	{"openrouter", catwalk.InferenceProviderOpenRouter, openrouter},
}

// openrouter lists the models of OpenRouter that the table has, of several hundred: the newest of each vendor.
var openrouter = []string{
	"anthropic/claude-opus-5", "anthropic/claude-sonnet-5", "anthropic/claude-sonnet-4.6", "anthropic/claude-haiku-4.5",
	"openai/gpt-5.6-sol", "openai/gpt-5.6-terra", "openai/gpt-5.6-luna", "openai/gpt-5.3-codex", "openai/gpt-oss-120b", "openai/gpt-oss-20b",
	"google/gemini-3.1-pro-preview", "google/gemini-3.7-flash", "google/gemini-3.5-flash-lite", "google/gemma-4-31b-it",
	"deepseek/deepseek-v4-pro-0813", "deepseek/deepseek-v4-flash-0731", "deepseek/deepseek-v3.2",
	"moonshotai/kimi-k3", "moonshotai/kimi-k2.7-code", "z-ai/glm-5.3", "z-ai/glm-4.7-flash", "minimax/minimax-m3",
	"qwen/qwen3.8-max", "qwen/qwen3.8-27b", "qwen/qwen3-coder-next", "qwen/qwen3-coder-plus",
	"x-ai/grok-4.6", "x-ai/grok-4.5", "x-ai/grok-build-0.1",
	"mistralai/mistral-large-2512", "mistralai/mistral-medium-3-5", "mistralai/codestral-2508",
	"meta/muse-spark-1.2", "meta-llama/llama-4-maverick", "nvidia/nemotron-3-ultra-550b-a55b", "xiaomi/mimo-v2.5-pro",
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: go run . DIRECTORY")
	}
	from := origin()
	license, err := os.ReadFile(filepath.Join(from.Dir, "LICENSE"))
	if err != nil {
		log.Fatal(err)
	}
	write("LICENSE", license)
	all := embedded.GetAll()
	for _, s := range sources {
		i := slices.IndexFunc(all, func(p catwalk.Provider) bool { return p.ID == s.id })
		if i < 0 {
			log.Fatalf("the source has no provider %s", s.id)
		}
		p := provider{Source: from.Path + " " + from.Version, Date: from.Time.Format(time.DateOnly)}
		for _, m := range all[i].Models {
			if s.choice == nil || slices.Contains(s.choice, m.ID) {
				p.Models = append(p.Models, convert(s.name, &m))
			}
		}
		if s.choice != nil && len(p.Models) != len(s.choice) {
			log.Fatalf("the source has %d of the %d chosen models of %s", len(p.Models), len(s.choice), s.name)
		}
		p.Default = defaultOf(all[i].DefaultLargeModelID, p.Models)
		write(s.name+".json", encode(p))
	}
}

// defaultOf returns the model to start with: the default of the source unless that is a preview, which vendors change and withdraw. Then it
// is the newest model that is none.
func defaultOf(id string, models []model) string {
	if !strings.Contains(id, "preview") {
		return id
	}
	i := slices.IndexFunc(models, func(m model) bool { return !strings.Contains(m.ID, "preview") })
	if i < 0 {
		return id
	}
	return models[i].ID
}

// module is what the go command says of the source.
type module struct {
	Path, Version, Dir string
	Time               time.Time
}

// origin returns the source's version and directory.
func origin() module {
	out, err := exec.Command("go", "list", "-m", "-json", "charm.land/catwalk").Output()
	if err != nil {
		log.Fatal("go list: ", err)
	}
	var m module
	if err := json.Unmarshal(out, &m); err != nil {
		log.Fatal(err)
	}
	return m
}

// convert returns a model of the source as lashd describes it.
func convert(vendor string, m *catwalk.Model) model {
	made := model{ID: m.ID, Title: m.Name, Price: priceOf(m), Spec: spec{
		ContextWindow: m.ContextWindow, Inputs: inputsOf(vendor, m), Reasoning: reasoningOf(vendor, m), Pinned: vendor == "openai" && m.CanReason,
	}}
	// The source's default number of output tokens is not said to be the limit, so most models have none. Anthropic's API requires a number: those that
	// think without a budget get the source's, because lashd's own default is too small for them.
	if vendor == "anthropic" && made.Spec.Reasoning != nil && made.Spec.Reasoning.Encoding == "effort" {
		made.Spec.OutputLimit = m.DefaultMaxTokens
	}
	return made
}

// inputsOf returns what a model reads besides text. The source knows only whether it takes attachments. The vendors' own APIs take
// documents with every model that takes images.
func inputsOf(vendor string, m *catwalk.Model) []string {
	switch {
	case !m.SupportsImages:
		return []string{"text"}
	case vendor == "openrouter":
		return []string{"image"}
	}
	return []string{"image", "pdf"}
}

// reasoningOf returns the efforts of a model; nil if they are not configurable.
//
//   - A model with levels in the source takes their names. Anthropic's take names since they have the level max, which came with adaptive
//     thinking; those before get a budget of tokens.
//   - A model that reasons without levels takes a budget at Anthropic and Google, and has no setting elsewhere.
//   - Reasoning can be turned off where the source has the level none, and where Anthropic thinks only if it is given a budget. OpenRouter's
//     API has other words for it, so there it cannot.
func reasoningOf(vendor string, m *catwalk.Model) *reasoning {
	if !m.CanReason {
		return nil
	}
	efforts, budget := slices.Clone(m.ReasoningLevels), false
	switch {
	case vendor == "anthropic":
		budget = !slices.Contains(efforts, "max")
	case vendor == "google":
		budget = len(efforts) == 0
	}
	if len(efforts) == 0 && !budget {
		return nil
	}
	r := &reasoning{Encoding: "effort", Default: m.DefaultReasoningEffort}
	if budget {
		r.Encoding = "budget"
	}
	if len(efforts) == 0 {
		efforts = []string{"low", "medium", "high"}
	}
	none := slices.Contains(efforts, "none")
	efforts = slices.DeleteFunc(efforts, func(e string) bool { return e == "none" })
	if none && vendor == "openai" || budget && vendor == "anthropic" {
		efforts = slices.Insert(efforts, 0, "off")
	}
	r.Efforts = efforts
	return r
}

// priceOf returns a model's prices. The source names that of tokens written to a cache "in cached" and that of tokens read from it "out
// cached", but has the price of reading in the first, or that of output in the second, for some models. So a price of reading
// is one below the price of input, the second if both are, and a price of writing is one above it. Without one, tokens read cost
// what input costs.
func priceOf(m *catwalk.Model) price {
	p := price{Input: rounded(m.CostPer1MIn), Output: rounded(m.CostPer1MOut), Cached: rounded(m.CostPer1MIn)}
	first, second := rounded(m.CostPer1MInCached), rounded(m.CostPer1MOutCached)
	switch {
	case second > 0 && second < p.Input:
		p.Cached = second
	case first > 0 && first < p.Input:
		p.Cached = first
	}
	if first > p.Input {
		p.Written = first
	}
	return p
}

// rounded drops the digits that the source's arithmetic left.
func rounded(dollars float64) float64 { return math.Round(dollars*1e6) / 1e6 }

// encode returns the file of a provider, with a line for each model, so that a change of the source reads well.
func encode(p provider) []byte {
	data, err := json.Marshal(p)
	if err != nil {
		log.Fatal(err)
	}
	for _, start := range []string{`"source":`, `"date":`, `"default":`, `"models":`} {
		data = bytes.Replace(data, []byte(start), []byte("\n"+start), 1)
	}
	return append(bytes.ReplaceAll(data, []byte(`{"id":`), []byte("\n{\"id\":")), '\n')
}

// write writes a file of the table.
func write(name string, data []byte) {
	if err := os.WriteFile(filepath.Join(os.Args[1], name), data, 0o644); err != nil {
		log.Fatal(err)
	}
}
