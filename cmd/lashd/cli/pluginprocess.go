package cli

import (
	"cmp"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/pluginloader/manifest"
	"lashd/pluginloader/process"
	"lashd/rpc/protocol"
)

// processConfig is what the process of a plugin is started with that is tried by its author: in its own directory, with
// data in another one, and without what it is confined to.
func processConfig(p *manifest.Plugin, dir, data, nonce string, log *slog.Logger) (process.Config, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return process.Config{}, err
	}
	put := func(text string) string {
		return manifest.Substitute(text, dir, data, func(string) (string, bool) { return "", false })
	}
	c := process.Config{
		ID: p.Name, Version: p.Version, Dir: dir, DataDir: data, Environ: os.Environ(), Allow: p.Process.PassEnv, Set: map[string]string{},
		Contributes: contributed(p), Nonce: nonce, Log: log,
	}
	for _, arg := range p.Process.Command {
		c.Argv = append(c.Argv, put(arg))
	}
	for name, value := range p.Process.Env {
		c.Set[name] = put(value)
	}
	if d := p.Process.Deadlines; d != nil {
		c.Deadlines = process.Deadlines{Start: milliseconds(d.StartMs), Hook: milliseconds(d.CallMs), Stop: milliseconds(d.StopMs)}
	}
	return c, nil
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// contributed is what the process contributes. Its hooks do not deny or allow what they fail at: that they fail is seen.
func contributed(p *manifest.Plugin) process.Contributions {
	c := process.Contributions{State: p.State, Changing: p.MoreTools, Preparing: p.Prepares, Executor: p.CodeExecutor}
	for _, h := range p.Hooks {
		c.Hooks = append(c.Hooks, process.Hook{
			Name: process.HookName(h.On), Timeout: milliseconds(h.TimeoutMs), OnError: process.Fail, Priority: h.Priority, Messages: h.Messages,
		})
	}
	for _, x := range p.Tools {
		if len(x.Command) > 0 {
			continue
		}
		c.Tools = append(c.Tools, tool.Tool{
			Manifest: protocol.ToolManifest{Name: x.Name, Description: x.Description, Kind: protocol.ToolKind(x.Kind), Input: x.Input},
			Contract: protocol.ToolContract{Replay: cmp.Or(protocol.Replay(x.Replay), protocol.ReplayNever), Serial: x.Serial, TimeoutMs: x.TimeoutMs},
		})
	}
	for _, o := range p.Operations {
		c.Operations = append(c.Operations, protocol.OperationInfo{
			Name: o.Name, Kind: protocol.OperationKind(o.Kind), Session: protocol.SessionRule(o.Session), Input: o.Input, Output: o.Output,
		})
	}
	for _, t := range p.Triggers {
		c.Triggers = append(c.Triggers, plugin.TriggerEvent{ResourceType: t.ResourceType, Alias: t.Alias, Event: t.Event})
	}
	return c
}
