package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"lashd/cmd/internal/config"
	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/cmd/internal/providersetup"
	"lashd/engine/models"
	"lashd/rpc/protocol"
)

// modelCommand implements lash model.
type modelCommand struct {
	List modelListCommand `cmd:"" default:"withargs" help:"List models (default)."`
	Test modelTestCommand `cmd:"" help:"Make one small model call."`
	Use  modelUseCommand  `cmd:"" help:"Set the default model in config.toml."`

	Providers modelProvidersCommand `cmd:"" help:"List providers and where their keys come from."`
}

// modelListCommand implements lash model list.
type modelListCommand struct {
	console.InJSON
}

// Help is shown by --help.
func (modelListCommand) Help() string {
	return `Lists the models of config.toml and of the providers that have an API key. A star marks the default. Use the names with --model.
WINDOW is the context window in thousands of tokens. PRICE is that of a million input and output tokens in US dollars.

Without --json, lashd also looks for model servers on this machine.

Example: lash model`
}

// Run prints the models that the daemon knows. They may differ from a config.toml that changed after its start.
func (c modelListCommand) Run(ctx context.Context, e *daemon.Environment) error {
	l, err := e.Dial(ctx, true, nil)
	if err != nil {
		return err
	}
	defer l.Close()
	if err := handKeys(ctx, e, l); err != nil {
		return err
	}
	var r protocol.ModelListResult
	if err := l.Call(ctx, "model/list", nil, &r); err != nil {
		return err
	}
	if c.JSON {
		return console.PrintJSON(r.Data)
	}
	if len(r.Data) == 0 {
		e.Note("%s", waysToModel(ctx, e))
		return nil
	}
	if err := table(modelRows(r.Data), lessOfModel...); err != nil {
		return err
	}
	noteLocal(ctx, e)
	return nil
}

// lessOfModel are the columns that a narrow terminal does not show, the least important first.
var lessOfModel = []string{"PROVIDER", "TITLE", "PRICE", "WINDOW", "DEFAULT"}

// modelRows returns the table of models, grouped by provider in the order of the list.
func modelRows(models []protocol.ModelInfo) [][]string {
	var owners []string
	for _, m := range models {
		if !slices.Contains(owners, m.Model.Provider) {
			owners = append(owners, m.Model.Provider)
		}
	}
	models = slices.Clone(models)
	slices.SortStableFunc(models, func(a, b protocol.ModelInfo) int {
		return cmp.Compare(slices.Index(owners, a.Model.Provider), slices.Index(owners, b.Model.Provider))
	})
	rows := [][]string{{"MODEL", "DEFAULT", "PROVIDER", "TITLE", "WINDOW", "PRICE"}}
	for _, m := range models {
		rows = append(rows, []string{
			console.OneLine(m.Name, 60), map[bool]string{true: "*"}[m.Default], console.OneLine(m.Model.Provider, 40), console.OneLine(cmp.Or(m.Title, m.Model.ID), 40),
			windowOf(m.Model.ContextWindow), priceOf(m.Price),
		})
	}
	return rows
}

// windowOf returns a context window in thousands of tokens, "-" if it is unknown.
func windowOf(tokens int64) string {
	if tokens == 0 {
		return "-"
	}
	return fmt.Sprintf("%dk", tokens/1000)
}

// priceOf returns the prices of input and output, "-" if they are unknown.
func priceOf(p *protocol.Price) string {
	if p == nil {
		return "-"
	}
	return fmt.Sprintf("%g/%g", p.Input, p.Output)
}

// modelTestCommand implements lash model test.
type modelTestCommand struct {
	Name string `arg:"" optional:"" help:"Name of the model (default the default model)."`
}

// Help is shown by --help.
func (modelTestCommand) Help() string {
	return `Sends the model a prompt of two words and prints its reply. The call needs no daemon. It uses config.toml, the keys of this
shell and the keys that lash login stored.

Exit codes: 0 the model replied, 1 it did not.

Example: lash model test anthropic/claude-haiku-4-5-20251001`
}

// Run makes the call and says what came back.
func (c modelTestCommand) Run(ctx context.Context, e *daemon.Environment) error {
	cfg, err := config.Load(e.Home)
	if err != nil {
		return err
	}
	source, err := cfg.Source(config.OpenKeySources(e.Home, cfg, ""), config.NotSet)
	if err != nil {
		return err
	}
	m, ok := source.Model(c.Name)
	switch {
	case !ok && c.Name == "":
		return fmt.Errorf("%s", waysToModel(ctx, e))
	case !ok:
		return fmt.Errorf("no such model: %q; lash model lists the models", c.Name)
	}
	began := time.Now()
	progress := console.Begin("waiting for the reply of "+m.Name, "Ctrl-C cancels the call")
	defer progress.End()
	text, err := models.Try(ctx, m)
	progress.End()
	if err != nil {
		return fmt.Errorf("%s: %w", m.Name, err)
	}
	_, err = fmt.Fprintf(console.Stdout, "%s replied in %s: %s\n", m.Name, time.Since(began).Round(time.Millisecond), console.OneLine(cmp.Or(text, "(no text)"), 200))
	return err
}

// modelUseCommand implements lash model use.
type modelUseCommand struct {
	Name string `arg:"" help:"Name of a model: PROVIDER/ID, or a name from lash model."`
}

// Help is shown by --help.
func (modelUseCommand) Help() string {
	return `Writes the key model into config.toml; the rest of the file stays as it is. A running daemon uses the model for new
sessions at once. Existing sessions keep their model.

Example: lash model use anthropic/claude-haiku-4-5-20251001`
}

// Run changes config.toml if the result then names the model, and otherwise says why it does not.
func (c modelUseCommand) Run(ctx context.Context, e *daemon.Environment) error {
	restart, err := providersetup.Setup{Home: e.Home}.SetDefault(ctx, c.Name)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(console.Stdout, "new sessions use %s\n", console.OneLine(c.Name, 200)); err != nil {
		return err
	}
	if restart {
		e.Note("a running daemon still uses the old model of base_url; %s", daemon.FreshConfig)
	}
	return nil
}
