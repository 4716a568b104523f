package mcp

import "lashd/pluginloader/manifest"

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
}

// Status returns the status of each server, sorted by name.
func (p *Part) Status() []ServerStatus {
	all := make([]ServerStatus, len(p.members))
	for i, m := range p.members {
		all[i] = m.status()
	}
	return all
}

// status derives the state from the supervisor. The first case that applies counts, from working to
// never used.
func (m *member) status() ServerStatus {
	s := ServerStatus{Name: m.name, Transport: m.server.end.transport()}
	if list := m.listed(); list != nil {
		s.Tools, s.Server, s.Version = len(list.Tools), list.Server, list.Version
	}
	l, standing := m.server.super.Look()
	if standing.Reason != nil {
		s.LastError = standing.Reason.Error()
	}
	switch {
	case l != nil:
		s.State = Ready
	case standing.Quarantined:
		s.State = Quarantined
	case standing.Failing:
		s.State = Unreachable
	case standing.Resumed:
		s.State = Resumed
	case standing.Starting:
		s.State = Starting
	case standing.Reason != nil:
		s.State = Failed
	default:
		s.State = Idle
	}
	return s
}
