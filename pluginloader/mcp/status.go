package mcp

import (
	"fmt"
	"strings"

	"lashd/engine/plugin"
	"lashd/engine/proc"
	"lashd/pluginloader/manifest"
	"lashd/rpc/protocol"
)

// State is the state of a server.
type State string

const (
	// The states, as clients see them in plugin/list.
	Idle        State = "idle"
	Starting    State = "starting"    // starting or connecting
	Ready       State = "ready"       // connected
	Failed      State = "failed"      // not reachable or gone; lashd retries on the next call, or by itself
	Quarantined State = "quarantined" // crashed too often; not started until Resume
	Unreachable State = "unreachable" // over HTTP: failed too often; lashd keeps retrying
	Resumed     State = "resumed"     // resumed after Quarantined or Unreachable, not connected since
)

// ServerStatus describes a server for clients.
type ServerStatus struct {
	Name      string             `json:"name"`
	State     State              `json:"state"`
	Transport manifest.Transport `json:"transport"`
	Tools     int                `json:"tools"`             // number of tools in its list
	Server    string             `json:"server,omitempty"`  // the server's name for itself
	Version   string             `json:"version,omitempty"` // the server's version
	// LastError is the last failure, also of a server that works again.
	LastError string `json:"lastError,omitempty"`
	// Sandbox describes where the server runs; empty: lashd does not start it.
	Sandbox string `json:"sandbox,omitempty"`
	// Login says whether a person has logged in, or has to; empty: the server requires no login so far.
	Login protocol.ServerLogin `json:"login,omitempty"`
}

// Status returns the status of each server, sorted by name.
func (p *Part) Status() []ServerStatus {
	all := make([]ServerStatus, len(p.members))
	for i, m := range p.members {
		all[i] = m.status()
	}
	return all
}

// Outside lists the servers that run outside a sandbox in sessions with a mode.
func (p *Part) Outside(mode protocol.SandboxMode) (all []plugin.Program) {
	for _, m := range p.members {
		e := m.end
		if e.URL != "" || e.boxOf(mode, "") != nil || e.settings.own && proc.Confines().Sandbox > 0 {
			continue
		}
		all = append(all, plugin.Program{
			Tool: "mcp", Command: m.name + ": " + e.hide.Replace(strings.Join(e.Argv, " ")),
			Why: fmt.Sprintf("A person trusts the plugin %s with this MCP server. Its sandbox is %s.", p.config.Plugin, e.confined()),
		})
	}
	return all
}

// status describes the server by its process that lists the tools; if that one never ran, by one that works for sessions.
func (m *member) status() ServerStatus {
	s := ServerStatus{Name: m.name, Transport: m.end.transport(), Sandbox: m.end.confined()}
	if list := m.listed(); list != nil {
		s.Tools, s.Server, s.Version = len(list.Tools), list.Server, list.Version
	}
	s.State, s.LastError = m.server.status()
	s.Login = m.server.login.state()
	for _, other := range m.variants.servers() {
		if state, failure := other.status(); s.State == Idle || state == Quarantined {
			s.State, s.LastError = state, failure
		}
	}
	return s
}

// status derives the state from the supervisor. The first case that applies counts, from working to
// never used.
func (s *server) status() (state State, failure string) {
	l, standing := s.super.Look()
	if standing.Reason != nil {
		failure = standing.Reason.Error()
	}
	switch {
	case l != nil:
		state = Ready
	case standing.Quarantined:
		state = Quarantined
	case standing.Failing:
		state = Unreachable
	case standing.Resumed:
		state = Resumed
	case standing.Starting:
		state = Starting
	case standing.Reason != nil:
		state = Failed
	default:
		state = Idle
	}
	return state, failure
}
