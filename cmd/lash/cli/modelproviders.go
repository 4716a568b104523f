package cli

import (
	"cmp"
	"context"
	"maps"
	"os"
	"slices"
	"strings"

	"lashd/cmd/internal/config"
	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/cmd/internal/providers"
)

// modelProvidersCommand implements lash model providers. Editors call it with --json to set up a provider.
type modelProvidersCommand struct {
	console.InJSON
}

// Help is shown by --help.
func (modelProvidersCommand) Help() string {
	return `Lists the providers that lashd knows and those of config.toml. KEY says where the API key comes from, as far as this shell and the
stored keys show. MODELS lists the models of servers that run on this machine. The command prints no keys and needs no daemon.

Example: lash model providers`
}

// providerInfo is a provider as lash model providers prints it.
type providerInfo struct {
	Name        string   `json:"name"`
	Title       string   `json:"title"`
	BaseURL     string   `json:"baseUrl,omitempty"`     // absent: a person must name it
	BaseURLForm string   `json:"baseUrlForm,omitempty"` // form of an address that a person must name
	KeysAt      string   `json:"keysAt,omitempty"`      // web page where a person gets a key
	Local       bool     `json:"local,omitempty"`       // a server on this machine, which needs no key
	Pasted      bool     `json:"pasted,omitempty"`      // lash login stores a key that a person pastes
	Login       bool     `json:"login,omitempty"`       // lash login logs a person in with a browser
	Key         string   `json:"key,omitempty"`         // where the key comes from; absent: there is none
	Stored      bool     `json:"stored,omitempty"`      // lash logout can delete a key
	Models      []string `json:"models,omitempty"`      // ids of the models of a local server that runs
}

// Run prints the providers.
func (c modelProvidersCommand) Run(ctx context.Context, e *daemon.Environment) error {
	cfg, err := config.Load(e.Home)
	if err != nil {
		return err
	}
	from := config.OpenKeySources(e.Home, cfg, "")
	infos := providerInfos(cfg, from)
	progress := console.Begin("looking for model servers on this machine", "Ctrl-C cancels it")
	defer progress.End()
	for _, l := range providers.FindLocal(ctx, cfg.Servers(from)) {
		i := slices.IndexFunc(infos, func(p providerInfo) bool { return p.Name == l.Name })
		infos[i].Models = l.Models
	}
	progress.End()
	if c.JSON {
		return console.PrintJSON(infos)
	}
	rows := [][]string{{"PROVIDER", "TITLE", "KEY", "ADDRESS", "MODELS"}}
	for _, p := range infos {
		rows = append(rows, []string{p.Name, console.OneLine(p.Title, 40), cmp.Or(p.Key, "-"), console.OneLine(cmp.Or(p.BaseURL, "-"), 80), console.OneLine(strings.Join(p.Models, ", "), 80)})
	}
	return table(rows, "TITLE", "ADDRESS")
}

// providerInfos returns the presets and then the other providers of the configuration, by name.
func providerInfos(c config.Config, from config.KeySources) []providerInfo {
	names := providers.Presets()
	for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	var infos []providerInfo
	for _, name := range names {
		infos = append(infos, infoOf(c, name, from))
	}
	return infos
}

// infoOf returns what lashd knows of a preset or another provider of the configuration.
func infoOf(c config.Config, name string, from config.KeySources) providerInfo {
	preset, known := providers.PresetOf(name)
	return providerInfo{
		Name: name, Title: titleOf(name), BaseURL: cmp.Or(c.Providers[name].BaseURL, preset.BaseURL), BaseURLForm: preset.BaseURLForm, KeysAt: preset.KeysAt,
		Local: preset.Local, Pasted: !preset.Local && !config.TakesLogin(name) && (!known || len(preset.Env) > 0), Login: config.TakesLogin(name), Key: keyFrom(c, name, from), Stored: from.Store.Has(name),
	}
}

// keyFrom says where the key of a provider comes from, in the order in which the daemon looks; "" if there is none. It reads no key.
func keyFrom(c config.Config, name string, from config.KeySources) string {
	key, variables := c.Providers[name].Key, variablesOf(c, name)
	i := slices.IndexFunc(variables, func(variable string) bool { return os.Getenv(variable) != "" })
	switch {
	case i >= 0:
		return variables[i]
	case key != nil && key.Env == "":
		return "config.toml"
	case from.Store.Has(name):
		return "stored"
	}
	return ""
}
