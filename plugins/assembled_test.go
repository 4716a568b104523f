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

// example is a copy of an example, which nobody may write to, as what a process is started with.
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
	return tool.Invocation{CallID: "c1", Attempt: 1, ToolID: name, Name: name, Args: args, Host: nobody{}}
}

// nobody is a host of a call that has nothing to ask for.
type nobody struct{ tool.Host }
