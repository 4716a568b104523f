//go:build unix

package plugins_test

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/pluginloader/manifest"
	"lashd/pluginloader/process"
	"lashd/rpc/protocol"
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
	c := config(t, nil, contributed(p))
	c.ID, c.Version, c.Dir, c.Set = p.Name, p.Version, dir, map[string]string{}
	put := func(text string) string {
		return manifest.Substitute(text, dir, c.DataDir, func(string) (string, bool) { return "", false })
	}
	for _, arg := range p.Process.Command {
		c.Argv = append(c.Argv, put(arg))
	}
	if c.Argv[0] == "node" {
		c.Argv[0] = node(t)
	}
	for name, value := range p.Process.Env {
		c.Set[name] = put(value)
	}
	c.Allow = p.Process.PassEnv
	if d := p.Process.Deadlines; d != nil {
		c.Deadlines.Start = max(c.Deadlines.Start, time.Duration(d.StartMs)*time.Millisecond)
	}
	return c
}

func contributed(p *manifest.Plugin) (c process.Contributions) {
	for _, h := range p.Hooks {
		c.Hooks = append(c.Hooks, process.Hook{
			Name: process.HookName(h.On), Timeout: time.Duration(h.TimeoutMs) * time.Millisecond, OnError: process.OnError(h.OnError),
			Priority: h.Priority, Messages: h.Messages,
		})
	}
	for _, x := range p.Tools {
		c.Tools = append(c.Tools, tool.Tool{
			Manifest: protocol.ToolManifest{Name: x.Name, Description: x.Description, Kind: protocol.ToolKind(x.Kind), Input: x.Input},
			Contract: protocol.ToolContract{Replay: cmp.Or(protocol.Replay(x.Replay), protocol.ReplayNever), Serial: x.Serial, TimeoutMs: x.TimeoutMs},
		})
	}
	for _, o := range p.Operations {
		c.Operations = append(c.Operations, protocol.OperationInfo{Name: o.Name, Kind: protocol.OperationKind(o.Kind), Session: protocol.SessionRule(o.Session)})
	}
	for _, text := range p.Prompt {
		c.Prompts = append(c.Prompts, plugin.Prompt{Slot: plugin.Slot(text.Slot), Title: text.Title, Priority: text.Priority, Content: text.Content})
	}
	c.State, c.Changing, c.Preparing, c.Executor = p.State, p.MoreTools, p.Prepares, p.CodeExecutor
	return c
}

func invocation(name string, args json.RawMessage) tool.Invocation {
	return tool.Invocation{CallID: "c1", Attempt: 1, ToolID: name, Name: name, Args: args, Host: nobody{}}
}

// nobody is a host of a call that has nothing to ask for.
type nobody struct{ tool.Host }
