package lashdplugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// server is a plugin while it serves.
type server[S any] struct {
	plugin  *Plugin[S]
	peer    *peer
	methods map[string]handler[S]

	mu       sync.Mutex
	sessions map[string]*Session[S] // by instance
	config   json.RawMessage
	dataDir  string
}

// params is what is read of the params of all calls.
type params struct {
	Instance   string          `json:"instance"`
	DeadlineMs int64           `json:"deadlineMs"`
	Context    json.RawMessage `json:"context"`
	Source     string          `json:"source"`
	State      []byte          `json:"state"`
	Meta       struct {
		Version  string          `json:"plugin_version"`
		Revision uint64          `json:"revision,string"`
		State    json.RawMessage `json:"state"`
	} `json:"meta"`
	Artifacts []piece `json:"artifacts"`
}

type contributes struct {
	Hooks      []string `json:"hooks,omitempty"`
	Tools      []string `json:"tools,omitempty"`
	Operations []string `json:"operations,omitempty"`
	Executor   bool     `json:"executor,omitempty"`
	State      string   `json:"state,omitempty"`
}

type offer struct {
	ProtocolVersion int             `json:"protocolVersion"`
	PluginID        string          `json:"pluginId"`
	Nonce           string          `json:"nonce"`
	Config          json.RawMessage `json:"config,omitempty"`
	DataDir         string          `json:"dataDir,omitempty"`
	Contributes     contributes     `json:"contributes"`
}

func (s *server[S]) initialize(raw json.RawMessage) (any, error) {
	var o offer
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, err
	}
	if o.ProtocolVersion != 1 {
		return nil, fmt.Errorf("lashd speaks version %d of the protocol", o.ProtocolVersion)
	}
	if wrong := s.differs(&o.Contributes); len(wrong) > 0 {
		return nil, errors.New("plugin.json and the program differ: " + strings.Join(wrong, "; "))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config, s.dataDir = o.Config, o.DataDir
	o.Config, o.DataDir = nil, ""
	return o, nil
}

// differs says where the program is not what was declared.
func (s *server[S]) differs(declared *contributes) (wrong []string) {
	compare := func(kind string, declared, mine []string) {
		for _, name := range declared {
			if !slices.Contains(mine, name) && !(kind == "tool" && slices.Contains(mine, "*")) {
				wrong = append(wrong, fmt.Sprintf("the %s %s has no handler", kind, name))
			}
		}
		for _, name := range mine {
			if !slices.Contains(declared, name) && name != "*" {
				wrong = append(wrong, fmt.Sprintf("the %s %s is not declared", kind, name))
			}
		}
	}
	compare("hook", declared.Hooks, slices.Sorted(maps.Keys(s.plugin.hooks())))
	compare("tool", declared.Tools, slices.Sorted(maps.Keys(s.plugin.Tools)))
	compare("operation", declared.Operations, slices.Sorted(maps.Keys(s.plugin.Operations)))
	if declared.Executor != (s.plugin.Executor != nil) {
		wrong = append(wrong, "one of them runs code cells, and the other does not")
	}
	if declared.State != s.plugin.State {
		wrong = append(wrong, fmt.Sprintf("the version of the state that is declared is %q, not %q", declared.State, s.plugin.State))
	}
	return wrong
}

func (s *server[S]) told(method string, raw json.RawMessage) {
	var p params
	if method != "session/close" || json.Unmarshal(raw, &p) != nil {
		return
	}
	s.mu.Lock()
	session := s.sessions[p.Instance]
	delete(s.sessions, p.Instance)
	s.mu.Unlock()
	if session != nil && s.plugin.Closed != nil {
		s.plugin.Closed(session)
	}
}

func (s *server[S]) perform(ctx context.Context, method string, raw json.RawMessage) (any, error) {
	if method == "initialize" {
		return s.initialize(raw)
	}
	c := &Call[S]{}
	if err := errors.Join(json.Unmarshal(raw, &c.given), json.Unmarshal(raw, c)); err != nil {
		return nil, err
	}
	do := s.methods[method]
	switch {
	case do == nil:
		return nil, unknown("method", method)
	case method == "session/open":
		if err := s.open(raw); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	c.Session = s.sessions[c.given.Instance]
	s.mu.Unlock()
	if c.Session == nil {
		return nil, fmt.Errorf("%s: there is no instance %q", method, c.given.Instance)
	}
	if c.given.DeadlineMs > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(c.given.DeadlineMs)*time.Millisecond)
		defer cancel()
	}
	return do(ctx, c)
}

func (s *server[S]) open(raw json.RawMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	session := &Session[S]{Config: s.config, DataDir: s.dataDir, peer: s.peer, artifacts: map[string][]byte{}}
	if err := json.Unmarshal(raw, session); err != nil {
		return err
	}
	if s.plugin.New != nil {
		session.state = s.plugin.New()
	}
	s.sessions[session.Instance] = session
	return nil
}

// handler answers a call.
type handler[S any] func(context.Context, *Call[S]) (any, error)

// methods are those that the plugin answers, by name.
func (p *Plugin[S]) methods() map[string]handler[S] {
	all := map[string]handler[S]{
		"session/open":      p.opened,
		"snapshot/write":    p.write,
		"snapshot/restore":  p.restore,
		"tool/list":         p.list,
		"tool/execute":      p.execute,
		"tool/prepare":      p.prepare,
		"operation/query":   p.operate,
		"operation/command": p.operate,
		"operation/task":    p.operate,
	}
	if p.Executor != nil {
		all["code/execute"], all["code/snapshot"], all["code/restore"] = p.code, p.codeSnapshot, p.codeRestore
	}
	for name, h := range p.hooks() {
		all["hook/"+name] = h
	}
	return all
}
