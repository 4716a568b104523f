//go:build unix

package plugins_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"lashd/engine/tool"
	"lashd/pluginloader"
	"lashd/pluginloader/manifest"
	"lashd/pluginloader/process"
)

// example returns the configuration of a read-only copy of an example.
func example(t testing.TB, name string, options string) process.Config {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, os.DirFS(absolute(t, filepath.Join("examples", name)))); err != nil {
		t.Fatal(err)
	}
	c := assembled(t, dir)
	c.Options = json.RawMessage(options)
	return c
}

func assembled(t testing.TB, dir string) process.Config {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	p, err := manifest.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	c := config(t, nil, process.Contributions{})
	said := pluginloader.Process(p, dir, c.DataDir)
	c.ID, c.Argv, c.Dir, c.Allow, c.Set, c.Uses = said.ID, said.Argv, dir, said.Allow, said.Set, said.Uses
	c.Contributes, c.Deadlines = said.Contributes, said.Deadlines
	c.Deadlines.Start = patience
	if c.Argv[0] == "node" {
		c.Argv[0] = node(t)
	}
	return c
}

func invocation(name string, args json.RawMessage) tool.Invocation {
	return tool.Invocation{CallID: "c1", Attempt: 1, ToolID: name, Name: name, Args: args, Host: noHost{}}
}

// noHost is the host of a call without requests.
type noHost struct{ tool.Host }
