// Command gen writes what is made from the method table and from the comments of the protocol package: schemas, types for
// TypeScript and the protocol document; and, from the types of manifests, the schema of plugin.json. It runs in the root of the project.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"lashd/pluginloader/manifest"
	"lashd/rpc"
)

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

// generated are all files that are made, by path from the root of the project.
func generated(root string) (map[string][]byte, error) {
	docs, err := describe(filepath.Join(root, "rpc", "protocol"))
	if err != nil {
		return nil, err
	}
	files := rpc.Generated(docs)
	if files["rpc/protocol/described.go"], err = described(docs); err != nil {
		return nil, err
	}
	docs, err = describe(filepath.Join(root, "pluginloader", "manifest"))
	files["pluginloader/manifest/schema.json"] = manifest.SchemaOf(docs)
	return files, err
}
