// Command gen writes the files that are made from the method table and from the comments of package protocol: JSON schemas,
// TypeScript types and docs/protocol.md. It also writes the schemas of plugin.json and config.toml, made from their Go types. Run
// it in the root directory of the project.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"lashd/cmd/lashd/cli"
	"lashd/pluginloader/manifest"
)

// main writes the generated files below the current directory.
func main() {
	files, err := generated(".")
	for path, text := range files {
		if err == nil {
			err = os.WriteFile(path, text, 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// generated returns the contents of all generated files, by path relative to root. The test
// compares them with the files.
func generated(root string) (map[string][]byte, error) {
	docs, err := describe(filepath.Join(root, "rpc", "protocol"))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{
		"rpc/protocol/openrpc.json":      openRPCDocument(docs),
		"rpc/protocol/schema.json":       jsonSchema(docs),
		"docs/protocol.md":               []byte(document(docs)),
		"editors/vscode/src/protocol.ts": []byte(typescript(docs)),
	}
	if docs, err = describe(filepath.Join(root, "pluginloader", "manifest")); err != nil {
		return nil, err
	}
	files["pluginloader/manifest/schema.json"] = manifest.SchemaOf(docs)
	docs, err = describe(filepath.Join(root, "cmd", "internal", "config"))
	files["cmd/internal/config/config.schema.json"] = cli.ConfigSchemaOf(docs)
	return files, err
}
