package providers

import (
	"maps"
	"slices"
	"strings"

	"lashd/engine/provider"
	"lashd/engine/provider/anthropic"
	"lashd/engine/provider/chatcompletions"
	"lashd/engine/provider/chatgpt"
	"lashd/engine/provider/endpoint"
	"lashd/engine/provider/gemini"
	"lashd/engine/provider/responses"
)

// API names a model API that lashd speaks.
type API string

const (
	Chat      API = "chat"      // Chat Completions
	Responses API = "responses" // OpenAI Responses
	Anthropic API = "anthropic" // Anthropic Messages
	Gemini    API = "gemini"    // Google Gemini
)

// APIs lists all APIs.
func APIs() []API { return []API{Chat, Responses, Anthropic, Gemini} }

// adapter returns the adapter of a provider for one server.
func (p Provider) adapter(cfg endpoint.Config) provider.Provider {
	switch p.API {
	case Responses:
		return responses.New(responses.Config{Config: cfg, Subscription: p.Login != ""})
	case Anthropic:
		return anthropic.New(cfg)
	case Gemini:
		return gemini.New(cfg)
	}
	return chatcompletions.New(chatcompletions.Config{Config: cfg})
}

// Preset is a provider that works without configuration once it has a key.
type Preset struct {
	Title       string // name for people, such as "Anthropic"
	API         API
	BaseURL     string   // "": the configuration must name it
	BaseURLForm string   // form of the address that the configuration must name, such as "https://HOST/v1"
	KeyHeader   string   // "": the API's
	Env         []string // environment variables with the key; the first that is set counts
	KeysAt      string   // web page where a person gets a key
	KeyStarts   []string // beginnings that only keys of this provider have; none are known for some
	Local       bool     // a server on this machine, which needs no key
	Login       string   // address of the server that logs a person in, in place of a key; "": the provider takes a key
	Catalog     string   // preset whose known models this one offers as well, at no price of their own; "": its own
}

// presets are the providers that lashd knows, by name. None was tried against the vendor's server while lashd was built: that machine
// reaches none of them.
var presets = map[string]Preset{
	"anthropic": {
		Title: "Anthropic", API: Anthropic, BaseURL: anthropic.BaseURL, Env: []string{"ANTHROPIC_API_KEY"},
		KeysAt: "https://console.anthropic.com/settings/keys", KeyStarts: []string{"sk-ant-"},
	},
	"openai": {
		Title: "OpenAI", API: Responses, BaseURL: responses.BaseURL, Env: []string{"OPENAI_API_KEY"},
		KeysAt: "https://platform.openai.com/api-keys", KeyStarts: []string{"sk-proj-", "sk-svcacct-"},
	},
	"google": {
		Title: "Google Gemini", API: Gemini, BaseURL: gemini.BaseURL, Env: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"},
		KeysAt: "https://aistudio.google.com/apikey", KeyStarts: []string{"AIza"},
	},
	"openrouter": {
		Title: "OpenRouter", API: Chat, BaseURL: "https://openrouter.ai/api/v1", Env: []string{"OPENROUTER_API_KEY"},
		KeysAt: "https://openrouter.ai/keys", KeyStarts: []string{"sk-or-"},
	},
	"azure": {
		Title: "Azure OpenAI", API: Responses, KeyHeader: "Api-Key", Env: []string{"AZURE_OPENAI_API_KEY"},
		BaseURLForm: "https://RESOURCE.openai.azure.com/openai/v1",
	},
	"bedrock": {
		Title: "Amazon Bedrock", API: Chat, Env: []string{"AWS_BEARER_TOKEN_BEDROCK"},
		BaseURLForm: "https://bedrock-runtime.REGION.amazonaws.com/openai/v1",
	},
	"vertex": {
		Title: "Google Vertex AI", API: Chat,
		BaseURLForm: "https://LOCATION-aiplatform.googleapis.com/v1/projects/PROJECT/locations/LOCATION/endpoints/openapi",
	},
	"chatgpt":  {Title: "ChatGPT", API: Responses, BaseURL: chatgpt.BaseURL, Login: chatgpt.Issuer, Catalog: "openai"},
	"ollama":   {Title: "Ollama", API: Chat, BaseURL: "http://localhost:11434/v1", Local: true},
	"llamacpp": {Title: "llama.cpp", API: Chat, BaseURL: "http://localhost:8080/v1", Local: true},
	"lmstudio": {Title: "LM Studio", API: Chat, BaseURL: "http://localhost:1234/v1", Local: true},
	"vllm":     {Title: "vLLM", API: Chat, BaseURL: "http://localhost:8000/v1", Local: true},
}

// preferred is the order in which a provider with a key becomes the default.
var preferred = []string{"anthropic", "openai", "google", "openrouter"}

// Presets returns the names of the presets: those preferred first, then the others by name.
func Presets() []string {
	rest := slices.Sorted(maps.Keys(presets))
	rest = slices.DeleteFunc(rest, func(name string) bool { return slices.Contains(preferred, name) })
	return append(slices.Clone(preferred), rest...)
}

// PresetOf returns a preset and reports whether there is one of that name.
func PresetOf(name string) (Preset, bool) {
	p, ok := presets[name]
	return p, ok
}

// KeyOwner returns the preset whose keys begin as this one does, "" if its beginning is not known.
func KeyOwner(key string) string {
	for _, name := range preferred {
		if slices.ContainsFunc(presets[name].KeyStarts, func(start string) bool { return strings.HasPrefix(key, start) }) {
			return name
		}
	}
	return ""
}

// KeyVariables returns the environment variables in which the presets look for keys, sorted. lashd removes them from the environment of
// programs that it runs.
func KeyVariables() []string {
	var names []string
	for _, p := range presets {
		names = append(names, p.Env...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
