package lashdplugin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

const inline = 1 << 20 // bytes of artifacts in one message; more of them are sent in pieces

// piece is an artifact, or a part of it.
type piece struct {
	Name string `json:"name"`
	Size int    `json:"size,omitempty"`
	Data []byte `json:"data"`
}

func (p *Plugin[S]) opened(_ context.Context, c *Call[S]) (any, error) {
	if p.Opened != nil {
		p.Opened(c.Session)
	}
	return struct{}{}, nil
}

func (p *Plugin[S]) execute(ctx context.Context, c *Call[S]) (any, error) {
	run := p.Tools[c.Name]
	if run == nil {
		run = p.Tools["*"]
	}
	if run == nil {
		return nil, unknown("tool", c.Name)
	}
	return run(ctx, c)
}

func (p *Plugin[S]) prepare(ctx context.Context, c *Call[S]) (any, error) {
	args, err := c.Args, error(nil)
	if f := p.Prepare[c.Name]; f != nil {
		args, err = f(ctx, c)
	}
	return map[string]json.RawMessage{"args": args}, err
}

func (p *Plugin[S]) list(_ context.Context, c *Call[S]) (any, error) {
	if p.ToolList == nil {
		return nil, unknown("list of", "tools")
	}
	return map[string][]Tool{"data": careful(p.ToolList(c.Session))}, nil
}

// careful are tools with what is absent filled in.
func careful(tools []Tool) []Tool {
	tools = slices.Clone(tools)
	for i := range tools {
		tools[i].Contract.Replay = cmp.Or(tools[i].Contract.Replay, "never")
	}
	return tools
}

func (p *Plugin[S]) operate(ctx context.Context, c *Call[S]) (any, error) {
	if p.Operations[c.Name] == nil {
		return nil, unknown("operation", c.Name)
	}
	return p.Operations[c.Name](ctx, c)
}

// written is what a session keeps.
type written struct {
	Revision  uint64          `json:"revision"`
	State     json.RawMessage `json:"state,omitempty"`
	Artifacts []piece         `json:"artifacts,omitempty"`
}

func (p *Plugin[S]) write(ctx context.Context, c *Call[S]) (any, error) {
	var w written
	var err error
	size := 0
	c.Session.Look(func(state *S, artifacts map[string][]byte) {
		w.Revision = c.Session.revision
		w.State, err = json.Marshal(state)
		for _, name := range slices.Sorted(maps.Keys(artifacts)) {
			w.Artifacts = append(w.Artifacts, piece{Name: name, Data: artifacts[name]})
			size += len(artifacts[name])
		}
	})
	if err != nil || size <= inline {
		return w, err
	}
	for _, a := range w.Artifacts {
		for at := 0; at == 0 || at < len(a.Data); at += inline {
			part := map[string]any{"name": a.Name, "offset": at, "data": a.Data[at:min(len(a.Data), at+inline)]}
			if err := c.Host(ctx, "artifactWrite", part, nil); err != nil {
				return nil, err
			}
		}
	}
	w.Artifacts = nil
	return w, nil
}

func (p *Plugin[S]) restore(ctx context.Context, c *Call[S]) (any, error) {
	state, err := p.read(c.given.Meta.Version, c.given.Meta.State)
	if err != nil {
		return nil, err
	}
	artifacts := map[string][]byte{}
	for _, a := range c.given.Artifacts {
		for len(a.Data) < a.Size {
			var more piece
			if err := c.Host(ctx, "artifactRead", map[string]any{"name": a.Name, "offset": len(a.Data)}, &more); err != nil {
				return nil, err
			}
			a.Data = append(a.Data, more.Data...)
		}
		artifacts[a.Name] = a.Data
	}
	c.Session.Look(func(*S, map[string][]byte) {
		c.Session.state, c.Session.artifacts, c.Session.revision = state, artifacts, c.given.Meta.Revision
	})
	if p.Restored != nil {
		p.Restored(c.Session)
	}
	return struct{}{}, nil
}

// read decodes state.
func (p *Plugin[S]) read(version string, raw json.RawMessage) (state S, err error) {
	if version != p.State {
		if p.Upgrade == nil {
			return state, fmt.Errorf("state of the version %q cannot be read", version)
		}
		return p.Upgrade(version, raw)
	}
	if p.New != nil {
		state = p.New()
	}
	return state, json.Unmarshal([]byte(cmp.Or(string(raw), "null")), &state)
}

func (p *Plugin[S]) code(ctx context.Context, c *Call[S]) (any, error) {
	return p.Executor.Execute(ctx, c, c.given.Source)
}

func (p *Plugin[S]) codeSnapshot(_ context.Context, c *Call[S]) (any, error) {
	state, err := p.Executor.Snapshot(c.Session)
	return map[string][]byte{"state": state}, err
}

func (p *Plugin[S]) codeRestore(_ context.Context, c *Call[S]) (any, error) {
	return struct{}{}, p.Executor.Restore(c.Session, c.given.State)
}
