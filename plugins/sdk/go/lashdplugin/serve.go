package lashdplugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// kinds make keys of handlers from methods.
var kinds = strings.NewReplacer("hook/", "hook ", "tool/execute", "tool", "tool/prepare", "prepare",
	"operation/query", "operation", "operation/command", "operation", "operation/task", "operation")

func (p *Plugin[S]) find(method, name string) func(*Call[S]) any {
	kind := kinds.Replace(method)
	if f := p.handlers[strings.TrimSpace(kind+" "+name)]; f != nil {
		return f
	}
	return p.handlers[kind+" *"]
}

func (p *Plugin[S]) perform(ctx context.Context, m *message) any {
	if m.Method == "initialize" {
		return p.initialize(m.Params)
	}
	c := &Call[S]{Context: ctx, Params: m.Params}
	check(json.Unmarshal(m.Params, c))
	f := p.find(m.Method, c.Name)
	switch {
	case m.Method == "snapshot/write":
		f = (*Call[S]).write
	case f == nil:
		check(&Error{Code: -32601, Message: fmt.Sprintf("there is no %s %s", m.Method, c.Name)})
	case m.Method == "session/open":
		p.open(c)
	}
	session, there := p.sessions.Load(c.Instance)
	if !there {
		check(fmt.Errorf("%s: there is no instance %q", m.Method, c.Instance))
	}
	c.Session = session.(*Session[S])
	if c.DeadlineMs > 0 {
		ctx, cancel := context.WithTimeout(ctx, time.Duration(c.DeadlineMs)*time.Millisecond)
		defer cancel()
		c.Context = ctx
	}
	switch m.Method {
	case "session/close":
		p.sessions.Delete(c.Instance)
	case "snapshot/restore":
		p.restore(c)
	}
	return f(c)
}

func (p *Plugin[S]) open(c *Call[S]) {
	s := &Session[S]{peer: p.peer, state: p.Blank(), Artifacts: map[string][]byte{}}
	check(errors.Join(json.Unmarshal(p.offer, s), json.Unmarshal(c.Params, s)))
	p.sessions.Store(s.Instance, s)
}

type contributes struct {
	Hooks, Tools, Operations []string
	Executor                 bool
	State                    string
}

func (p *Plugin[S]) initialize(params JSON) any {
	var offer struct {
		ProtocolVersion int
		PluginID, Nonce string
		Contributes     JSON
	}
	var declared contributes
	check(json.Unmarshal(params, &offer))
	check(json.Unmarshal(offer.Contributes, &declared))
	if offer.ProtocolVersion != 1 {
		check(fmt.Errorf("lashd speaks version %d of the protocol", offer.ProtocolVersion))
	}
	if wrong := p.differs(&declared); len(wrong) > 0 {
		check(errors.New("plugin.json and the program differ: " + strings.Join(wrong, "; ")))
	}
	p.offer = params
	return Object{"protocolVersion": 1, "pluginId": offer.PluginID, "nonce": offer.Nonce, "contributes": offer.Contributes}
}

// differs says where the program is not what was declared.
func (p *Plugin[S]) differs(declared *contributes) (wrong []string) {
	compare := func(kind string, names []string) {
		for _, name := range names {
			if p.find(kind, name) == nil {
				wrong = append(wrong, fmt.Sprintf("the %s %s has no handler", kind, name))
			}
		}
		for _, key := range slices.Sorted(maps.Keys(p.handlers)) {
			if name, mine := strings.CutPrefix(key, kind+" "); mine && name != "*" && !slices.Contains(names, name) {
				wrong = append(wrong, fmt.Sprintf("the %s is not declared", key))
			}
		}
	}
	compare("hook", declared.Hooks)
	compare("tool", declared.Tools)
	compare("operation", declared.Operations)
	if declared.Executor != (p.handlers[CodeExecute.key] != nil) {
		wrong = append(wrong, "one of them runs code cells, and the other does not")
	}
	if declared.State != p.version {
		wrong = append(wrong, fmt.Sprintf("the version of the state that is declared is %q, not %q", declared.State, p.version))
	}
	return wrong
}

const piece = 1 << 20 // bytes of an artifact in a message

func (c *Call[S]) write() any {
	var written Object
	var artifacts map[string][]byte
	c.Session.Look(func(state *S) {
		data, err := json.Marshal(state)
		check(err)
		written = Object{"revision": c.Session.revision, "state": JSON(data)}
		artifacts = maps.Clone(c.Session.Artifacts)
	})
	for name, data := range artifacts {
		for at := 0; at == 0 || at < len(data); at += piece {
			check(c.Host("artifactWrite", Object{"name": name, "offset": at, "data": data[at:min(len(data), at+piece)]}, nil))
		}
	}
	return written
}

type artifact struct {
	Name string
	Size int
	Data []byte
}

func (p *Plugin[S]) restore(c *Call[S]) {
	var given struct {
		Meta struct {
			Version  string `json:"plugin_version"`
			Revision uint64 `json:"revision,string"`
			State    JSON
		}
		Artifacts []artifact
	}
	check(json.Unmarshal(c.Params, &given))
	artifacts := map[string][]byte{}
	for _, a := range given.Artifacts {
		for len(a.Data) < a.Size {
			var more artifact
			check(c.Host("artifactRead", Object{"name": a.Name, "offset": len(a.Data)}, &more))
			a.Data = append(a.Data, more.Data...)
		}
		artifacts[a.Name] = a.Data
	}
	state, err := p.Blank(), error(nil)
	if given.Meta.Version != p.version {
		state, err = p.Upgrade(given.Meta.Version, given.Meta.State)
	} else if given.Meta.State != nil {
		err = json.Unmarshal(given.Meta.State, &state)
	}
	check(err)
	c.Session.Look(func(kept *S) {
		*kept, c.Session.Artifacts, c.Session.revision = state, artifacts, given.Meta.Revision
	})
}
