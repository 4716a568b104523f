package cli

import (
	"fmt"
	"maps"
	"slices"

	"lashd/cmd/internal/config"
	"lashd/cmd/internal/console"
	"lashd/pluginloader/manifest"
	"lashd/rpc"
	"lashd/rpc/protocol"
)

// schemaCommand implements lashd schema.
type schemaCommand struct {
	Method string `arg:"" optional:"" help:"Method to describe, or plugin or config for the schema of plugin.json or config.toml."`
}

// Help is shown by --help.
func (schemaCommand) Help() string {
	return `Without an argument, prints all methods as an OpenRPC 1.3.2 document with JSON Schemas of parameters and results. The
method rpc/discover returns the same document. editors/vscode/src/protocol.ts has the TypeScript types.

Examples:
  lashd schema turn/start
  lashd schema config`
}

// Run prints a schema that is compiled into the program. It needs no daemon, and
// describes this build rather than a running daemon.
func (c schemaCommand) Run() error {
	if c.Method == "" {
		_, err := console.Stdout.Write(rpc.OpenRPC())
		return err
	}
	doc := map[string][]byte{"plugin": manifest.Schema(), "config": config.Schema}[c.Method]
	if doc == nil {
		doc = rpc.MethodSchema(c.Method)
	}
	if doc == nil {
		return console.Exit(console.ExitUsage, fmt.Errorf("unknown method %q%s; lashd schema lists all methods", c.Method, config.DidYouMean(c.Method, slices.Sorted(maps.Keys(rpc.Methods())))))
	}
	_, err := console.Stdout.Write(doc)
	return err
}

// ConfigSchemaOf generates the JSON Schema of config.toml. The generator in rpc/internal/gen calls it, with the comments of the settings.
func ConfigSchemaOf(docs map[string]protocol.TypeDoc) []byte { return config.SchemaOf(docs) }
