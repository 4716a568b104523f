package mcp

import "lashd/pluginloader/manifest"

// State is how far a server is.
type State string

const (
	Idle        State = "idle"        // nobody has needed it yet
	Starting    State = "starting"    // it is being started, or connected
	Ready       State = "ready"       // it is there
	Failed      State = "failed"      // it could not be reached, or is gone; the next call, or the time, tries again
	Quarantined State = "quarantined" // it has crashed too often, and is not started until Resume
	Unreachable State = "unreachable" // of HTTP: it has failed as often; it is tried on
	Resumed     State = "resumed"     // it was quarantined or unreachable until Resume, and has not been there since
)

// ServerStatus is how things are with a server.
type ServerStatus struct {
	Name      string             `json:"name"`
	State     State              `json:"state"`
	Transport manifest.Transport `json:"transport"`
	Tools     int                `json:"tools"`             // that it lists
	Server    string             `json:"server,omitempty"`  // its own name
	Version   string             `json:"version,omitempty"` // its own version
	LastError string             `json:"lastError,omitempty"`
}

// Status tells how things are with the servers, in order of name.
func (p *Part) Status() []ServerStatus {
	all := make([]ServerStatus, len(p.members))
	for i, m := range p.members {
		all[i] = m.status()
	}
	return all
}

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
