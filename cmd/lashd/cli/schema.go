package cli

import (
	"fmt"
	"maps"
	"slices"

	"lashd/internal/strictjson"
	"lashd/pluginloader/manifest"
	"lashd/rpc"
)

type schemaCommand struct {
	Method string `arg:"" optional:"" help:"Only this method: its params and its result. Or plugin or config: the JSON Schema of plugin.json, of config.toml."`
}

// Help is shown by --help.
func (schemaCommand) Help() string {
	return `The document is OpenRPC 1.3.2; each method has a JSON Schema of its params and of its result. The daemon answers the same to
rpc/discover. It is made from the table that the daemon dispatches by. Its TypeScript types: editors/vscode/src/protocol.ts.

lashd schema plugin prints the JSON Schema of plugin.json, which says what each of its fields promises; lashd schema config that
of config.toml.

Example: lashd schema turn/start`
}

func (c schemaCommand) Run() error {
	if c.Method == "" {
		_, err := stdout.Write(rpc.OpenRPC())
		return err
	}
	doc := map[string][]byte{"plugin": manifest.Schema(), "config": configSchema}[c.Method]
	if doc == nil {
		doc = rpc.MethodSchema(c.Method)
	}
	if doc == nil {
		return &exitError{exitUsage, fmt.Errorf("there is no method %q%s; lashd schema describes them all", c.Method, didYouMean(c.Method, slices.Sorted(maps.Keys(rpc.Methods()))))}
	}
	_, err := stdout.Write(doc)
	return err
}

// didYouMean offers the name that was probably meant, if there is one.
func didYouMean(word string, names []string) string {
	if near := strictjson.Nearest(word, names); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}
