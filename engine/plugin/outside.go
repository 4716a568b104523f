package plugin

import "lashd/rpc/protocol"

// Program is a program of a plugin that runs outside a sandbox in sessions that have one.
type Program struct {
	Tool    string // plugin, or mcp for an MCP server
	Command string // for people
	Why     string // a sentence for people
}

// Outsider is a Factory that lists its programs outside a sandbox, for sessions with a mode. It starts none.
type Outsider interface {
	Outside(protocol.SandboxMode) []Program
}

// Outside lists the programs of the session's plugins that run outside a sandbox although the session has one.
func (s *Session) Outside(mode protocol.SandboxMode) (all []Program) {
	if !mode.Confines() {
		return nil
	}
	for _, o := range s.outsiders {
		all = append(all, o.Outside(mode)...)
	}
	return all
}
