package cli

import (
	"cmp"
	"context"
	"strings"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/cmd/internal/providersetup"
)

// modelProvidersCommand implements lash model providers.
type modelProvidersCommand struct {
	console.InJSON
}

// Help is shown by --help.
func (modelProvidersCommand) Help() string {
	return `Lists the providers that lashd knows and those of config.toml. KEY says where the API key comes from, as far as this shell and the
stored keys show. MODELS lists the models of servers that run on this machine. The command prints no keys and needs no daemon.

Example: lash model providers`
}

// Run prints the providers.
func (c modelProvidersCommand) Run(ctx context.Context, e *daemon.Environment) error {
	progress := console.Begin("looking for model servers on this machine", "Ctrl-C cancels it")
	defer progress.End()
	infos, err := providersetup.Setup{Home: e.Home}.ProvidersAndLocal(ctx)
	if err != nil {
		return err
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
