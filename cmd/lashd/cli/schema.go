package cli

import (
	"cmp"
	"fmt"
	"strings"

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
		return &exitError{exitUsage, fmt.Errorf("there is no method %q%s; lashd schema describes them all", c.Method, didYouMean(c.Method, rpc.Methods()))}
	}
	_, err := stdout.Write(doc)
	return err
}

// didYouMean offers the name that shares most with a word that is none, if it shares enough.
func didYouMean[T any](word string, names map[string]T) string {
	best, most := "", 0
	for name := range names {
		if n := alike(word, name); n > most || n == most && cmp.Less(name, best) {
			best, most = name, n
		}
	}
	if 2*most < len(word) {
		return ""
	}
	return "; did you mean " + best + "?"
}

// alike counts the bytes that two words have in common at their ends.
func alike(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return head + tail
}
