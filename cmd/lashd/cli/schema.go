package cli

import (
	"fmt"
	"maps"
	"slices"

	"lashd/internal/strictjson"
	"lashd/pluginloader/manifest"
	"lashd/rpc"
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
		_, err := stdout.Write(rpc.OpenRPC())
		return err
	}
	doc := map[string][]byte{"plugin": manifest.Schema(), "config": configSchema}[c.Method]
	if doc == nil {
		doc = rpc.MethodSchema(c.Method)
	}
	if doc == nil {
		return &exitError{exitUsage, fmt.Errorf("unknown method %q%s; lashd schema lists all methods", c.Method, didYouMean(c.Method, slices.Sorted(maps.Keys(rpc.Methods()))))}
	}
	_, err := stdout.Write(doc)
	return err
}

// didYouMean returns "; did you mean NAME?" with the name closest to word, or ""
// if none is close.
func didYouMean(word string, names []string) string {
	if near := strictjson.Nearest(word, names); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}
